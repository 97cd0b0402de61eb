"""Steps, rows and levels: what an adapter tells of a healthy training."""

from __future__ import annotations

import pytest

from misstep.core.levels import LEVELS, Level
from misstep.testing.contract import reference
from misstep.testing.contract.harness import Harness
from misstep.testing.contract.recording import Recording
from misstep.testing.contract.reference import assert_stats


class RowFacts(Harness):
    # ---- steps ----

    def test_every_step_tells_before_update_then_after_update_then_step_done(self) -> None:
        recording, _ = self.watch("mlp", steps=3)
        assert recording.events == ["going_live", *["before_update", "after_update", "step_done"] * 3]
        self.quiet(recording)

    def test_the_first_update_is_step_1_and_the_weights_before_it_are_step_0(self) -> None:
        recording, _ = self.watch("mlp", steps=2)
        assert {row.address.step for row in recording.rows} == {0, 1, 2}
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
        roles = [str(row.address.role) for row in recording.at(1)]
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
