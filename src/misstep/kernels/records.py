"""The rows the kernels write and the codes they read, shared by the native engine and its numpy twin.

A code names an element type (`DTYPES["float32"]`); it is the code the statistics file uses. A row is little endian,
eight bytes a field, without padding, as native/records.h has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from misstep.core.stats import DTYPE_CODES, ITEM_BYTES, SUMMARY

__all__ = ["CHANGE", "COMPARE", "DTYPES", "ITEM_BYTES", "SUMMARY", "Engine", "exponent_bins", "exponent_range"]

Table: TypeAlias = NDArray[Any]
Integers: TypeAlias = Sequence[int] | NDArray[np.int64]
Buffer: TypeAlias = bytes | bytearray | memoryview

_FLOATS = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz")
_SHORT = (*_FLOATS, "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool", "c64", "c128")

DTYPES: dict[str, int] = {name: code for name, code in DTYPE_CODES.items() if name != "unknown"} | {
    short: code for code, short in enumerate(_SHORT)
}
"""Element type by name, long (`float8_e4m3fn`) or short (`f8e4m3`)."""

CHECK_START = 0x6D697373
CHECK_WORD = 5
CHECK_WEIGHTS = np.array([pow(0x9E3779B1, word + 1, 2**32) for word in range(32)], dtype="<u4")
CHECK_WEIGHTS[CHECK_WORD] = 0
"""How a row of stats.bin checks itself: see store/statsfile.py."""

CHANGE = np.dtype(
    [
        ("count", "<i8"),
        ("within", "<i8"),  # |now - before| <= atol + rtol * |before|; equal infinities too
        ("nan", "<i8"),  # pairs with a NaN on either side
        ("inf", "<i8"),  # pairs with an infinity and no NaN
        ("mean_abs", "<f8"),  # this and the rest: over the pairs of two finite values
        ("max_abs", "<f8"),
        ("mean_abs_before", "<f8"),
    ]
)

COMPARE = np.dtype(
    [
        ("count", "<i8"),
        ("within", "<i8"),  # |a - b| <= atol + rtol * |b|; equal infinities too, NaN never
        ("equal", "<i8"),  # the same bits, or NaN on both sides
        ("nonfinite_mismatch", "<i8"),  # NaN or infinite on one side only, or differently so
        ("first_different", "<i8"),  # flat index of the first pair that is not `equal`; -1 when all are
        ("max_ulp", "<i8"),  # representable values in between; -1 for two types or complex numbers
        ("max_abs", "<f8"),  # this and the rest: over the pairs of two finite values
        ("mean_abs", "<f8"),
        ("max_rel", "<f8"),  # |a - b| / |b|; where b is 0, against |a|, so 1 unless both are 0
        ("mean_rel", "<f8"),
        ("rmse", "<f8"),
        ("cosine", "<f8"),  # 1 when both are all zero, 0 when one is
        ("norm_a", "<f8"),
        ("norm_b", "<f8"),
    ]
)

_FLOAT_EXPONENTS = {
    "f64": (-1022, 1023),
    "f32": (-126, 127),
    "f16": (-14, 15),
    "bf16": (-126, 127),
    "f8e4m3": (-6, 8),
    "f8e5m2": (-14, 15),
    "f8e4m3fnuz": (-7, 7),
    "f8e5m2fnuz": (-15, 15),
    "bool": (0, 0),
    "c64": (-1022, 1023),  # by magnitude, as doubles
    "c128": (-1022, 1023),
}
_RANGES = {DTYPES[short]: _FLOAT_EXPONENTS.get(short, (0, 63)) for short in _SHORT}


def exponent_range(dtype: int) -> tuple[int, int]:
    """The smallest and the largest power of two a type's normal values reach: (-126, 127) for float32."""
    return _RANGES[dtype]


def exponent_bins(dtype: int) -> int:
    """How long an exponent histogram of this type is: zero, subnormal, infinite, NaN, then one bin a power of two."""
    low, high = exponent_range(dtype)
    return 4 + high - low + 1


class Engine(Protocol):
    """What the native module and the numpy twin both are. Addresses are plain integers; `out` is written in place."""

    def summarize_memory(self, address: int, count: int, dtype: int, out: Table, row: int, /) -> None: ...
    def summarize_strided(
        self, address: int, shape: Integers, strides: Integers, dtype: int, out: Table, row: int, /
    ) -> None: ...
    def summarize_many(
        self, addresses: Integers, counts: Integers, dtypes: Integers | int, out: Table, first_row: int = 0, /
    ) -> None: ...
    def nonfinite_many(self, addresses: Integers, counts: Integers, dtypes: Integers | int, /) -> bytearray: ...
    def digest(self, address: int, nbytes: int, /) -> int: ...
    def digest_bytes(self, buffer: Buffer, /) -> int: ...
    def digest_many(self, addresses: Integers, nbytes: Integers, /) -> list[int]: ...
    def change_memory(
        self,
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
    ) -> None: ...
    def compare_memory(
        self,
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
    ) -> None: ...
    def exponents_memory(self, address: int, count: int, dtype: int, bins: NDArray[np.int64], /) -> None: ...
    def finish_rows(
        self,
        tensors: list[int],
        shapes: list[int],
        dtypes: list[int],
        inputs: list[tuple[int, ...] | None],
        aliases: dict[int, int],
        step: int,
        head: Table,
        summary: Table,
        /,
    ) -> int: ...
    def first_bad(self, summary: Table, count: int, /) -> int: ...
    def seal_rows(self, head: Table, summary: Table, out: Table, count: int, /) -> None: ...
    def step_line(
        self,
        number: int,
        time: float,
        loss: float | None,
        seconds: float,
        rate: float | None,
        overhead: float,
        level: int,
        optimizer: str,
        rows: int,
        norm: float | None,
        /,
    ) -> bytes: ...
