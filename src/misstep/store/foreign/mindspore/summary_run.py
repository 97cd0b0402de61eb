"""A summary folder of MindSpore as a run like any other, so that every command and the page can show it.

    loss/auto           the loss of each step                     other scalars     events of kind `scalar`
    *weight/auto        a row of statistics per histogram         tensors           whole tensors
    graph               nodes and edges                           lineage           the run's settings, and an event

A histogram knows count, NaN, Inf, min, max and sum; what it does not know (std, l2, how many are zero) stays NaN or 0.
The first bad value among all of them is the verdict. The run is written into a folder that lives as long as this
process, from what the event files hold now; while they grow, whoever looks again gets a new one.
"""

from __future__ import annotations

import atexit
import math
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from misstep.core.address import Address, Role
from misstep.core.finding import TensorFact, Verdict
from misstep.core.graph import Node, Phase, TensorKey
from misstep.core.run import RunInfo, Step
from misstep.core.stats import DTYPE_CODES, HEAD, SUMMARY, Array
from misstep.store.foreign.elements import name_of
from misstep.store.foreign.mindspore.summary import Histogram, Summary, read_summary
from misstep.store.writing.writer import RunWriter

_MADE: dict[Path, tuple[int, Path]] = {}
"""By summary folder: how many bytes its event files had, and the run made of them."""
_LOSSES = ("loss/auto", "loss", "Loss", "train/loss", "train_loss", "Loss/train", "loss/train", "training/loss")


def summary_run(path: str | Path) -> Path:
    """The run directory made of a summary folder.

    >>> open_run(summary_run("summary_dir")).steps()[-1].loss
    """
    where = Path(path).resolve()
    files = where.iterdir() if where.is_dir() else [where]
    size = sum(file.stat().st_size for file in files if file.is_file())
    if where not in _MADE or _MADE[where][0] != size:
        home = Path(tempfile.mkdtemp(prefix="misstep-summary-"))
        atexit.register(shutil.rmtree, home, ignore_errors=True)
        _MADE[where] = size, write_summary_run(read_summary(where), home / (where.name or "summary"))
    return _MADE[where][1]


def write_summary_run(summary: Summary, target: Path) -> Path:
    """Write a run directory that holds what the summary tells."""
    info = RunInfo(
        name=target.name,
        command=(),
        started=summary.started,
        directory=str(summary.path),
        host=summary.host,
        versions={summary.writer: "summary"},
        settings={"lineage": summary.lineage} if summary.lineage else {},
    )
    writer = RunWriter(target, 0, info)
    tables = _Tables(writer, summary)
    losses = _curve(summary, *_LOSSES)
    rates = _curve(summary, "learning_rate", "lr", "learning_rate/auto")
    by_step: dict[int, dict[int, Histogram]] = {}
    for tag, histograms in summary.histograms.items():
        tensor = tables.tensor(tag)
        for histogram in histograms:
            # The end of an epoch is told twice, by its last step and by itself.
            by_step.setdefault(histogram.step, {})[tensor] = histogram
    tables.shape(())
    for number in sorted({*losses, *rates, *by_step}):
        rows = list(by_step.get(number, {}).items())
        time = max((histogram.time for _, histogram in rows), default=0.0)
        step = Step(number, loss=losses.get(number), learning_rate=rates.get(number), captured="module", time=time)
        writer.step(step, *_rows(number, rows), keep=True)
    for tag, points in summary.scalars.items():
        for point in points:
            writer.event("scalar", tag=tag, step=point.step, value=point.value)
    for tag, tensors in summary.tensors.items():
        for number, values in tensors:
            address = Address(tag, "output", step=number)
            writer.tensor(address, np.ascontiguousarray(values), name_of(values.dtype), values.shape)
    for tag, images in summary.images.items():
        for image in images:
            writer.event("image", tag=tag, step=image.step, height=image.height, width=image.width)
    verdict = first_bad(summary)
    if verdict is not None:
        writer.verdict(verdict)
    if summary.lineage:
        writer.event("lineage", lineage=summary.lineage, dataset=summary.dataset_graph)
    for sentence in summary.damage:
        writer.event("warning", text=sentence)
    writer.end("finished")
    return target


