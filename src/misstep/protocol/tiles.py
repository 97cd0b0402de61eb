"""A tensor through a window: tiles, pooled tiles, histograms, the next bad element, and two tensors side by side.

Everything works on views: a 256 x 256 tile of a gigabyte copies 256 KiB. Where a tile must stand for more elements
than it has, the worst wins (NaN, then Inf, then the greatest magnitude), so that one NaN in ten thousand still shows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from misstep.core.slices import Array
from misstep.core.stats import TensorStats
from misstep.errors import AddressError, CompareError
from misstep.kernels import summarize
from misstep.protocol.tensor_payloads import CompareMode, Differences, Found, Histogram, Tile
from misstep.protocol.views import number

LARGEST_TILE = 1 << 20
"""Elements in one answer; a page asks for 65,536."""
BLOCK = 1 << 20
"""Elements looked at in one go where a whole tensor must be walked: 8 MiB of float64 at a time."""

_WIDENED = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


def plane(array: Array) -> Array:
    """A slice as rows and columns: a scalar is 1 x 1, a vector one row, more axes are folded into the rows."""
    if array.ndim == 2:
        return array
    if array.ndim < 2:
        return array.reshape(1, -1)
    return array.reshape(-1, array.shape[-1])


def tile(array: Array, window: Tile) -> Array:
    """The window of a slice, contiguous, in a type that a browser can read."""
    if window.pool < 1 or min(window.row, window.column, window.rows, window.columns) < 0:
        raise AddressError(f"no such tile: {window}; row, column, rows, columns from 0, pool from 1")
    if window.rows * window.columns > LARGEST_TILE:
        raise AddressError(f"a tile of {window.rows} x {window.columns} is too large; 1024 x 1024 is the most")
    if array.ndim > 2 and not array.flags.c_contiguous:
        raise AddressError(f"a tile needs two free axes and the slice has {array.ndim}; index the others")
    flat = plane(array)
    pool = window.pool
    rows = slice(window.row * pool, (window.row + window.rows) * pool)
    columns = slice(window.column * pool, (window.column + window.columns) * pool)
    part = flat[rows, columns]
    return readable(part) if pool == 1 else _pooled(part, pool)


def readable(array: Array) -> Array:
    """C order, little endian, bool as bytes, and no type a browser does not know."""
    name = array.dtype.name
    if name in _WIDENED or name == "float16":
        array = array.astype(np.float32)
    elif array.dtype.kind == "b":
        array = array.astype(np.uint8)
    elif array.dtype.kind == "c":
        array = np.abs(array)
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))


def _pooled(part: Array, pool: int) -> Array:
    rows, columns = (math.ceil(size / pool) for size in part.shape)
    out = np.zeros((rows, columns), np.float32)
    # A few block rows at a time: what is copied of a strange type never holds more than BLOCK elements.
    at_once = max(1, BLOCK // max(1, pool * part.shape[1]))
    for first in range(0, rows, at_once):
        strip = _plain(part[first * pool : (first + at_once) * pool])
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = (_blockwise(strip, pool, reduce).astype(np.float64) for reduce in (np.minimum, np.maximum))
            # NaN passes through both; of the two ends the one of greater magnitude is the block's worst.
            out[first : first + len(low)] = np.where(np.abs(low) > np.abs(high), low, high)
    return out


def _plain(strip: Array) -> Array:
    """In a type of which numpy finds the greatest quickly; magnitudes of complex numbers."""
    if strip.dtype.kind == "c":
        return np.abs(strip)
    return readable(strip) if strip.dtype.name in _WIDENED or strip.dtype.name == "float16" else strip


def _blockwise(strip: Array, pool: int, reduce: np.ufunc) -> Array:
    """Rows first, where memory is read in order; columns of what is left of them after that. No copy of the strip."""
    whole = len(strip) // pool * pool
    lines = [reduce.reduce(strip[:whole].reshape(-1, pool, strip.shape[1]), axis=1)] if whole else []
    if whole < len(strip):
        lines.append(reduce.reduce(strip[whole:], axis=0, keepdims=True))
    whole_lines = np.concatenate(lines)
    return np.asarray(reduce.reduceat(whole_lines, np.arange(0, strip.shape[1], pool), axis=1))


def statistics(array: Array) -> TensorStats:
    """The statistics of a slice: in one pass where it lies in order, else a block at a time."""
    dtype, shape = array.dtype.name, tuple(array.shape)
    if array.flags.c_contiguous and array.dtype.kind in "fiub" and array.dtype.isnative:
        return TensorStats.of(summarize(array), dtype=dtype, shape=shape)
    counts = dict.fromkeys(("nan", "pos_inf", "neg_inf", "zeros", "negatives", "positives"), 0)
    least, greatest, total, absolute, squares, finite_count = math.inf, -math.inf, 0.0, 0.0, 0.0, 0
    for values, _ in _blocks(array):
        bad = ~np.isfinite(values)
        if bad.any():
            counts["nan"] += int(np.isnan(values).sum())
            counts["pos_inf"] += int((values == np.inf).sum())
            counts["neg_inf"] += int((values == -np.inf).sum())
        counts["zeros"] += int((values == 0).sum())
        counts["negatives"] += int((values < 0).sum())
        counts["positives"] += int((values > 0).sum())
        finite = values[~bad] if bad.any() else values
        if finite.size:
            least, greatest = min(least, float(finite.min())), max(greatest, float(finite.max()))
            total += float(finite.sum())
            absolute += float(np.abs(finite).sum())
            squares += float(np.square(finite).sum())
            finite_count += finite.size
    if not finite_count:
        return TensorStats(array.size, **counts, **_NO_MEASURES, dtype=dtype, shape=shape)
    mean = total / finite_count
    deviation = 0.0
    for values, _ in _blocks(array):
        deviation += float(np.square(values[np.isfinite(values)] - mean).sum())
    return TensorStats(
        array.size,
        **counts,
        min=least,
        max=greatest,
        mean=mean,
        abs_mean=absolute / finite_count,
        l2=math.sqrt(squares),
        std=math.sqrt(deviation / finite_count),
        dtype=dtype,
        shape=shape,
    )


_NO_MEASURES: Any = dict.fromkeys(("min", "max", "mean", "abs_mean", "l2", "std"), math.nan)


def histogram(array: Array, bins: int) -> Histogram:
    """Counts of the finite values between the least and the greatest, and of the others by name."""
    if not 1 <= bins <= 4096:
        raise AddressError(f"a histogram of {bins} bins cannot be drawn; from 1 to 4096")
    stats = statistics(array)
    low, high = (0.0, 0.0) if math.isnan(stats.min) else (stats.min, stats.max)
    edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
    counts = np.zeros(bins, np.int64)
    for values, _ in _blocks(array):
        counts += np.histogram(values[np.isfinite(values)], edges)[0]
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()), stats.nan, stats.pos_inf, stats.neg_inf)


def find_nonfinite(array: Array, *, after: int = -1, forward: bool = True) -> Found:
    """The next (or previous) element that is NaN or Inf, counted in the slice's own C order."""
    if array.size == 0 or (array.dtype.kind not in "fcV" and array.dtype.name not in _WIDENED):
        return Found(None)
    flat = array.reshape(-1) if array.flags.c_contiguous else None
    starts = range((after + 1) // BLOCK * BLOCK, array.size, BLOCK)
    if not forward:
        last = array.size if after < 0 else after
        starts = range(max(0, last - 1) // BLOCK * BLOCK, -1, -BLOCK)
    for start in starts:
        stop = min(start + BLOCK, array.size)
        part = flat[start:stop] if flat is not None else array[np.unravel_index(np.arange(start, stop), array.shape)]
        where = np.flatnonzero(~np.isfinite(_wide(part))) + start
        where = where[where > after] if forward else where[where < (array.size if after < 0 else after)]
        if where.size:
            position = int(where[0] if forward else where[-1])
            index = tuple(int(axis) for axis in np.unravel_index(position, array.shape))
            return Found(index, number(float(np.real(_wide(array[index])))))
    return Found(None)


def difference(a: Array, b: Array, mode: CompareMode) -> Array:
    """Two slices element by element in float64; relative is |a-b| / max(|a|, |b|), ulp counts floats in between."""
    if mode == "a":
        return readable(a)
    if mode == "b":
        return readable(b)
    if mode == "ulp":
        return ulps(a, b).astype(np.float64)
    left, right = _wide(a), _wide(b)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        signed: Array = left - right
        if mode == "difference":
            return signed
        size: Array = np.abs(signed)
        if mode == "absolute":
            return size
        scale = np.maximum(np.abs(left), np.abs(right))
        return np.where(size == 0, 0.0, size / scale)


def compare(a: Array, b: Array, *, atol: float = 1e-8, rtol: float = 1e-5) -> Differences:
    """How far two tensors are apart. Out of tolerance: |a-b| > atol + rtol * |b|; NaN against NaN is no difference."""
    if a.shape != b.shape:
        raise CompareError(f"shapes differ: {list(a.shape)} and {list(b.shape)}")
    out, most, mean, relative, steps, dots, norms_a, norms_b, square = 0, 0.0, 0.0, 0.0, 0, 0.0, 0.0, 0.0, 0.0
    same, worst = True, 0
    for (left, start), (right, _) in zip(_blocks(a), _blocks(b)):
        finite = np.isfinite(left) & np.isfinite(right)
        with np.errstate(invalid="ignore"):
            alike = (left == right) | (np.isnan(left) & np.isnan(right))
        same = same and bool(alike[~finite].all())
        out += int((~alike[~finite]).sum())
        x, y = np.where(finite, left, 0.0), np.where(finite, right, 0.0)
        gap = np.abs(x - y)
        out += int((gap > atol + rtol * np.abs(y)).sum())
        if gap.size and float(gap.max()) > most:
            most, worst = float(gap.max()), start + int(gap.argmax())
        scale = np.maximum(np.abs(x), np.abs(y))
        relative = max(relative, float(np.divide(gap, scale, out=np.zeros_like(gap), where=scale > 0).max(initial=0.0)))
        mean += float(gap.sum())
        dots += float((x * y).sum())
        norms_a += float((x * x).sum())
        norms_b += float((y * y).sum())
        square += float((gap * gap).sum())
    if a.dtype == b.dtype and a.size:
        steps = max(int(ulps(x, y).max(initial=0)) for x, y in zip(_raw_blocks(a), _raw_blocks(b)))
    norm = math.sqrt(norms_a * norms_b)
    return Differences(
        count=a.size,
        out_of_tolerance=out,
        max_absolute=most,
        mean_absolute=mean / a.size if a.size else 0.0,
        max_relative=relative,
        max_ulp=steps,
        cosine=dots / norm if norm else (1.0 if norms_a == norms_b else 0.0),
        l2=math.sqrt(square),
        atol=atol,
        rtol=rtol,
        same_nonfinite=same,
        worst=tuple(int(axis) for axis in np.unravel_index(worst, a.shape)) if a.size else (),
    )


def ulps(a: Array, b: Array) -> Array:
    """How many representable numbers lie between two floats of one type; 0 for equal, and for NaN against NaN."""
    if a.dtype != b.dtype:
        raise CompareError(f"ULPs need one dtype; these are {a.dtype.name} and {b.dtype.name}")
    if a.dtype.kind in "iub":
        gap: Array = np.abs(a.astype(np.int64) - b.astype(np.int64))
        return gap
    if a.dtype.kind == "c":
        raise CompareError("ULPs of complex numbers are not defined; compare absolute or relative")
    bits: Any = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[a.dtype.itemsize]
    with np.errstate(over="ignore"):
        steps = np.abs(_ordered(a, bits) - _ordered(b, bits))
    wide_a, wide_b = _wide(a), _wide(b)
    one_nan = np.isnan(wide_a) != np.isnan(wide_b)
    steps = np.where(np.isnan(wide_a) & np.isnan(wide_b), 0, steps)
    return np.where(one_nan, np.iinfo(np.int64).max, steps)


def _ordered(array: Array, bits: Any) -> Array:
    """Floats as integers in the same order: -0 and +0 are one, neighbours differ by one."""
    whole = np.ascontiguousarray(array).view(bits).astype(np.int64).reshape(array.shape)
    return np.where(whole < 0, np.iinfo(bits).min - whole, whole)


def _wide(array: Any) -> Array:
    values = np.asarray(array)
    return np.abs(values).astype(np.float64) if values.dtype.kind == "c" else values.astype(np.float64)


def _raw_blocks(array: Array) -> Any:
    if array.flags.c_contiguous:
        flat = array.reshape(-1)
        for start in range(0, array.size, BLOCK):
            yield flat[start : start + BLOCK]
    elif array.ndim <= 1 or array[0].size == 0:
        yield array.reshape(-1)
    else:
        rows = max(1, BLOCK // array[0].size)
        for start in range(0, len(array), rows):
            yield array[start : start + rows].reshape(-1)


def _blocks(array: Array) -> Any:
    """(values as float64, position of the first) of one stretch of the tensor after another."""
    start = 0
    for part in _raw_blocks(array):
        yield _wide(part), start
        start += part.size
