"""Manners: training is not changed, nothing is left behind, our failure is not the user's; and the questions asked."""

from __future__ import annotations

import numpy as np
import pytest

from misstep.adapters.registry import adapter_for
from misstep.core.levels import LEVELS, Level
from misstep.testing.contract import reference
from misstep.testing.contract.harness import Harness, Kind
from misstep.testing.contract.recording import Recording


class MannerFacts(Harness):
    # ---- manners ----

    @pytest.mark.parametrize("level", LEVELS)
    @pytest.mark.parametrize("kind", ["mlp", "conv"])
    def test_training_is_bit_identical_with_and_without(self, level: Level, kind: Kind) -> None:
        bare = self.make(kind)
        losses = [bare.step() for _ in range(3)]
        watched, seen = self.make(kind), []
        self.adapter.attach(Recording())
        try:
            self.adapter.set_level(level)
            seen = [watched.step() for _ in range(3)]
        finally:
            self.adapter.detach()
        assert seen == losses
        left, right = bare.weights(), watched.weights()
        assert {name: weight.tobytes() for name, weight in left.items()} == {
            name: weight.tobytes() for name, weight in right.items()
        }

    def test_detach_leaves_nothing(self) -> None:
        training = self.make("mlp")
        training.step()  # what the framework makes lazily, it makes now
        before = self.footprint(training)
        recording = Recording()
        self.adapter.attach(recording)
        self.adapter.set_level("op")
        training.step()
        self.adapter.detach()
        assert self.footprint(training) == before
        events, rows = list(recording.events), len(recording.rows)
        training.step()
        assert (recording.events, len(recording.rows), len(recording.frame)) == (events, rows, 0)

    @pytest.mark.parametrize(
        "method", ["going_live", "initial", "at_node", "before_update", "after_update", "step_done"]
    )
    def test_a_failure_of_the_listener_is_its_trouble_and_training_goes_on(self, method: str) -> None:
        bare = self.make("mlp")
        for _ in range(2):
            bare.step()
        recording, training = self.watch("mlp", recording=Recording(stepping=True, failing=(method,)))
        assert recording.troubles
        assert {str(error) for _, error in recording.troubles} == {f"planted in {method}"}
        assert all(where for where, _ in recording.troubles)
        assert {name: weight.tobytes() for name, weight in bare.weights().items()} == {
            name: weight.tobytes() for name, weight in training.weights().items()
        }

    def test_an_exception_of_the_users_code_passes_unchanged_and_is_told_once(self) -> None:
        recording, training = Recording(), self.make("raises")
        self.adapter.attach(recording)
        try:
            self.adapter.set_level("module")
            training.step()
            with pytest.raises(ValueError, match=r"^planted$") as raised:
                training.step()
            training.step()
        finally:
            self.adapter.detach()
        ((error, where),) = recording.exceptions
        assert error is raised.value
        assert "bad" in where
        assert recording.events.count("step_done") == 2
        assert {"fc1:output", "bad:output", "fc2:output"} <= {
            text.replace("~2", "") for text in recording.addresses(2, "output")
        }
        self.quiet(recording)

    def test_who_wants_a_tensor_gets_it_with_its_row(self) -> None:
        recording, training, got = Recording(), self.make("mlp"), {}
        adapter = self.adapter
        names = [name for name in ("act:output", "fc1:grad_output", "fc1.weight:grad") if self.sees(name)]

        def wanted(number: int) -> None:
            name = str(recording.catalog.address(number))
            if name in names:
                recording.wants[number] = lambda row, tensor: got.update({name: (row, adapter.array(tensor).copy())})

        recording.catalog.on_tensor = wanted
        adapter.attach(recording)
        try:
            adapter.set_level("module")
            training.step()
        finally:
            adapter.detach()
        expected = reference.step_of_mlp(reference.weights())
        for name in names:
            row, values = got[name]
            np.testing.assert_allclose(values, expected[name], reference.RTOL, reference.ELEMENT_ATOL)
            assert str(recording.at(1)[row].address) == f"{name}@1"

    def test_while_stepping_every_module_and_the_optimizer_are_places(self) -> None:
        recording, _ = self.watch("mlp", steps=1, recording=Recording(stepping=True))
        graph = recording.catalog.graph
        told = [(graph.nodes[place.node].name, place.phase, place.when) for place in recording.places]
        forward = [(name, when) for name, phase, when in told if phase == "forward"]
        assert forward == [
            ("Mlp", "before"),
            *[(name, when) for name in ("fc1", "act", "fc2") for when in ("before", "after")],
            ("Mlp", "after"),
        ]
        backward = [(name, when) for name, phase, when in told if phase == "backward"]
        # What goes into fc1 and Mlp needs no gradient: they are done when all of backward is.
        assert backward == [
            ("Mlp", "before"),
            ("fc2", "before"),
            ("fc2", "after"),
            ("act", "before"),
            ("act", "after"),
            ("fc1", "before"),
            ("fc1", "after"),
            ("Mlp", "after"),
        ]
        optimizer = [place for place in recording.places if place.phase == "optimizer"]
        assert [(place.kind, place.when) for place in optimizer] == [("optimizer", "before"), ("optimizer", "after")]

    def test_without_stepping_there_are_no_places(self) -> None:
        recording, _ = self.watch("mlp", steps=1)
        assert recording.places == []

    # ---- questions ----

    def test_before_an_update_gradients_are_complete_and_weights_untouched(self) -> None:
        recording, _ = self.watch("mlp", steps=1)
        expected, start = reference.step_of_mlp(reference.weights()), reference.weights()
        assert {name: weight.tobytes() for name, weight in recording.before[1].items()} == {
            name: weight.tobytes() for name, weight in start.items()
        }
        assert sorted(recording.gradients[1]) == sorted(start)
        for name, gradient in recording.gradients[1].items():
            np.testing.assert_allclose(gradient, expected[f"{name}:grad"], reference.RTOL, reference.ELEMENT_ATOL)

    def test_an_adopted_model_is_named_before_it_runs(self) -> None:
        training, adapter = self.make("mlp"), self.adapter
        adapter.attach(Recording())
        try:
            adapter.adopt(training.model, training.optimizer)
            found = {name: adapter.array(parameter).copy() for name, parameter in adapter.parameters()}
            kinds = {adapter.dtype_name(parameter) for _, parameter in adapter.parameters()}
        finally:
            adapter.detach()
        assert {name: weight.tobytes() for name, weight in found.items()} == {
            name: weight.tobytes() for name, weight in reference.weights().items()
        }
        assert kinds == {"float32"}

    def test_it_knows_what_it_cost(self) -> None:
        self.watch("mlp", steps=1)
        self.adapter.take_cost()
        self.watch("mlp", steps=1)
        assert self.adapter.take_cost() > 0
        assert self.adapter.take_cost() == 0

    def test_the_adapter_of_a_model_is_found_by_its_type(self) -> None:
        assert adapter_for(self.make("mlp").model) is self.adapter

    def test_it_says_its_version_and_its_rank(self) -> None:
        assert all(self.adapter.versions().values())
        assert self.adapter.rank() == (0, 1)
