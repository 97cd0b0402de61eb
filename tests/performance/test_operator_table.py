"""A profile as a table: own time, module and line; two profiles compared; one call made again."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from misstep.errors import PerformanceError
from misstep.performance.operators import Operator, Profile, compare, operators_in, reproduction


def event(name: str, ts: float, dur: float, cat: str = "cpu_op", **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


EVENTS = [
    event("misstep|net.0|train.py:7", 0, 100, "user_annotation"),
    event("aten::linear", 10, 80, **{"Sequence number": 5}),
    event(
        "aten::addmm",
        20,
        60,
        **{"Sequence number": 5, "Input Dims": [[8], [4, 16], [16, 8]], "Input type": ["float"] * 3},
    ),
    event("autograd::engine::evaluate_function: AddmmBackward0", 200, 50, **{"Sequence number": 5, "Fwd thread id": 1}),
    event("aten::mm", 210, 30, **{"Input Dims": [[16, 4], [4, 8]], "Input type": ["float"] * 2}),
    event("Optimizer.step#SGD.step", 300, 40, "user_annotation"),
    event("aten::add_", 310, 20),
]


def test_every_operator_has_its_own_time_its_module_and_its_line() -> None:
    rows = {one.name: one for one in operators_in(EVENTS)}
    assert [(one.name, one.self_us) for one in operators_in(EVENTS)] == [
        ("aten::addmm", 60), ("aten::mm", 30), ("aten::linear", 20), ("aten::add_", 20)
    ]  # fmt: skip
    assert (rows["aten::addmm"].module, rows["aten::addmm"].line) == ("net.0", "train.py:7")
    assert rows["aten::addmm"].flops == 2 * 4 * 16 * 8
    assert rows["aten::add_"].phase == "optimizer"


def test_backward_stands_at_the_line_of_its_forward_call() -> None:
    mm = next(one for one in operators_in(EVENTS) if one.name == "aten::mm")
    assert (mm.phase, mm.module, mm.line) == ("backward", "net.0", "train.py:7")


def test_two_profiles_are_compared_down_to_the_operator_that_got_slower() -> None:
    left = Profile("left", 0, 1, 1.0, tuple(operators_in(EVENTS)))
    slower = [{**one, "dur": 90.0} if one["name"] == "aten::add_" else one for one in EVENTS]
    right = Profile("right", 0, 1, 1.0, tuple(operators_in(slower)))
    found = compare(left, right)
    assert (found[0].name, found[0].before, found[0].after) == ("aten::add_", 20, 90)


def operator(name: str, **example: Any) -> Operator:
    return Operator(name, (), (), "", "train.py:7", "forward", 1, 1.0, 1.0, 0.0, 0.0, example)


@pytest.mark.slow
def test_a_call_can_be_made_again_by_itself() -> None:
    script = reproduction(
        operator(
            "aten::addmm",
            **{
                "Input Dims": [[8], [4, 16], [16, 8], [], []],
                "Input type": ["float", "float", "float", "Scalar", "Scalar"],
                "Input Strides": [[1], [16, 1], [1, 16], [], []],
                "Concrete Inputs": ["", "", "", "1", "1"],
            },
        )
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("us\n")


def test_what_cannot_be_called_again_is_said() -> None:
    with pytest.raises(PerformanceError):
        reproduction(operator("autograd::x"))
