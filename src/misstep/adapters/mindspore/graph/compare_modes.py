"""One step in graph mode and in PyNative: whether loss and gradients agree, and the first output that differs.

    graph mode   Conv2D  BatchNorm  ReLU        MatMul  BiasAdd …     what MindSpore dumped of the compiled step
    PyNative     Conv2D  BatchNorm  ReLU  Cast  MatMul  BiasAdd …     what the dispatcher saw

The compiler leaves out, splits, fuses and reorders operators, so only those are compared that both modes have, by type
and number of elements, and an output agrees when any of its kind does. Statistics are compared: no value is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from misstep.adapters.mindspore import tensors
from misstep.adapters.step.frame import Catalog, Frame
from misstep.core.graph import Node, Source
from misstep.core.stats import Array
from misstep.sentences import journal
from misstep.sentences.text import clauses

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter
    from misstep.adapters.mindspore.graph.pynative import EagerStep

LOSS_AGREES = 1e-4
"""Relative. Fused and reordered float32 sums of a few thousand terms stay below 1e-5; a fault is far above."""
GRADIENT_AGREES = 1e-2
"""Relative to the root mean square of the gradient: gradients are differences of nearly equal numbers."""
NOISE = 1e-5
"""Gradients this much smaller than the largest one of the network are rounding, in both modes."""
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

    def said(self) -> str:
        if self.source is None:
            return journal.OUTPUT_OF.of(node=self.node)
        source = f"{self.source.file}:{self.source.line} `{self.source.code}`"
        return journal.OUTPUT_OF_AT.of(node=self.node, source=source)


NOT_DUMPED = OutputsCompared(0)


@dataclass(frozen=True, slots=True)
class Modes:
    """One step in graph mode and in PyNative: its loss, its gradients and, where they were dumped, its outputs."""

    step: int
    agree: bool | None
    """None: the step could not be run in PyNative."""
    text: str
    differing: tuple[str, ...] = ()
    """Gradients that differ, by weight."""
    outputs: OutputsCompared = NOT_DUMPED
    where: str = ""
    """What differs."""


def compare_modes(adapter: MindSporeAdapter, eager: EagerStep) -> Modes:
    """Whether the step under way came out in graph mode as it did in PyNative; told to whoever wants to know."""
    compiled = adapter.updates.loss_so_far()
    gradients = {
        adapter.names.parameter(weight): tensors.array(gradient)
        for _, weight in adapter.parameters()
        if (gradient := adapter.gradient(weight)) is not None
    }
    largest = max((_rms(one) for one in gradients.values()), default=0.0)
    differing = tuple(
        name
        for name, values in gradients.items()
        if name in eager.gradients and not _gradients_agree(values, eager.gradients[name], NOISE * largest)
    )
    both = None
    if compiled is not None and eager.loss is not None:
        both = journal.BOTH_LOSSES.of(graph=compiled, eager=eager.loss)
    same = compiled is None or eager.loss is None or _numbers_agree(compiled, eager.loss)
    listener = adapter.listener
    outputs = compare_outputs(listener.catalog, listener.frame, eager.flow.listener.frame)
    agree = same and not differing
    if agree:
        text = journal.ALL_AGREE.of() if gradients else journal.LOSS_AGREES.of()
        text = journal.WITH_LOSSES.of(what=text, both=both) if both else text
        where = ""
    else:
        what = [] if same or both is None else [journal.LOSSES_DIFFER.of(both=both)]
        if differing:
            what.append(journal.GRADIENTS_DIFFER.of(some=len(differing), all=len(gradients), first=differing[0]))
        both_differ = journal.AND.of(parts=what) if len(what) == 2 else clauses(what)
        where = clauses([both_differ, _where(outputs), journal.DROPOUT.of() if eager.draws else ""])
        text = journal.MODES_DIFFER.of(where=where)
    modes = Modes(listener.step, agree, text, differing, outputs, where)
    if adapter.on_modes is not None:
        adapter.on_modes(modes)
    return modes


def _where(outputs: OutputsCompared) -> str:
    """Where the modes part; nothing when the compiled step was not dumped."""
    if outputs.node:
        return journal.FIRST_DIFFERENT.of(what=outputs.said())
    return journal.OUTPUTS_AGREE.of(count=outputs.count) if outputs.count else ""


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


def _rms(values: Any) -> float:
    wide = np.asarray(values, np.float64)
    return float(np.sqrt(np.mean(np.square(wide)))) if wide.size and np.isfinite(wide).all() else 0.0


def _numbers_agree(one: float, other: float) -> bool:
    if not np.isfinite(one) or not np.isfinite(other):
        return bool(np.isfinite(one) == np.isfinite(other))
    return abs(one - other) <= LOSS_AGREES * max(abs(one), abs(other))


def _gradients_agree(one: Any, other: Any, noise: float) -> bool:
    left, right = np.asarray(one, np.float64), np.asarray(other, np.float64)
    if left.shape != right.shape:
        return False
    if not np.isfinite(left).all() or not np.isfinite(right).all():
        return bool(np.isfinite(left).all() == np.isfinite(right).all())
    return _rms(left - right) <= max(GRADIENT_AGREES * _rms(left), noise)
