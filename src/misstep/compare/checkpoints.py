"""Checkpoints looked into and laid side by side: what is in them, what changed, what did not and should have.

`inspect` reads one file (values, shapes, NaN, Inf, exploding). `diff_checkpoints` compares two as a run compares with a
run. `learning` takes consecutive ones of a training and names the parameters that never moved.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from misstep.compare.layers import compare_sources
from misstep.compare.mapfile import NameMap
from misstep.compare.result import Comparison
from misstep.core.stats import SUMMARY, TensorStats
from misstep.errors import CompareError, TensorUnavailable
from misstep.kernels import summarize
from misstep.store.checkpoint import Checkpoint, read_checkpoint
from misstep.store.checkpoint.record import Section, role_of
from misstep.store.foreign.source import Selected, TensorSource

State = Literal["fine", "nan", "inf", "exploding", "all zero", "constant", "unreadable"]

EXPLODING = 1e4
"""An element this far above the median size of its checkpoint's weights is on its way to Inf."""


@dataclass(frozen=True, slots=True)
class Weight:
    """One tensor of a checkpoint, summarised."""

    name: str
    section: Section
    dtype: str
    shape: tuple[int, ...]
    trainable: bool | None
    stats: TensorStats
    state: State
    quantized: tuple[float, int] | None = None
    """Scale and zero point, where the values are stored integers."""
    counted: bool = True
    """False for buffers, the optimizer's state, and a second name of the same memory: no parameters of their own."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """A checkpoint at a glance; true when every weight is finite and of a usual size."""

    path: str
    format: str
    weights: tuple[Weight, ...]
    extras: dict[str, object]
    checksum: str

    def __bool__(self) -> bool:
        return not self.suspicious

    @property
    def suspicious(self) -> tuple[Weight, ...]:
        return tuple(one for one in self.weights if one.state in ("nan", "inf", "exploding"))

    @property
    def parameters(self) -> int:
        """Numbers that are learnt: without buffers, tied copies and the optimizer's state."""
        return sum(math.prod(one.shape) for one in self.weights if one.counted)

    def summary(self) -> str:
        """'model.ckpt (mindspore): 12 tensors, 1,204 parameters, 3 of the optimizer; fc.weight holds 2 NaN'"""
        name = Path(self.path).name
        optimizer = sum(one.section == "optimizer" for one in self.weights)
        text = f"{name} ({self.format}): {len(self.weights)} tensors, {self.parameters:,} parameters"
        if optimizer:
            text += f", {optimizer} tensors of the optimizer"
        bad = [f"{one.name} is {one.state} ({one.stats.describe()})" for one in self.suspicious]
        return text + ("; " + "; ".join(bad[:4]) if bad else "; all finite")


@dataclass(frozen=True, slots=True)
class Learning:
    """What consecutive checkpoints of one training tell about each parameter."""

    paths: tuple[str, ...]
    unchanged: tuple[str, ...]
    """The same bits in every checkpoint: frozen, or not learning."""
    changed: tuple[str, ...]
    went_bad: dict[str, str]
    """Parameter → the first checkpoint in which it is NaN or Inf."""
    growth: dict[str, float]
    """Parameter → its norm in the last checkpoint against the first."""

    def summary(self) -> str:
        total = len(self.unchanged) + len(self.changed)
        text = f"{len(self.changed)} of {total} parameters changed over {len(self.paths)} checkpoints"
        if self.unchanged:
            tail = ", …" if len(self.unchanged) > 4 else ""
            text += f"; not learning or frozen: {', '.join(self.unchanged[:4])}{tail}"
        for name, path in list(self.went_bad.items())[:3]:
            text += f"; {name} is not finite from {Path(path).name} on"
        growing = [name for name, factor in self.growth.items() if factor > 100]
        return text + (f"; growing more than 100x: {', '.join(growing[:4])}" if growing else "")


