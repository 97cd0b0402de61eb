"""Bad values: where they were born, and in which phase."""

from __future__ import annotations

import pytest

from misstep.core.levels import Level
from misstep.testing.contract import reference
from misstep.testing.contract.harness import Harness


class FaultFacts(Harness):
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
