"""What every adapter must do, as facts. A new adapter inherits `AdapterContract` and is done when it is green.

    class TestMine(AdapterContract):
        adapter_name = "mine"
        log_operator = "log"
        def make(self, kind): ...

The trainings all use `reference.BATCH`, `reference.TARGET`, plain gradient descent with `reference.LEARNING_RATE`, the
mean square as loss computed outside of any module, and are quiet on their own; faults begin with the second step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from tests.contract import reference
from tests.contract.recording import Recording
from tests.contract.reference import assert_stats

from misstep.adapters.base import LEVELS, Adapter, Level, adapter_for, adapter_named

Kind = Literal[
    "mlp",  # Mlp: fc1 (3→5), act (tanh), fc2 (5→2), from reference.weights()
    "conv",  # a small convolutional network ending in two outputs; any names
    "container",  # Container: body (a sequence of fc 3→5 and tanh), head (5→2); returns head's output
    "twice",  # Twice: fc (3→3) called twice with a tanh between, then out (3→2)
    "shared",  # Shared: a and b (3→3), b.weight is a.weight, then out (3→2)
    "accumulation",  # an Mlp whose step runs two micro-batches (rows 0:3 and 3:6) before one update
    "raises",  # Faulty, whose `bad` raises ValueError("planted") in forward at step 2
    "nested",  # Nested: split returns {"sum": a tensor, "parts": (a tensor, a tensor)} of shapes (6,5), (6,2), (6,3)
    "nan_input",  # an Mlp whose batch holds one NaN at step 2
    "nan_forward",  # Faulty: fc1, bad, fc2; `bad` takes the logarithm of negative numbers from step 2 on
    "nan_backward",  # Faulty: `bad` takes the square root of exact zeros from step 2 on: finite forward, NaN backward
    "nan_backward_inside",  # Deep: fc1, body (a sequence of `bad` and a linear 5→5), fc2; `bad` as in nan_backward
    "nan_optimizer",  # an Mlp whose learning rate is NaN from step 2 on
]


@dataclass
class Training:
    """A model and its loop, before the first step."""

    model: Any
    step: Callable[[], float]
    """One update; returns the last loss."""
    weights: Callable[[], dict[str, np.ndarray]]
    """Copies, by the name misstep shall use."""
    evaluate: Callable[[], Any]
    """One forward without gradients."""
    optimizer: Any = None


class AdapterContract:
    adapter_name: str
    log_operator: str
    """How the framework calls the logarithm: the end of its node's name, and of the node's type."""
    source_file: str
    """The file that holds `bad`, as sources name it; its faulty lines end in `# planted`."""

    def make(self, kind: Kind) -> Training:
        raise NotImplementedError

    def footprint(self, training: Training) -> Any:
        """Everything an attached adapter may have touched, comparable with ==."""
        raise NotImplementedError

    def sees(self, address: str) -> bool:
        """Whether a row like this can be had at module level: compiled code hides what is inside of it."""
        return True

    # ---- the harness ----

    @property
    def adapter(self) -> Adapter:
        return adapter_named(self.adapter_name)

    def watch(
        self, kind: Kind, steps: int = 2, level: Level = "module", recording: Recording | None = None
    ) -> tuple[Recording, Training]:
        """A training of so many steps under a listener."""
        recording = recording or Recording()
        training = self.make(kind)
        self.adapter.attach(recording)
        try:
            self.adapter.set_level(level)
            for _ in range(steps):
                training.step()
        finally:
            self.adapter.detach()
        return recording, training

    def quiet(self, recording: Recording) -> None:
        assert [f"{where}: {error!r}" for where, error in recording.troubles] == []

    # ---- steps ----

    def test_every_step_tells_before_update_then_after_update_then_step_done(self) -> None:
        recording, _ = self.watch("mlp", steps=3)
        assert recording.events == ["going_live", *["before_update", "after_update", "step_done"] * 3]
        self.quiet(recording)

    def test_the_first_update_is_step_1_and_the_weights_before_it_are_step_0(self) -> None:
        recording, _ = self.watch("mlp", steps=2)
        assert sorted({row.address.step for row in recording.rows}) == [0, 1, 2]
        start = reference.weights()
        assert sorted(recording.addresses(0)) == sorted(f"{name}:param" for name in start)
        for name, weight in start.items():
            assert_stats(recording.stats(f"{name}:param@0"), weight, name)

    def test_an_update_says_loss_learning_rate_and_optimizer(self) -> None:
        recording, _ = self.watch("mlp", steps=1)
        (update,) = recording.updates
        loss = reference.step_of_mlp(reference.weights())["loss:loss"]
        assert update.loss == pytest.approx(loss, rel=reference.RTOL)
        assert update.losses == ()
        assert update.learning_rate == pytest.approx(reference.LEARNING_RATE)
        assert update.optimizer

    # ---- rows ----

    def test_every_row_holds_what_numpy_computes(self) -> None:
        recording, _ = self.watch("mlp", steps=2)
        first = reference.step_of_mlp(reference.weights())
        after = {name.partition(":")[0]: value for name, value in first.items() if name.endswith(":param")}
        for step, expected in ((1, first), (2, reference.step_of_mlp(after))):
            for address, value in filter(lambda row: self.sees(row[0]), expected.items()):
                assert_stats(recording.stats(f"{address}@{step}"), value, f"{address}@{step}")
        self.quiet(recording)

    def test_rows_stand_in_execution_order(self) -> None:
        recording, _ = self.watch("mlp", steps=1)
        assert recording.addresses(1, "output") == ["fc1:output", "act:output", "fc2:output", "Mlp:output"]
        backward = [text for text in recording.addresses(1, "grad_output") if not text.startswith("Mlp")]
        assert backward == ["fc2:grad_output", "act:grad_output", "fc1:grad_output"]
        roles = [row.address.role for row in recording.at(1)]
        places = {role: [place for place, found in enumerate(roles) if found == role] for role in roles}
        for earlier, later in (("output", "loss"), ("loss", "grad_output"), ("grad_output", "grad"), ("grad", "param")):
            assert places[earlier][-1] < places[later][0], f"{earlier} before {later} in {roles}"

    def test_the_nodes_are_modules_and_parameters_named_by_their_path(self) -> None:
        recording, _ = self.watch("container", steps=1)
        graph = recording.catalog.graph
        modules = {node.name for node in graph.nodes if node.kind == "module"}
        assert modules >= {"Container", "body", "body.0", "body.1", "head"}
        assert {node.name for node in graph.nodes if node.kind == "parameter"} == {
            "body.0.weight",
            "body.0.bias",
            "head.weight",
            "head.bias",
        }
        assert recording.node("loss").kind == "loss"

    def test_the_graph_knows_who_consumed_an_output(self) -> None:
        recording, _ = self.watch("mlp", steps=1)
        assert recording.consumers("fc1") == ["act"]
        assert recording.consumers("act") == ["fc2"]

    def test_a_tensor_that_passes_several_places_is_summarised_once(self) -> None:
        recording, _ = self.watch("container", steps=1)
        made = ("body.0:output@1", "body.1:output@1", "head:output@1")
        passed = ("body.1:input@1", "body:output@1", "head:input@1", "Container:output@1")
        assert [recording.row(text).alias for text in made] == [False] * 3
        assert [recording.row(text).alias for text in passed] == [True] * 4
        assert recording.stats("body:output@1") == recording.stats("body.1:output@1")
        assert recording.stats("head:input@1") == recording.stats("body.1:output@1")

    def test_a_module_called_twice_has_two_calls(self) -> None:
        recording, _ = self.watch("twice", steps=2)
        for step in (1, 2):
            assert [text for text in recording.addresses(step, "output") if text.startswith("fc")] == [
                "fc:output",
                "fc~2:output",
            ]
            assert [text for text in recording.addresses(step, "grad_output") if text.startswith("fc")] == [
                "fc~2:grad_output",
                "fc:grad_output",
            ]
        assert recording.addresses(1, "grad").count("fc.weight:grad") == 1
        assert recording.stats("fc:output@1") != recording.stats("fc~2:output@1")

    def test_a_shared_weight_is_one_parameter(self) -> None:
        recording, training = self.watch("shared", steps=1)
        weights = [text for text in recording.addresses(1, "param") if text.endswith(".weight:param")]
        assert weights == ["a.weight:param", "out.weight:param"]
        assert_stats(recording.stats("a.weight:param@1"), training.weights()["a.weight"])

    def test_micro_batches_before_one_update_are_one_step(self) -> None:
        recording, _ = self.watch("accumulation", steps=2)
        assert recording.events.count("step_done") == 2
        assert recording.addresses(2, "loss") == ["loss:loss", "loss~2:loss"]
        calls = ["fc1:output", "fc1~2:output"] if self.sees("fc1:output") else []
        assert [text for text in recording.addresses(2, "output") if text.startswith("fc1")] == calls
        halves = [
            reference.step_of_mlp(reference.weights(), reference.BATCH[part], reference.TARGET[part])
            for part in (slice(0, 3), slice(3, 6))
        ]
        for call, half in zip(calls, halves):
            assert_stats(recording.stats(f"{call}@1"), half["fc1:output"])
        assert_stats(
            recording.stats("fc1.weight:grad@1"), halves[0]["fc1.weight:grad"] + halves[1]["fc1.weight:grad"], "sum"
        )
        assert recording.updates[0].losses == pytest.approx([half["loss:loss"] for half in halves], rel=reference.RTOL)
        self.quiet(recording)

    def test_tensors_in_nested_outputs_are_slots(self) -> None:
        recording, _ = self.watch("nested", steps=1)
        shapes = [recording.stats(f"split:{role}@1").shape for role in ("output", "output.1", "output.2")]
        assert shapes == [(6, 5), (6, 2), (6, 3)]
        self.quiet(recording)

    def test_evaluation_between_steps_leaves_no_rows(self) -> None:
        recording, training = Recording(), self.make("mlp")
        self.adapter.attach(recording)
        try:
            self.adapter.set_level("module")
            training.step()
            rows, events = len(recording.rows), len(recording.events)
            training.evaluate()
            assert (len(recording.frame), len(recording.rows), len(recording.events)) == (0, rows, events)
            training.step()
        finally:
            self.adapter.detach()
        assert recording.addresses(2) == recording.addresses(1)

    def test_a_convolutional_network_is_seen_whole_and_healthy(self) -> None:
        recording, training = self.watch("conv", steps=2)
        assert [str(row.address) for row in recording.rows if not row.stats.finite] == []
        names = set(training.weights())
        assert {text.partition(":")[0] for text in recording.addresses(2, "param")} >= names
        assert {text.partition(":")[0] for text in recording.addresses(2, "grad")} == names
        self.quiet(recording)

    # ---- levels ----

    @pytest.mark.parametrize("level", LEVELS)
    def test_every_level_marks_the_steps(self, level: Level) -> None:
        recording, _ = self.watch("mlp", steps=2, level=level)
        assert recording.events == ["going_live", *["before_update", "after_update", "step_done"] * 2]
        self.quiet(recording)

    def test_off_keeps_no_rows(self) -> None:
        recording, _ = self.watch("mlp", steps=2, level="off")
        assert recording.rows == []

    def test_guard_keeps_the_loss_of_a_healthy_step_and_nothing_else(self) -> None:
        recording, _ = self.watch("mlp", steps=2, level="guard")
        assert recording.addresses() == ["loss:loss", "loss:loss"]

    def test_guard_tells_which_gradients_and_weights_are_bad(self) -> None:
        recording, _ = self.watch("nan_optimizer", steps=2, level="guard")
        assert {str(row.address) for row in recording.rows if not row.stats.finite} == {
            f"{name}:param@2" for name in reference.weights()
        }
        recording, _ = self.watch("nan_backward", steps=2, level="guard")
        bad = {str(row.address) for row in recording.rows if not row.stats.finite}
        assert "fc1.weight:grad@2" in bad
        assert "fc2.weight:grad@2" not in bad

    def test_the_level_may_change_between_steps(self) -> None:
        recording, training = Recording(), self.make("mlp")
        self.adapter.attach(recording)
        try:
            for level in ("guard", "module", "op", "off", "module"):
                self.adapter.set_level(level)
                training.step()
        finally:
            self.adapter.detach()
        seen = {address for address in ("fc1:output", "act:output", "fc1.weight:param") if self.sees(address)}
        assert not seen & set(recording.addresses(1))
        assert seen <= set(recording.addresses(2))
        assert seen <= set(recording.addresses(3))
        if "fc1:output" in seen:
            assert len(recording.addresses(3, "output")) > len(recording.addresses(2, "output"))
        assert recording.addresses(4) == []
        assert recording.addresses(5) == recording.addresses(2)
        self.quiet(recording)

    def test_at_op_level_an_operator_stands_below_its_module_with_the_users_line(self) -> None:
        recording, _ = self.watch("nan_forward", steps=2, level="op")
        node = recording.node(f"bad/{self.log_operator}")
        assert (node.kind, node.scope) == ("operator", "bad")
        assert node.type.endswith(self.log_operator)
        assert node.source is not None
        assert node.source.file.endswith(self.source_file)
        assert node.source.code.endswith("# planted")

    # ---- faults ----

    def test_a_bad_batch_is_told_from_a_bad_model(self) -> None:
        recording, _ = self.watch("nan_input")
        verdict = recording.verdict()
        assert (verdict.step, verdict.phase, verdict.kind, verdict.node) == (2, "input", "nan", "Mlp")
        assert [text for text in recording.addresses(2, "output") if recording.row(f"{text}@2").origin] == []

    def test_a_bad_value_born_in_forward_is_told_from_its_offspring(self) -> None:
        recording, _ = self.watch("nan_forward")
        verdict = recording.verdict()
        assert (verdict.step, verdict.phase, verdict.node, verdict.precision) == (2, "forward", "bad", "module")
        assert recording.row("bad:output@2").origin
        for text in ("fc2:input@2", "fc2:output@2", "Faulty:output@2", "loss:loss@2", "fc1:grad_output@2"):
            assert not recording.row(text).stats.finite, text
            assert not recording.row(text).origin, text
        self.quiet(recording)

    def test_a_bad_value_born_in_forward_is_named_by_operator_and_line(self) -> None:
        recording, _ = self.watch("nan_forward", level="op")
        verdict = recording.verdict()
        assert (verdict.step, verdict.phase, verdict.precision) == (2, "forward", "operator")
        assert verdict.node == f"bad/{self.log_operator}"
        assert verdict.source is not None
        assert verdict.source.code.endswith("# planted")
        assert recording.row(f"bad/{self.log_operator}:output@2").origin
        assert not recording.row("bad:output@2").origin
        self.quiet(recording)

    def test_a_bad_value_born_in_backward_is_blamed_on_the_module_that_made_it(self) -> None:
        recording, _ = self.watch("nan_backward")
        verdict = recording.verdict()
        assert (verdict.step, verdict.phase, verdict.node, verdict.precision) == (2, "backward", "bad", "module")
        assert recording.stats("loss:loss@2").finite
        assert recording.stats("bad:grad_output@2").finite
        assert recording.row("bad:grad_input@2").origin
        assert not recording.row("fc1.weight:grad@2").origin

    def test_a_bad_value_born_in_backward_is_blamed_on_the_innermost_module(self) -> None:
        recording, _ = self.watch("nan_backward_inside")
        verdict = recording.verdict()
        assert (verdict.step, verdict.phase, verdict.node) == (2, "backward", "body.0")

    def test_a_bad_value_born_in_backward_is_named_by_operator_and_line(self) -> None:
        recording, _ = self.watch("nan_backward", level="op")
        verdict = recording.verdict()
        assert (verdict.step, verdict.phase, verdict.precision) == (2, "backward", "operator")
        assert verdict.node.startswith("bad/")
        assert verdict.source is not None
        assert verdict.source.code.endswith("# planted")
        self.quiet(recording)

    @pytest.mark.parametrize("level", ["guard", "module", "op"])
    def test_a_bad_value_written_by_the_optimizer_is_the_optimizers(self, level: Level) -> None:
        recording, _ = self.watch("nan_optimizer", level=level)
        assert (recording.verdict().step, recording.verdict().phase) == (2, "optimizer")

    def test_a_bad_weight_with_a_finite_gradient_is_an_origin(self) -> None:
        recording, _ = self.watch("nan_optimizer")
        assert {str(row.address) for row in recording.rows if not row.stats.finite} == {
            f"{name}:param@2" for name in reference.weights()
        }
        assert all(recording.row(f"{name}:param@2").origin for name in reference.weights())

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
