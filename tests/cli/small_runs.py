"""Runs to look at, written by the real writer, and what a command said of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from misstep.core.address import Address
from misstep.core.finding import TensorFact, Verdict
from misstep.core.graph import Node, Source, TensorKey
from misstep.core.run import RunInfo, Step
from misstep.core.stats import DTYPE_CODES, HEAD, SUMMARY
from misstep.core.watching.watch import Hit
from misstep.store.writing.writer import RunWriter

VERDICT = Verdict(
    step=2,
    rank=0,
    phase="forward",
    kind="nan",
    node="blocks.3/log",
    op="aten.log",
    source=Source("train.py", 87, "y = torch.log(y)"),
    inputs=(TensorFact("blocks.3/log:input@2", "-3 … 4", count=8, min=-3.0, max=4.0, shape=(8,), dtype="float32"),),
    outputs=(TensorFact("blocks.3/log:output@2", "3 NaN of 8", nan=3, count=8, shape=(8,), dtype="float32"),),
    precision="operator",
)


@dataclass(frozen=True, slots=True)
class Said:
    """What one command printed, and its exit code."""

    exit: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"bare {name} in JSON"))


Misstep = Callable[..., Said]


def write_run(path: Path, *, verdict: Verdict | None = None) -> Path:
    """Three steps of a network with one node; in the second its output turns bad when there is a verdict."""
    path.mkdir(parents=True)
    info = RunInfo(path.name, ("python", "train.py"), 1_794_765_845.0, versions={"torch": "2.13.0"})
    writer = RunWriter(path, 0, info)
    writer.add_node(Node(0, "blocks.3", "module", "Linear", order=1))
    writer.add_tensor(TensorKey(0, "output"))
    writer.add_shape((8,))
    for number in (1, 2, 3):
        bad = verdict is not None and number >= verdict.step
        head, summary = np.zeros(1, HEAD), np.zeros(1, SUMMARY)
        head["step"], head["dtype"] = number, DTYPE_CODES["float32"]
        summary["count"], summary["nan"] = 8, 3 if bad else 0
        summary["mean"], summary["min"], summary["max"] = 0.5, -3.0, 4.0
        loss = float("nan") if bad else 1 / number
        writer.step(Step(number, loss=loss, seconds=0.1, captured="module", time=number), head, summary)
        if bad:
            address = Address("blocks.3", "output", step=number, rank=0)
            birth = "origin" if number == 2 else "propagated"
            writer.hit(Hit(number, 1, address, "3 NaN of 8", "error", birth, condition="tensor_overflow"))
    if verdict is not None:
        writer.verdict(verdict)
        values = np.array([1.0, np.nan, 2.0, np.nan, np.nan, 4.0, -3.0, 0.5], np.float32)
        writer.tensor(Address("blocks.3", "output", step=2, rank=0), values, "float32", values.shape)
    writer.end("finished", 0)
    return path
