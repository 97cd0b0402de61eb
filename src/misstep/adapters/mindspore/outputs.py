"""One step in graph mode and in PyNative, operator by operator: the first output that differs.

    graph mode   Conv2D  BatchNorm  ReLU        MatMul  BiasAdd …     what MindSpore dumped of the compiled step
    PyNative     Conv2D  BatchNorm  ReLU  Cast  MatMul  BiasAdd …     what the dispatcher saw

The compiler leaves out, splits, fuses and reorders operators, so only those are compared that both modes have, by type
and number of elements, and an output agrees when any of its kind does. Statistics are compared: no value is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from misstep.adapters.frame import Catalog, Frame
from misstep.core.graph import Node, Source
from misstep.core.stats import Array

OUTPUT_AGREES = 1e-3
"""Of the largest magnitude. Fused and reordered float32 sums stay below 1e-5 a layer; a fault is far above."""


@dataclass(frozen=True, slots=True)
class OutputsCompared:
    """What the operators of one forward gave in the two modes."""

    count: int
    """How many could be compared; 0 without a dump of the compiled step."""
    node: str = ""
    """The first that differs, as PyNative calls it."""
    compiled: str = ""
    """The same one in the graph."""
    source: Source | None = None

    def __str__(self) -> str:
        line = f", {self.source.file}:{self.source.line} `{self.source.code}`" if self.source is not None else ""
        return f"output of {self.node}{line}"


NOT_DUMPED = OutputsCompared(0)


@dataclass(frozen=True, slots=True)
class _Output:
    node: Node
    stats: Array

    @property
    def key(self) -> tuple[str, int]:
        return self.node.type, int(self.stats["count"])


def compare_outputs(catalog: Catalog, compiled: Frame, eager: Frame) -> OutputsCompared:
    """The forward of a step in both modes; the first output, in the order of PyNative, that graph mode did not give."""
    kinds: dict[tuple[str, int], list[_Output]] = {}
    for one in _outputs(catalog, compiled, of_graph=True):
        kinds.setdefault(one.key, []).append(one)
    met: dict[tuple[str, int], int] = {}
    count = 0
    for output in _outputs(catalog, eager, of_graph=False):
        alike = kinds.get(output.key, [])
        place = met[output.key] = met.get(output.key, -1) + 1
        count += bool(alike)
        if alike and not any(_close(one.stats, output.stats) for one in alike):
            meant = alike[min(place, len(alike) - 1)]
            return OutputsCompared(count, output.node.name, meant.node.name, output.node.source)
    return OutputsCompared(count)


def _outputs(catalog: Catalog, frame: Frame, *, of_graph: bool) -> Iterator[_Output]:
    for row, number in enumerate(frame.tensors):
        key = catalog.graph.tensors[number]
        node = catalog.graph.nodes[key.node]
        wanted = key.role == "output" and key.slot == 0 and node.kind == "operator" and bool(node.graph) == of_graph
        if wanted and node.phase in ("forward", "loss"):
            yield _Output(node, frame.summary[frame.same_memory(row)])


def _close(one: Array, other: Array) -> bool:
    if any(one[name] != other[name] for name in ("nan", "pos_inf", "neg_inf")):
        return False
    if one["nan"] + one["pos_inf"] + one["neg_inf"] == one["count"]:
        return True
    largest = max(abs(float(one[name])) for name in ("min", "max"))
    apart = max(abs(float(one[name]) - float(other[name])) for name in ("min", "max", "mean", "abs_mean"))
    return apart <= OUTPUT_AGREES * largest
