"""Plain values that cross between the frameworks, and when two results are the same but for rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

ULPS = 256
"""Units of rounding, against the largest element, that two correct kernels may be apart; sums in the samples have at
most a few hundred terms."""
OWN_ERROR = 32
"""… or so many times the error PyTorch's own float32 result has against its float64 one."""
ROUGH = 1e-3
"""Relative difference up to which a result is the same function computed less exactly (MindSpore's tanh on the CPU is
1e-4 off); it is recorded as a difference."""
SPREAD = 6.0
"""Standard errors that two means of drawn numbers may be apart."""


@dataclass(frozen=True, slots=True)
class DType:
    """A type by the name both frameworks give it."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Tensorlike:
    """The values of a tensor; NumPy arrays among the arguments stay arrays."""

    array: Any


@dataclass(frozen=True, slots=True)
class Likeness:
    """How two results compare."""

    same: bool
    off: float = 0.0
    """The largest difference, against the largest element."""
    why: str = ""
    rough: bool = False
    """The same but for an approximation: farther apart than rounding explains, nearer than ROUGH."""


def compare(ours: Any, theirs: Any, *, drawn: bool = False, exact: Any = None) -> Likeness:
    """Whether the right result is the left one; `drawn` compares shapes and distributions, `exact` is the left
    computed in float64."""
    if isinstance(ours, Tensorlike) or isinstance(theirs, Tensorlike):
        if not (isinstance(ours, Tensorlike) and isinstance(theirs, Tensorlike)):
            if isinstance(ours, Tensorlike) or not isinstance(theirs.array, np.ndarray):
                return Likeness(False, math.inf, "another kind of result")
            return compare(Tensorlike(np.asarray(ours)), theirs)
        wide = exact.array if isinstance(exact, Tensorlike) else None
        return _arrays(ours.array, theirs.array, drawn=drawn, exact=wide)
    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        if len(ours) != len(theirs):
            return Likeness(False, math.inf, f"{len(theirs)} results instead of {len(ours)}")
        wides = exact if isinstance(exact, list | tuple) and len(exact) == len(ours) else [None] * len(ours)
        parts = [compare(a, b, drawn=drawn, exact=wide) for a, b, wide in zip(ours, theirs, wides)]
        bad = next((one for one in parts if not one.same), None)
        off = max((one.off for one in parts), default=0.0)
        return bad or Likeness(True, off, _noted(parts), any(one.rough for one in parts))
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        return _arrays(ours, theirs, drawn=drawn, exact=None)
    if isinstance(ours, bool) or isinstance(theirs, bool) or isinstance(ours, str) or ours is None:
        return Likeness(bool(ours == theirs), 0.0, "" if ours == theirs else f"{theirs!r} instead of {ours!r}")
    if isinstance(ours, int | float) and isinstance(theirs, int | float):
        return _arrays(np.asarray(ours), np.asarray(theirs), drawn=drawn, exact=None)
    return Likeness(bool(ours == theirs), 0.0, "" if ours == theirs else "another kind of result")


def _noted(parts: list[Likeness]) -> str:
    return next((one.why for one in parts if one.why), "")


def _arrays(ours: Any, theirs: Any, *, drawn: bool, exact: Any) -> Likeness:
    if ours.shape != theirs.shape:
        return Likeness(False, math.inf, f"shape {theirs.shape} instead of {ours.shape}")
    kinds = ours.dtype.kind, theirs.dtype.kind
    note = ""
    if ours.dtype != theirs.dtype:
        note = f"{theirs.dtype} instead of {ours.dtype}"
        if kinds[0] != kinds[1] and not set(kinds) <= set("iu"):
            return Likeness(False, math.inf, note)
        if kinds[0] in "fc":
            return Likeness(False, math.inf, note)
    if not ours.size:
        return Likeness(True, 0.0, note)
    if drawn:
        return _distributions(ours, theirs, note)
    one, other = (
        ours.astype(np.complex128 if kinds[0] == "c" else np.float64),
        theirs.astype(np.complex128 if kinds[0] == "c" else np.float64),
    )
    known = np.isfinite(one)
    if not np.array_equal(known, np.isfinite(other)) or not np.array_equal(one[~known], other[~known], equal_nan=True):
        return Likeness(False, math.inf, "NaN or Inf elsewhere")
    if not known.any():
        return Likeness(True, 0.0, note)
    scale = float(np.max(np.abs(one[known])))
    off = float(np.max(np.abs(one[known] - other[known])))
    if kinds[0] not in "fc":
        return Likeness(off == 0, off, note if off == 0 else f"{off:g} apart")
    unit = {2: 2.0**-11, 4: 2.0**-24, 8: 2.0**-53}.get(ours.dtype.itemsize // (2 if kinds[0] == "c" else 1), 2.0**-24)
    allowed = ULPS * unit * scale
    if exact is not None and exact.shape == ours.shape and exact.dtype.kind in "fc":
        wide = np.abs(exact.astype(one.dtype)[known] - one[known])
        allowed = max(allowed, OWN_ERROR * float(np.max(wide[np.isfinite(wide)], initial=0.0)))
    relative = off / scale if scale else off
    if off <= allowed:
        return Likeness(True, relative, note)
    return Likeness(relative <= ROUGH, relative, f"{relative:.2g} apart", rough=relative <= ROUGH)


def _distributions(ours: Any, theirs: Any, note: str) -> Likeness:
    """Two draws: the same mean and spread within what their number allows, and the same share of zeros."""
    if ours.size < 512:
        return Likeness(True, 0.0, note)
    one, other = ours.astype(np.float64).ravel(), theirs.astype(np.float64).ravel()
    error = max(float(one.std()), float(other.std())) / math.sqrt(one.size) * math.sqrt(2)
    if abs(one.mean() - other.mean()) > SPREAD * error + 1e-12:
        return Likeness(False, abs(one.mean() - other.mean()), "another mean")
    if abs(one.std() - other.std()) > 0.1 * max(one.std(), other.std()) + 1e-12:
        return Likeness(False, abs(one.std() - other.std()), "another spread")
    zeros = abs(float(np.mean(one == 0)) - float(np.mean(other == 0)))
    return Likeness(zeros < SPREAD * math.sqrt(0.5 / one.size), zeros, note)
