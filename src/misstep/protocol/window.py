"""One answer about one tensor: what was wanted (statistics, a tile, a histogram, the next NaN), as a header and bytes.

The same for a live tensor inside the trainee and for a stored one inside the hub, so that nobody can tell the
difference except by the header's `origin`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from misstep.core.slices import Array, parse_slice
from misstep.core.stats import TensorStats
from misstep.errors import AddressError
from misstep.protocol import tiles
from misstep.protocol.tensor_payloads import CompareMode, ComparisonHeader, Found, TensorHeader, Tile
from misstep.protocol.views import stats_view

LARGEST_RAW = 256 << 20
"""Bytes of one slice sent whole."""


def look(
    array: Array,
    *,
    address: str,
    slice: str = "",
    want: tuple[str, ...] = ("stats", "tile:0,0,256,256"),
    origin: Literal["live", "stored"] = "live",
    step: int | None = None,
    rank: int = 0,
    id: str = "",
    known: TensorStats | None = None,
) -> tuple[TensorHeader, memoryview]:
    """A tensor through the wants of a TensorGet; `known` are statistics of the whole, so that it is not read again."""
    cut = parse_slice(slice, tuple(array.shape))
    part = cut.of(array)
    header = TensorHeader(
        address=address,
        dtype=array.dtype.name,
        shape=tuple(array.shape),
        slice=str(cut),
        sliced_shape=tuple(part.shape),
        data_dtype="uint8",
        data_shape=(),
        bytes=0,
        origin=origin,
        id=id,
        step=step,
        rank=rank,
    )
    data: Array | None = None
    for word in want:
        name, _, argument = word.partition(":")
        if name == "stats":
            whole = known is not None and part.size == array.size
            header.stats = stats_view(known if whole and known is not None else tiles.statistics(part))
        elif name == "hist":
            header.histogram = tiles.histogram(part, _numbers(argument or "64", 1, word)[0])
        elif name == "tile":
            header.tile = _tile(argument, word, want)
            data = tiles.tile(part, header.tile)
        elif name == "find":
            header.found = _find(part, argument, word)
        elif name == "raw":
            if part.nbytes > LARGEST_RAW:
                raise AddressError(
                    f"{address}{cut} has {part.nbytes >> 20} MiB; 256 MiB travel at most, slice it first"
                )
            data = tiles.readable(part)
        elif name != "pool":
            raise AddressError(
                f"cannot give {word!r} of a tensor; there are stats, hist:64, tile:0,0,256,256, find, raw"
            )
    if data is None:
        return header, memoryview(b"")
    header.data_dtype, header.data_shape, header.bytes = data.dtype.name, tuple(data.shape), data.nbytes
    return header, _bytes(data)


def side_by_side(
    a: Array,
    b: Array,
    *,
    names: tuple[str, str],
    mode: CompareMode = "difference",
    atol: float = 1e-8,
    rtol: float = 1e-5,
    slice: str = "",
    want: tuple[str, ...] = ("stats", "tile:0,0,256,256"),
    id: str = "",
) -> tuple[ComparisonHeader, memoryview]:
    """Two slices of one shape, how far they are apart, and a tile of the chosen view of the difference."""
    found = tiles.compare(a, b, atol=atol, rtol=rtol)
    shown = tiles.difference(a, b, mode)
    header = ComparisonHeader(
        a=names[0],
        b=names[1],
        mode=mode,
        slice=slice,
        sliced_shape=tuple(a.shape),
        data_dtype="uint8",
        data_shape=(),
        bytes=0,
        differences=found,
        id=id,
    )
    data: Array | None = None
    for word in want:
        name, _, argument = word.partition(":")
        if name == "stats":
            header.a_stats, header.b_stats = stats_view(tiles.statistics(a)), stats_view(tiles.statistics(b))
        elif name == "tile":
            header.tile = _tile(argument, word, want)
            data = tiles.tile(shown, header.tile)
    if data is None:
        return header, memoryview(b"")
    header.data_dtype, header.data_shape, header.bytes = data.dtype.name, tuple(data.shape), data.nbytes
    return header, _bytes(data)


def _bytes(data: Array) -> memoryview:
    return data.reshape(-1).view(np.uint8).data if data.size else memoryview(b"")


def _tile(argument: str, word: str, want: tuple[str, ...]) -> Tile:
    row, column, rows, columns = _numbers(argument, 4, word)
    return Tile(row, column, rows, columns, _pool(want))


def _find(part: Array, argument: str, word: str) -> Found:
    direction, _, position = argument.partition(":")
    if direction not in ("next", "previous"):
        raise AddressError(f"cannot read {word!r}; it looks like find:next:-1 or find:previous:100")
    return tiles.find_nonfinite(part, after=_numbers(position or "-1", 1, word)[0], forward=direction == "next")


def _pool(want: tuple[str, ...]) -> int:
    factors = [_numbers(word[5:], 1, word)[0] for word in want if word.startswith("pool:")]
    return factors[0] if factors else 1


def _numbers(text: str, count: int, word: str) -> list[int]:
    parts = text.split(",")
    try:
        numbers = [int(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) != count or any(abs(value) > 1 << 48 for value in numbers):
        raise AddressError(f"cannot read {word[:60]!r}; it looks like tile:0,0,256,256, hist:64 or pool:4")
    return numbers
