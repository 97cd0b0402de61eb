"""Two tensors, element by element, in numpy: `change` (now against before) and `compare` (left against right)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.kernels._numpy_memory import (
    BLOCK,
    COMPLEX,
    FLOAT8,
    LARGEST,
    as_rows,
    check_block,
    check_rows,
    magnitude,
    stored,
    values_of,
)
from misstep.kernels.records import CHANGE, COMPARE, DTYPES, Table

_FLOATS = {DTYPES[name] for name in ("f64", "f32", "f16", "bf16")} | set(FLOAT8)


def change_memory(
    now: int,
    before: int,
    count: int,
    dtype: int,
    rtol: float,
    atol: float,
    out: Table,
    row: int,
    equal_nan: bool = False,
    /,
) -> None:
    check_block(now, count, dtype)
    check_block(before, count, dtype)
    check_rows(out, row, 1, CHANGE.itemsize)
    new, old = stored(now, count, dtype), stored(before, count, dtype)
    for scale in (1.0, 2.0**-600):  # the second time only for values whose sum leaves the range of a float64
        tally = _change(new, old, dtype, rtol, atol * scale, equal_nan, scale)
        if max(tally[4:]) < 2.0**1000:
            break
    finite = max(tally[0], 1)
    sums = tally[4] / finite, tally[5], tally[6] / finite
    as_rows(out, CHANGE)[row] = (count, *tally[1:4], *(min(x / scale, LARGEST) for x in sums))


@np.errstate(all="ignore")
def _change(
    new: NDArray[Any], old: NDArray[Any], dtype: int, rtol: float, atol: float, equal_nan: bool, scale: float
) -> tuple[int, int, int, int, float, float, float]:
    finite = within = nan = inf = 0
    total = top = before = 0.0
    for start in range(0, len(new), BLOCK):
        a, b = (values_of(items[start : start + BLOCK], dtype) * scale for items in (new, old))
        delta, size_a, size_b = _distance(a, b)
        both = np.isfinite(size_a) & np.isfinite(size_b)
        unordered = np.isnan(size_a) | np.isnan(size_b)
        finite += int(both.sum())
        nan += int(unordered.sum())
        inf += int((~both & ~unordered).sum())
        close = (both & (delta <= atol + rtol * size_b)) | (~both & ~unordered & (delta == 0))
        if equal_nan:
            close |= np.isnan(size_a) & np.isnan(size_b)
        within += int(close.sum())
        total += float(delta[both].sum())
        before += float(size_b[both].sum())
        top = max(top, float(delta[both].max(initial=0.0)))
    return finite, within, nan, inf, total, top, before


def compare_memory(
    a: int,
    dtype_a: int,
    b: int,
    dtype_b: int,
    count: int,
    rtol: float,
    atol: float,
    out: Table,
    row: int,
    /,
) -> None:
    check_block(a, count, dtype_a)
    check_block(b, count, dtype_b)
    if (dtype_a in COMPLEX) != (dtype_b in COMPLEX):
        raise ValueError("a complex tensor cannot be compared with a real one; compare its real part or its magnitude")
    check_rows(out, row, 1, COMPARE.itemsize)
    left, right = stored(a, count, dtype_a), stored(b, count, dtype_b)
    scale = 1.0
    tally = _compare(left, right, dtype_a, dtype_b, rtol, atol, scale)
    largest = max(tally["norm_a"], tally["norm_b"], tally["squares"])
    if not largest < 2.0**900 or 0 <= max(tally["norm_a"], tally["norm_b"]) < 2.0**-900:
        scale = 2.0**-600 if largest > 1 or math.isnan(largest) else 2.0**600
        tally = _compare(left, right, dtype_a, dtype_b, rtol, atol * scale, scale)
    n = max(tally["finite"], 1)
    norm_a, norm_b = math.sqrt(tally["norm_a"]), math.sqrt(tally["norm_b"])
    cosine = tally["dot"] / norm_a / norm_b if norm_a > 0 and norm_b > 0 else float(norm_a == norm_b)
    equal, first, ulp = _bits(left, right, dtype_a, dtype_b)
    as_rows(out, COMPARE)[row] = (
        count,
        tally["within"],
        equal,
        tally["mismatch"],
        first,
        ulp,
        min(tally["top"] / scale, LARGEST),
        min(tally["sum"] / n / scale, LARGEST),
        tally["top_rel"],
        min(tally["rel"], LARGEST) / n,
        min(math.sqrt(tally["squares"] / n) / scale, LARGEST),
        max(-1.0, min(1.0, cosine)),
        min(norm_a / scale, LARGEST),
        min(norm_b / scale, LARGEST),
    )


@np.errstate(all="ignore")
def _compare(
    left: NDArray[Any], right: NDArray[Any], dtype_a: int, dtype_b: int, rtol: float, atol: float, scale: float
) -> dict[str, Any]:
    names = ("sum", "squares", "rel", "norm_a", "norm_b", "dot", "top", "top_rel")
    tally: dict[str, Any] = dict.fromkeys(names, 0.0) | {"finite": 0, "within": 0, "mismatch": 0}
    for start in range(0, len(left), BLOCK):
        a = values_of(left[start : start + BLOCK], dtype_a) * scale
        b = values_of(right[start : start + BLOCK], dtype_b) * scale
        delta, size_a, size_b = _distance(a, b)
        both = np.isfinite(size_a) & np.isfinite(size_b)
        nans = np.isnan(size_a) & np.isnan(size_b)
        same = ~both & (delta == 0) & ~np.isnan(size_a) & ~np.isnan(size_b)
        tally["finite"] += int(both.sum())
        tally["within"] += int(((both & (delta <= atol + rtol * size_b)) | same).sum())
        tally["mismatch"] += int((~both & ~same & ~nans).sum())
        d, x, y = delta[both], size_a[both], size_b[both]
        against = np.where(y > 0, y, x)
        rel = np.minimum(d / np.where(against > 0, against, 1.0), LARGEST)
        tally["sum"] += float(d.sum())
        tally["squares"] += float((d * d).sum())
        tally["rel"] += float(rel.sum())
        tally["norm_a"] += float((x * x).sum())
        tally["norm_b"] += float((y * y).sum())
        tally["dot"] += float((a[both] * b[both].conj()).real.sum())
        tally["top"] = max(tally["top"], float(d.max(initial=0.0)))
        tally["top_rel"] = max(tally["top_rel"], float(rel.max(initial=0.0)))
    return tally


def _distance(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """How far apart, and how large each; infinities of one sign are no distance apart."""
    if np.iscomplexobj(a):
        gap = np.empty_like(a)
        gap.real = np.where(a.real == b.real, 0.0, a.real - b.real)
        gap.imag = np.where(a.imag == b.imag, 0.0, a.imag - b.imag)
        return magnitude(gap), magnitude(a), magnitude(b)
    return np.where(a == b, 0.0, np.abs(a - b)), np.abs(a), np.abs(b)


@np.errstate(all="ignore")
def _bits(left: NDArray[Any], right: NDArray[Any], dtype_a: int, dtype_b: int) -> tuple[int, int, int]:
    """How many pairs are equal, where the first is not, and the largest distance in units in the last place."""
    equal, first, ulp = 0, -1, -1 if dtype_a != dtype_b or dtype_a in COMPLEX else 0
    for start in range(0, len(left), BLOCK):
        a, b = left[start : start + BLOCK], right[start : start + BLOCK]
        x, y = values_of(a, dtype_a), values_of(b, dtype_b)
        if ulp < 0:
            nans = (np.isnan(x) & np.isnan(y)) if dtype_a in COMPLEX else (x != x) & (y != y)
            alike = (x == y) | nans
        else:
            alike = np.ones(len(a), bool) if a.tobytes() == b.tobytes() else _same_bits(a, b) | ((x != x) & (y != y))
            finite = np.isfinite(x) & np.isfinite(y)
            ulp = max(ulp, _ulps(a[finite], b[finite], dtype_a))
        equal += int(alike.sum())
        if first < 0 and not alike.all():
            first = start + int(np.argmin(alike))
    return equal, first, ulp


def _same_bits(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    unsigned = f"u{a.itemsize}"
    return np.asarray(a.view(unsigned) == b.view(unsigned))


def _ulps(a: NDArray[Any], b: NDArray[Any], dtype: int) -> int:
    if not len(a):
        return 0
    if dtype in _FLOATS:
        x, y = a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}")
        sign = x.dtype.type(1 << (8 * a.itemsize - 1))
        size_x, size_y = (x & ~sign).astype(np.uint64), (y & ~sign).astype(np.uint64)
        apart = np.where((x ^ y) & sign, size_x + size_y, np.maximum(size_x, size_y) - np.minimum(size_x, size_y))
    else:
        apart = np.maximum(a, b).astype(np.uint64) - np.minimum(a, b).astype(np.uint64)
    return min(int(apart.max()), 2**63 - 1)
