"""Memory as numpy sees it: an address becomes an array of stored items, stored items become float64.

bfloat16 is decoded by shifting, float8 by a table of its 256 values, so numpy alone is enough.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.kernels.records import DTYPES, ITEM_BYTES, Integers, Table

BLOCK = 1 << 16
"""Elements read at a time: half a megabyte of float64."""

LARGEST = float(np.finfo(np.float64).max)

BF16, BOOL = DTYPES["bf16"], DTYPES["bool"]
COMPLEX = (DTYPES["c64"], DTYPES["c128"])

_STORAGE = {"f64": "f8", "f32": "f4", "f16": "f2", "bf16": "u2", "c64": "c8", "c128": "c16", "bool": "u1"}
_STORAGE |= {f"{kind}{8 * size}": f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)}
_STORAGE |= dict.fromkeys(("f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz"), "u1")
_STORED: dict[int, np.dtype[Any]] = {DTYPES[name]: np.dtype(storage) for name, storage in _STORAGE.items()}


def _float8(exponent_bits: int, bias: int, *, infinities: bool, unsigned_zero: bool) -> NDArray[np.float64]:
    codes = np.arange(256)
    fraction_bits = 7 - exponent_bits
    exponents, fractions = (codes & 127) >> fraction_bits, codes & ((1 << fraction_bits) - 1)
    whole = fractions + ((exponents > 0) << fraction_bits)
    sizes = np.ldexp(whole.astype(float), np.maximum(exponents, 1) - bias - fraction_bits)
    if infinities:
        sizes[exponents == (1 << exponent_bits) - 1] = np.nan
        sizes[(exponents == (1 << exponent_bits) - 1) & (fractions == 0)] = np.inf
    values = np.where(codes < 128, sizes, -sizes)
    if unsigned_zero:
        values[0x80] = np.nan
    elif not infinities:
        values[[0x7F, 0xFF]] = np.nan
    return values


FLOAT8 = {
    DTYPES["f8e4m3"]: _float8(4, 7, infinities=False, unsigned_zero=False),
    DTYPES["f8e5m2"]: _float8(5, 15, infinities=True, unsigned_zero=False),
    DTYPES["f8e4m3fnuz"]: _float8(4, 8, infinities=False, unsigned_zero=True),
    DTYPES["f8e5m2fnuz"]: _float8(5, 16, infinities=False, unsigned_zero=True),
}


def check_block(address: int, count: int, dtype: int) -> None:
    """The native engine's objections, in the same words."""
    if dtype not in _STORED:
        raise ValueError(f"unknown dtype code {dtype}; the codes are in misstep.kernels.DTYPES")
    if count < 0:
        raise ValueError(f"a tensor of {count} elements: the count cannot be negative")
    if count > 0 and address == 0:
        raise ValueError(f"a tensor of {count} elements at address 0: it has no memory (a meta or freed tensor?)")


def check_rows(out: Table, first: int, count: int, size: int) -> None:
    rows = out.nbytes // size
    if first < 0 or count > rows - first:
        raise IndexError(f"rows {first} to {first + count} do not fit a table of {rows} rows of {size} bytes")


def as_rows(out: Table, layout: np.dtype[Any]) -> NDArray[Any]:
    """The caller's table as records, whatever it calls its own fields."""
    return out.reshape(-1).view(np.uint8)[: out.nbytes // layout.itemsize * layout.itemsize].view(layout)


def stored(address: int, count: int, dtype: int) -> NDArray[Any]:
    """The items at an address, as they are stored; no copy."""
    kind = _STORED[dtype]
    if count == 0:
        return np.empty(0, kind)
    memory = (ctypes.c_char * (count * kind.itemsize)).from_address(address)
    items: NDArray[Any] = np.frombuffer(memoryview(memory), kind)
    return items


def strided(address: int, shape: Integers, strides: Integers, dtype: int) -> NDArray[Any]:
    """The items of a tensor of any strides (in elements, negative and 0 too), as they are stored; no copy."""
    size = ITEM_BYTES[dtype]
    reach = [(int(length) - 1) * int(step) for length, step in zip(shape, strides, strict=True)]
    below, above = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    items = stored(address + below * size, above - below + 1, dtype)
    return np.lib.stride_tricks.as_strided(
        items[-below:], [int(n) for n in shape], [int(step) * size for step in strides], writeable=False
    )


def blocks(items: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for start in range(0, items.size, BLOCK):
        yield items[start : start + BLOCK]


def values_of(items: NDArray[Any], dtype: int) -> NDArray[Any]:
    """Stored items as float64, complex ones as complex128."""
    if dtype in FLOAT8:
        decoded: NDArray[np.float64] = FLOAT8[dtype][items]
        return decoded
    if dtype == BF16:
        widened: NDArray[np.float32] = (items.astype(np.uint32) << 16).view(np.float32)
        return widened.astype(np.float64)
    if dtype == BOOL:
        items = items != 0
    wide: NDArray[Any] = items.astype(np.complex128 if dtype in COMPLEX else np.float64)
    return wide


def magnitude(values: NDArray[Any]) -> NDArray[np.float64]:
    """|z|, where a NaN in either part wins over an infinity in the other, and two finite parts stay finite."""
    parts_nan = np.isnan(values.real) | np.isnan(values.imag)
    parts_finite = np.isfinite(values.real) & np.isfinite(values.imag)
    sizes = np.hypot(values.real, values.imag)
    sizes = np.where(parts_finite, np.minimum(sizes, LARGEST), sizes)
    return np.where(parts_nan, np.nan, sizes)


def sizes_of(items: NDArray[Any], dtype: int) -> NDArray[np.float64]:
    """Stored items as the real numbers that are summarised: complex ones by magnitude."""
    values = values_of(items, dtype)
    return magnitude(values) if dtype in COMPLEX else values


def codes_of(dtypes: Integers | int, count: int) -> list[int]:
    return [dtypes] * count if isinstance(dtypes, int) else [int(code) for code in dtypes]
