"""A run directory for the benchmark: the graph of 50,000 operators, written as a real run writes it.

python e2e/bench_runs.py FOLDER
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from misstep.core.graph import Edge, Node
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


def main() -> None:
    folder = Path(sys.argv[1])
    info = RunInfo(name="graph50k", command=("python", "transformer.py"), started=time.time())
    writer = RunWriter(folder / "missteps" / "graph50k", 0, info)
    operators = transformer(writer, 3600)
    writer.step(Step(number=1, loss=1.0, seconds=1.0), np.zeros(0, HEAD), np.zeros(0, SUMMARY))
    writer.end("finished", 0)
    print(operators)


main()