def first_bad(summary: Summary) -> Verdict | None:
    """The first NaN or Inf a summary recorded; in one step what is computed comes before the loss and the weights."""
    found: list[tuple[int, int, str, Role, int, int]] = []
    for tag, tensors in summary.tensors.items():
        for step, values in tensors:
            if values.dtype.kind not in "biu" and not np.isfinite(values.astype(np.complex128)).all():
                found.append((step, 0, tag, "output", int(np.isnan(values).sum()), int(np.isinf(values).sum())))
    for tag, points in summary.scalars.items():
        is_loss = tag in _LOSSES
        for point in points:
            if not math.isfinite(point.value):
                nan = int(math.isnan(point.value))
                name = "loss" if is_loss else tag
                found.append((point.step, int(is_loss), name, "loss" if is_loss else "output", nan, 1 - nan))
    for tag, histograms in summary.histograms.items():
        for one in histograms:
            if one.nan or one.pos_inf or one.neg_inf:
                name = tag.removesuffix("/auto")
                found.append((one.step, 2, name, "param", one.nan, one.pos_inf + one.neg_inf))
    if not found:
        return None
    step, order, name, role, nan, inf = min(found)
    phases: tuple[Phase, ...] = ("forward", "loss", "optimizer")
    words = " and ".join(f"{count:,} {kind}" for count, kind in ((nan, "NaN"), (inf, "Inf")) if count)
    fact = TensorFact(f"{name}:{role}@{step}", words, nan=nan, inf=inf)
    return Verdict(step, 0, phases[order], "nan" if nan else "inf", name, outputs=(fact,))


class _Tables:
    """Nodes, tensors and shapes in the order the writer numbers them."""

    def __init__(self, writer: RunWriter, summary: Summary) -> None:
        self.writer = writer
        self.nodes: dict[str, int] = {}
        for node in summary.graph.nodes if summary.graph is not None else ():
            writer.add_node(node)
            self.nodes[node.name] = node.index
        for edge in summary.graph.edges if summary.graph is not None else ():
            writer.add_edge(edge)
        self.count = len(summary.graph.nodes) if summary.graph is not None else 0

    def tensor(self, tag: str) -> int:
        """`conv.weight/auto` is the parameter conv.weight."""
        name = tag.removesuffix("/auto")
        if name not in self.nodes:
            self.writer.add_node(Node(self.count, name, "parameter", "Parameter"))
            self.nodes[name] = self.count
            self.count += 1
        return self.writer.add_tensor(TensorKey(self.nodes[name], "param"))

    def shape(self, shape: tuple[int, ...]) -> int:
        return self.writer.add_shape(shape)


def _curve(summary: Summary, *tags: str) -> dict[int, float]:
    found = next((summary.scalars[tag] for tag in tags if tag in summary.scalars), [])
    return {point.step: point.value for point in found}


def _rows(step: int, histograms: list[tuple[int, Histogram]]) -> tuple[Array, Array]:
    head, summary = np.zeros(len(histograms), HEAD), np.zeros(len(histograms), SUMMARY)
    for row, (tensor, histogram) in enumerate(histograms):
        head[row]["tensor"], head[row]["step"], head[row]["order"] = tensor, step, row
        head[row]["dtype"] = DTYPE_CODES["unknown"]
        finite = histogram.count - histogram.nan - histogram.pos_inf - histogram.neg_inf
        facts: dict[str, Any] = {
            "count": histogram.count,
            "nan": histogram.nan,
            "pos_inf": histogram.pos_inf,
            "neg_inf": histogram.neg_inf,
            "min": histogram.min if finite else np.nan,
            "max": histogram.max if finite else np.nan,
            "mean": histogram.sum / finite if finite else np.nan,
            "abs_mean": np.nan,
            "l2": np.nan,
            "std": np.nan,
        }
        for name, value in facts.items():
            summary[row][name] = value
    return head, summary
