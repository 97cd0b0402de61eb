"""What kind of difference it looks like: a second look at the values of a row that caused others.

Each test asks one question a person would ask next: is it the transpose? one factor? one side rounded to half? only the
border? The first that fits is told; none is a verdict.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from misstep.compare.judge.measures import Measures

_MOST = 1 << 22
"""Elements looked at; a hint needs no more."""


def hint(left: NDArray[Any], right: NDArray[Any], found: Measures | None) -> str:
    """'equal when transposed', 'larger by the factor 1.01' …; empty when nothing fits."""
    if left.size == 0 or right.size == 0 or max(left.size, right.size) > _MOST:
        return ""
    one, other = np.asarray(left), np.asarray(right)
    if found is None:
        return _about_shapes(one, other)
    if one.dtype.kind in "biu" or found.nonfinite_mismatch:
        return ""
    a, b = one.astype(np.float64), other.astype(np.float64)
    for question in (_turned, _rounded, _factor, _offset, _border, _few):
        said = question(a, b)
        if said:
            return said
    return ""


def _about_shapes(one: NDArray[Any], other: NDArray[Any]) -> str:
    if one.ndim == other.ndim and one.shape == other.shape[::-1] and _close(one, other.T):
        return "equal when transposed"
    if one.ndim == other.ndim:
        common = tuple(slice(0, min(a, b)) for a, b in zip(one.shape, other.shape))
        if _close(one[common], other[common]):
            return "equal where they overlap"
    return ""


def _turned(a: NDArray[Any], b: NDArray[Any]) -> str:
    if a.ndim >= 2 and a.shape[-1] == a.shape[-2] and _explains(a, b, np.swapaxes(b, -1, -2)):
        return "equal when transposed"
    if a.size > 1 and _explains(a, b, -b):
        return "equal with the sign turned"
    for axis in range(a.ndim):
        if a.shape[axis] > 1 and _explains(a, b, np.flip(b, axis)):
            return f"equal when flipped along axis {axis}"
        if a.shape[axis] > 2 and any(_explains(a, b, np.roll(b, by, axis)) for by in (1, -1)):
            return f"equal when shifted by one along axis {axis}"
    if a.ndim >= 2 and a.shape[0] > 1:
        rows, others = a.reshape(len(a), -1), b.reshape(len(b), -1)
        if _explains(a, b, others[np.lexsort(others.T[:8])][np.argsort(np.lexsort(rows.T[:8]))].reshape(a.shape)):
            return "the same samples in another order"
    if a.size > 8:
        apart = float(np.linalg.norm(np.sort(a, axis=None) - np.sort(b, axis=None)))
        if apart < 1e-3 * float(np.linalg.norm((a - b).ravel())):
            return "the same values in another order"
    return ""


def _rounded(a: NDArray[Any], b: NDArray[Any]) -> str:
    for name, kind in (("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)):
        for side, values, coarse in (("right", a, b), ("left", b, a)):
            with np.errstate(over="ignore"):
                if np.array_equal(values.astype(kind).astype(np.float64), coarse):
                    return f"the {side} side is rounded to {name}"
    return ""


def _factor(a: NDArray[Any], b: NDArray[Any]) -> str:
    length = float(np.vdot(a, a))
    if a.size <= 2 or not length or not math.isfinite(length):
        return ""
    factor = float(np.vdot(a, b)) / length
    return f"the right side is {factor:.7g} times the left" if factor and _explains(a, b, b / factor) else ""


def _offset(a: NDArray[Any], b: NDArray[Any]) -> str:
    gap = b - a
    if a.size > 2 and _explains(a, b, b - gap.mean()):
        return f"the right side is larger by {float(gap.mean()):.6g} everywhere"
    for axis in {a.ndim - 1, 1} if a.ndim >= 2 else ():
        others = tuple(other for other in range(a.ndim) if other != axis)
        if a.shape[axis] < a.size // 2 and _explains(a, b, b - gap.mean(axis=others, keepdims=True)):
            return "the difference is one constant per channel, like a bias"
    return ""


def _border(a: NDArray[Any], b: NDArray[Any]) -> str:
    if a.ndim < 3 or min(a.shape[-2:]) < 4:
        return ""
    inner = (..., slice(1, -1), slice(1, -1))
    far = float(np.abs(a - b).max())
    return "only the border differs, like padding" if float(np.abs(a[inner] - b[inner]).max()) < 1e-3 * far else ""


def _few(a: NDArray[Any], b: NDArray[Any]) -> str:
    different = int(np.count_nonzero(a != b))
    return f"only {different:,} of {a.size:,} elements differ" if 0 < different <= max(1, a.size // 100) else ""


def _explains(a: NDArray[Any], b: NDArray[Any], guess: NDArray[Any]) -> bool:
    """True when the guess takes nearly all of the difference away."""
    return float(np.linalg.norm((a - guess).ravel())) < 0.02 * float(np.linalg.norm((a - b).ravel()))


def _close(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-5, atol=1e-7, equal_nan=True))