def inspect(checkpoint: Checkpoint | str | Path) -> Inspection:
    """What a checkpoint holds.

    >>> inspect("model.ckpt").suspicious
    """
    held = _read(checkpoint)
    found = [(one, _stats(held, name)) for name, one in held.tensors.items()]
    sizes = [stats.abs_mean for one, stats in found if one.section == "weights" and stats.abs_mean > 0]
    usual = statistics.median(sizes) if sizes else 0.0
    seen: set[Hashable] = set()
    weights = []
    for one, stats in found:
        tied = one.place is not None and one.place in seen
        seen.add(one.place)
        learnt = role_of(one.name) == "param" and not tied
        trainable = one.trainable if one.trainable is not None else role_of(one.name) == "param"
        state: State = _state(stats, usual) if stats.count or not one.count else "unreadable"
        weights.append(
            Weight(one.name, one.section, one.dtype, one.shape, trainable, stats, state, one.quantized, learnt)
        )
    return Inspection(str(held.path), held.format, tuple(weights), held.extras, held.checksum)


def diff_checkpoints(
    left: Checkpoint | str | Path,
    right: Checkpoint | str | Path,
    *,
    names: NameMap | None = None,
    section: Section | None = None,
) -> Comparison:
    """Two checkpoints of any formats, parameter by parameter.

    >>> diff_checkpoints("model.ckpt", "model.pth").only_right

    `section="weights"` leaves the optimizer's state out.
    """
    one, other = _read(left), _read(right)
    return compare_sources(_part(one, section), _part(other, section), names=names)


def learning(checkpoints: Sequence[Checkpoint | str | Path]) -> Learning:
    """Which parameters moved between consecutive checkpoints of one training.

    >>> learning(["step100.ckpt", "step200.ckpt"]).unchanged
    """
    if len(checkpoints) < 2:
        raise CompareError("at least two checkpoints are needed to tell what changed")
    held = [_read(one) for one in checkpoints]
    names = [name for name in held[0] if all(name in one.tensors for one in held)]
    names = [name for name in names if held[0].tensors[name].section == "weights"]
    if not names:
        raise CompareError(f"{held[0].path.name} and {held[1].path.name} have no weight in common")
    unchanged: list[str] = []
    changed: list[str] = []
    went_bad: dict[str, str] = {}
    growth: dict[str, float] = {}
    for name in names:
        first = held[0][name]
        moved = any(one[name].tobytes() != first.tobytes() for one in held[1:])
        (changed if moved else unchanged).append(name)
        norms = []
        for one in held:
            stats = _stats(one, name)
            norms.append(stats.l2)
            if not stats.finite:
                went_bad.setdefault(name, str(one.path))
        if norms[0] > 0 and math.isfinite(norms[-1]):
            growth[name] = norms[-1] / norms[0]
    return Learning(tuple(str(one.path) for one in held), tuple(unchanged), tuple(changed), went_bad, growth)


def _read(checkpoint: Checkpoint | str | Path) -> Checkpoint:
    return checkpoint if isinstance(checkpoint, Checkpoint) else read_checkpoint(checkpoint)


def _part(checkpoint: Checkpoint, section: Section | None) -> TensorSource:
    if section is None:
        return checkpoint
    chosen = [entry for entry in checkpoint.entries() if checkpoint.tensors[entry.key].section == section]
    return Selected(checkpoint, chosen)


def _stats(checkpoint: Checkpoint, name: str) -> TensorStats:
    held = checkpoint.tensors[name]
    try:
        return TensorStats.of(summarize(_measurable(checkpoint[name])), dtype=held.dtype, shape=held.shape)
    except TensorUnavailable:
        return TensorStats.of(np.zeros(1, SUMMARY)[0], dtype=held.dtype, shape=held.shape)


def _measurable(array: NDArray[Any]) -> NDArray[Any]:
    """Scales of a microscaling format are powers of two, which float32 holds exactly."""
    return array.astype(np.float32) if array.dtype.name == "float8_e8m0fnu" else array


def _state(stats: TensorStats, usual: float) -> State:
    if stats.nan:
        return "nan"
    if stats.pos_inf or stats.neg_inf:
        return "inf"
    largest = max(abs(stats.min), abs(stats.max)) if stats.count else 0.0
    if (
        usual
        and stats.dtype.startswith(("float", "bfloat"))
        and largest > EXPLODING * usual
        and stats.abs_mean > 100 * usual
    ):
        return "exploding"
    if stats.count and stats.zeros == stats.count:
        return "all zero"
    return "constant" if stats.count > 1 and stats.min == stats.max else "fine"
