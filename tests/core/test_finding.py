"""Verdicts as sentences."""

from __future__ import annotations

from misstep.core.finding import Finding, TensorFact, Verdict
from misstep.core.graph import Source


def test_a_verdict_says_step_phase_place_fault_inputs_and_line() -> None:
    verdict = Verdict(
        step=412,
        rank=0,
        phase="forward",
        kind="nan",
        node="blocks.3",
        outputs=(TensorFact("blocks.3:output@412#0", "1,204 NaN", nan=1204),),
        inputs=(TensorFact("blocks.2:output@412#0", "0 … 1"),),
        source=Source("train.py", 87, "y = torch.log(y)"),
        precision="module",
    )

    assert verdict.sentence() == (
        "step 412, forward, blocks.3: output has 1,204 NaN; inputs were finite; train.py:87 `y = torch.log(y)`"
    )


def test_a_bad_input_and_the_operator_are_named() -> None:
    verdict = Verdict(
        step=3,
        rank=1,
        phase="backward",
        kind="inf",
        node="net",
        op="aten.sqrt",
        inputs=(TensorFact("x:input@3", "finite"), TensorFact("y:input@3", "1 +Inf", inf=1)),
    )

    assert verdict.sentence() == "step 3, backward, net (aten.sqrt); input y:input@3 was already bad"


def test_an_operator_in_the_name_is_not_said_twice() -> None:
    verdict = Verdict(step=1, rank=0, phase="forward", kind="nan", node="a/aten.log", op="aten.log")

    assert verdict.sentence() == "step 1, forward, a/aten.log"


def test_a_finding_is_a_warning_until_said_otherwise() -> None:
    assert Finding("mp.01", "overflow").severity == "warning"
