"""A small run to damage, kill and read: what the tests of the store share."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

import misstep
from misstep.core.address import Address
from misstep.core.finding import Verdict
from misstep.core.graph import Edge, Node, Source, TensorKey
from misstep.core.run import RunInfo, Step
from misstep.core.stats import DTYPE_CODES, HEAD, SUMMARY
from misstep.core.watching.watch import Hit, Watchpoint
from misstep.store.writing.writer import RunWriter

NODES = ("encoder.fc", "encoder.norm", "decoder.fc")
INFO = RunInfo(name="try", command=("python", "train.py"), started=1_794_765_845.0, versions={"torch": "2.13.0"})
EMPTY = np.zeros(0, HEAD), np.zeros(0, SUMMARY)


def child_environment() -> dict[str, str]:
    """For a process of its own: it finds this misstep and this file."""
    roots = [str(Path(misstep.__file__).parents[1]), str(Path(__file__).parent)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(roots)}


def rows(step: int, count: int = len(NODES)) -> tuple[np.ndarray, np.ndarray]:
    """Tensor k at step s has the mean s + k/10."""
    head, summary = np.zeros(count, HEAD), np.zeros(count, SUMMARY)
    head["tensor"] = head["order"] = np.arange(count)
    head["step"], head["dtype"] = step, DTYPE_CODES["float32"]
    summary["count"] = 24
    summary["mean"] = step + np.arange(count) / 10
    return head, summary


def values(step: int) -> np.ndarray:
    return np.full((2, 3), step, dtype=np.float32)


def begin(directory: Path, rank: int = 0, **options: object) -> RunWriter:
    writer = RunWriter(directory, rank, INFO, **options)  # type: ignore[arg-type]
    for index, name in enumerate(NODES):
        writer.add_node(Node(index, name, "module", "Linear", source=Source("train.py", index + 1), order=index))
        writer.add_tensor(TensorKey(index, "output"))
    writer.add_shape((2, 3, 4))
    writer.add_edge(Edge(0, 1))
    return writer


def train(writer: RunWriter, first: int, last: int) -> None:
    """Steps first to last, each with rows, a hit and a whole tensor."""
    for step in range(first, last + 1):
        address = Address("encoder.fc", step=step)
        writer.tensor(address, values(step), "float32", (2, 3))
        writer.hit(Hit(step, 1, address.at(rank=writer.rank), reason="1 NaN of 24"))
        writer.step(Step(step, loss=1 / step, time=1000.0 + step), *rows(step))


def record(directory: Path, steps: int = 5) -> Path:
    """A whole run: five steps, a watchpoint, hits, tensors, a verdict, an end."""
    writer = begin(directory)
    writer.watchpoint("add", Watchpoint(1, "overflow"))
    train(writer, 1, steps)
    writer.verdict(Verdict(steps, 0, "forward", "nan", "encoder.fc"))
    writer.end("finished", 0)
    return directory
