"""The numpy twin: the same functions as the native engine, with the same answers, where no compiler was at hand.

Memory is read 64 Ki elements at a time, as float64, so a large tensor needs no large copy. Summaries live here; pairs
of tensors are in _numpy_pairs.py, questions about bits in _numpy_bits.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.kernels._numpy_bits import digest, digest_bytes, digest_many, exponents_memory
from misstep.kernels._numpy_memory import (
    BLOCK,
    LARGEST,
    as_rows,
    blocks,
    check_block,
    check_rows,
    codes_of,
    sizes_of,
    stored,
    strided,
)
from misstep.kernels._numpy_pairs import change_memory, compare_memory
from misstep.kernels._numpy_rows import finish_rows, first_bad, seal_rows, step_line
from misstep.kernels.records import SUMMARY, Integers, Table

__all__ = [
    "change_memory",
    "compare_memory",
    "digest",
    "digest_bytes",
    "digest_many",
    "exponents_memory",
    "finish_rows",
    "first_bad",
    "nonfinite_many",
    "seal_rows",
    "step_line",
    "summarize_many",
    "summarize_memory",
    "summarize_strided",
]


def summarize_memory(address: int, count: int, dtype: int, out: Table, row: int, /) -> None:
    check_block(address, count, dtype)
    check_rows(out, row, 1, SUMMARY.itemsize)
    as_rows(out, SUMMARY)[row] = _summary(stored(address, count, dtype), dtype)


def summarize_strided(address: int, shape: Integers, strides: Integers, dtype: int, out: Table, row: int, /) -> None:
    if len(shape) != len(strides):
        raise ValueError(f"a shape of {len(shape)} axes with {len(strides)} strides")
    for axis, size in enumerate(shape):
        if size < 0:
            raise ValueError(f"axis {axis} of size {size}: not a shape a tensor can have")
    check_block(address, math.prod(int(size) for size in shape), dtype)
    check_rows(out, row, 1, SUMMARY.itemsize)
    repeats = math.prod(int(size) for size, step in zip(shape, strides) if step == 0)
    kept = [(int(size), int(step)) for size, step in zip(shape, strides) if step != 0]
    if repeats == 0 or any(size == 0 for size, _ in kept):
        items = stored(0, 0, dtype)
    else:
        items = strided(address, [size for size, _ in kept], [step for _, step in kept], dtype)
    as_rows(out, SUMMARY)[row] = _summary(items, dtype, repeats=repeats)


def summarize_many(
    addresses: Integers, counts: Integers, dtypes: Integers | int, out: Table, first_row: int = 0, /
) -> None:
    codes = _same_length(addresses, counts, dtypes)
    check_rows(out, first_row, len(addresses), SUMMARY.itemsize)
    for place, (address, count, code) in enumerate(zip(addresses, counts, codes)):
        summarize_memory(int(address), int(count), code, out, first_row + place)


def nonfinite_many(addresses: Integers, counts: Integers, dtypes: Integers | int, /) -> bytearray:
    flags = bytearray(len(addresses))
    for place, (address, count, code) in enumerate(zip(addresses, counts, _same_length(addresses, counts, dtypes))):
        check_block(int(address), int(count), code)
        items = stored(int(address), int(count), code)
        flags[place] = any(not np.isfinite(sizes_of(part, code)).all() for part in blocks(items))
    return flags


@dataclass(slots=True)
class _Tally:
    finite: int = 0
    nan: int = 0
    pos_inf: int = 0
    neg_inf: int = 0
    zeros: int = 0
    negatives: int = 0
    low: float = math.inf
    high: float = -math.inf
    mean: float = 0.0
    spread: float = 0.0  # sum of (x - mean)^2
    sizes: float = 0.0
    squares: float = 0.0


def _summary(items: NDArray[Any], dtype: int, *, repeats: int = 1) -> tuple[float, ...]:
    tally = _count(items, dtype, 1.0)
    largest = max(-tally.low, tally.high)
    scale = 1.0
    # Squares of such values leave the range of a float64: scaled by a power of two, which is exact.
    if tally.finite and not (2.0**-400 <= largest <= 2.0**400):
        scale = 2.0**-600 if largest > 1 else 2.0**600
        tally = _count(items, dtype, scale)
    counts = (items.size, tally.nan, tally.pos_inf, tally.neg_inf, tally.zeros, tally.negatives + tally.neg_inf)
    positives = items.size - tally.nan - tally.zeros - tally.negatives - tally.neg_inf
    whole = tuple(n * repeats for n in (*counts, positives))
    if not tally.finite:
        return (*whole, math.nan, math.nan, math.nan, math.nan, 0.0, math.nan)
    return (
        *whole,
        tally.low + 0.0,
        tally.high + 0.0,
        tally.low + 0.0 if tally.low == tally.high else tally.mean / scale,  # all equal: exactly so
        tally.sizes / tally.finite / scale,
        min(math.sqrt(tally.squares) * math.sqrt(repeats) / scale, LARGEST),
        0.0 if tally.low == tally.high else min(math.sqrt(tally.spread / tally.finite) / scale, LARGEST),
    )


@np.errstate(all="ignore")
def _count(items: NDArray[Any], dtype: int, scale: float) -> _Tally:
    tally = _Tally()
    for part in _parts(items):
        values = sizes_of(part, dtype)
        good = np.isfinite(values)
        tally.nan += int(np.isnan(values).sum())
        tally.pos_inf += int((values == math.inf).sum())
        tally.neg_inf += int((values == -math.inf).sum())
        kept = values[good]
        n = kept.size
        if not n:
            continue
        tally.zeros += int((kept == 0).sum())
        tally.negatives += int((kept < 0).sum())
        tally.low = min(tally.low, float(kept.min()))
        tally.high = max(tally.high, float(kept.max()))
        kept = kept * scale
        mean = float(kept.mean())
        spread = float(((kept - mean) ** 2).sum())
        together, delta = tally.finite + n, mean - tally.mean
        tally.spread += spread + delta * delta * (tally.finite * n / together)
        tally.mean += delta * (n / together)
        tally.sizes += float(np.abs(kept).sum())
        tally.squares += spread + n * mean * mean
        tally.finite = together
    return tally


def _parts(items: NDArray[Any]) -> Any:
    """An array of any layout in pieces of at most BLOCK elements, without a copy of the whole."""
    if items.size == 0:
        return iter(())
    return np.nditer(items, ["external_loop", "buffered"], [["readonly"]], order="K", buffersize=BLOCK)


def _same_length(addresses: Integers, counts: Integers, dtypes: Integers | int) -> list[int]:
    codes = codes_of(dtypes, len(addresses))
    if not len(addresses) == len(counts) == len(codes):
        raise ValueError(
            f"{len(addresses)} addresses, {len(counts)} counts and {len(codes)} dtypes: "
            "they describe the same tensors and must be equally many"
        )
    return codes
