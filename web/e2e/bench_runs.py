"""Runs for the benchmark, written as real runs write them: graphs of many operators, a long curve, a huge tensor.

python e2e/bench_runs.py FOLDER [--all]      with --all also the graph of 300,000 operators
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from misstep.core.address import Address
from misstep.core.graph import Edge, Node, TensorKey
from misstep.core.run import RunInfo, Step
from misstep.core.stats import HEAD, SUMMARY
from misstep.store.writing.writer import RunWriter

OPS = (
    ("ln1", "native_layer_norm", (-1,)),
    ("attn.q", "addmm", (0,)),
    ("attn.k", "addmm", (0,)),
    ("attn.v", "addmm", (0,)),
    ("attn.core", "bmm", (1, 2)),
    ("attn.core", "_softmax", (4,)),
    ("attn.core", "bmm_2", (5, 3)),
    ("attn.o", "addmm", (6,)),
    ("", "add", (7, -1)),
    ("ln2", "native_layer_norm", (8,)),
    ("mlp.up", "addmm", (9,)),
    ("mlp", "gelu", (10,)),
    ("mlp.down", "addmm", (11,)),
    ("", "add_2", (12, 8)),
)
"""Where, which operator, and from which of the block it takes its inputs; -1 is the block before."""


def transformer(writer: RunWriter, blocks: int) -> int:
    """Blocks of fourteen operators with residual connections; how many operators there are."""
    index, last = 0, -1
    for block in range(blocks):
        made: list[int] = []
        for where, op, inputs in OPS:
            scope = f"layers.{block}" + (f".{where}" if where else "")
            kind = "aten." + op.removesuffix("_2")
            writer.add_node(Node(index, f"{scope}/{op}", "operator", kind, order=index + 1))
            for source in (made[i] if i >= 0 else last for i in inputs):
                if source >= 0:
                    writer.add_edge(Edge(source, index, dtype="float32", shape=(8, 128, 256)))
            made.append(index)
            index += 1
            if index % 1000 == 0:
                writer.flush()
        last = made[-1]
    return index


def network(folder: Path, name: str, blocks: int) -> int:
    writer = RunWriter(folder / name, 0, RunInfo(name=name, command=("python", "transformer.py"), started=time.time()))
    operators = transformer(writer, blocks)
    writer.step(Step(number=1, loss=1.0, seconds=1.0), np.zeros(0, HEAD), np.zeros(0, SUMMARY))
    writer.end("finished", 0)
    return operators


def curves(folder: Path, steps: int) -> None:
    """A long training whose last step has 5,040 operators on the line of time."""
    writer = RunWriter(folder / "curve", 0, RunInfo(name="curve", command=("python",), started=time.time()))
    operators = transformer(writer, 360)
    for index in range(operators):
        writer.add_tensor(TensorKey(index, "output"))
    for step in range(1, steps + 1):
        heads, rows = np.zeros(0, HEAD), np.zeros(0, SUMMARY)
        if step == steps:
            heads, rows = np.zeros(operators, HEAD), np.zeros(operators, SUMMARY)
            heads["tensor"] = heads["order"] = np.arange(operators)
            heads["step"] = step
            rows["abs_mean"] = np.abs(np.sin(np.arange(operators)))
            rows["count"] = 100
        loss = float(np.exp(-step / 3000) + 0.05 * np.sin(step))
        writer.step(Step(step, loss=loss, seconds=0.01, learning_rate=1e-3, gradient_norm=loss), heads, rows)
    writer.end("finished", 0)


def huge(folder: Path) -> None:
    writer = RunWriter(folder / "huge", 0, RunInfo(name="huge", command=("python",), started=time.time()))
    writer.add_node(Node(0, "big", "module", "Linear", order=1))
    writer.add_tensor(TensorKey(0, "output"))
    values = np.tile(np.random.default_rng(7).standard_normal((100, 10_000), dtype=np.float32), (100, 1))
    values[4321, 1234] = np.nan
    writer.tensor(Address("big", step=1, rank=0), values, "float32", values.shape)
    writer.step(Step(1, loss=1.0, seconds=1.0), np.zeros(0, HEAD), np.zeros(0, SUMMARY))
    writer.end("finished", 0)


def main() -> None:
    folder = Path(sys.argv[1]) / "missteps"
    folder.mkdir(exist_ok=True)
    print(network(folder, "graph50k", 3600))
    curves(folder, 10_000)
    huge(folder)
    if "--all" in sys.argv:
        network(folder, "graph300k", 21_500)


main()
