"""A tensor as REST answers it: a header in front of raw little-endian bytes, or why its values are not here."""

from __future__ import annotations

from typing import Literal

from misstep.protocol.views import Number, Part, StatsView

UnavailableReason = Literal[
    "not_captured", "not_watched", "freed", "too_large", "other_rank", "running", "no_such_step", "unknown"
]
CompareMode = Literal["a", "b", "difference", "absolute", "relative", "ulp"]


class Histogram(Part):
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    nan: int = 0
    pos_inf: int = 0
    neg_inf: int = 0


class Found(Part):
    """The next element that is not finite, in the order of the slice's memory; None when there is none."""

    index: tuple[int, ...] | None
    value: Number | None = None


class Tile(Part):
    """A rectangle of the sliced tensor; row and column count pooled blocks when pool > 1."""

    row: int
    column: int
    rows: int
    columns: int
    pool: int = 1


class TensorHeader(Part):
    """In front of a tile's bytes: u32 little-endian header length, this as JSON, then `bytes` bytes in C order.

    `data_dtype` is what the bytes are: bfloat16 and float8 are widened to float32. With pool > 1 the data are
    float32 and each element stands for pool x pool: NaN before Inf before the value of the greatest magnitude.
    """

    address: str
    dtype: str
    shape: tuple[int, ...]
    slice: str
    sliced_shape: tuple[int, ...]
    data_dtype: str
    data_shape: tuple[int, ...]
    bytes: int
    origin: Literal["live", "stored"]
    id: str = ""
    tile: Tile | None = None
    stats: StatsView | None = None
    """Of the slice asked for."""
    histogram: Histogram | None = None
    found: Found | None = None
    step: int | None = None
    rank: int = 0


class Differences(Part):
    """Two tensors, element by element."""

    count: int
    out_of_tolerance: int
    max_absolute: Number
    mean_absolute: Number
    max_relative: Number
    max_ulp: int
    cosine: Number
    l2: Number
    atol: float
    rtol: float
    same_nonfinite: bool
    worst: tuple[int, ...] = ()


class ComparisonHeader(Part):
    a: str
    b: str
    mode: CompareMode
    slice: str
    sliced_shape: tuple[int, ...]
    data_dtype: str
    data_shape: tuple[int, ...]
    bytes: int
    differences: Differences
    id: str = ""
    tile: Tile | None = None
    a_stats: StatsView | None = None
    b_stats: StatsView | None = None


class Unavailable(Part):
    """The tensor is known but its values are not here: why, and the command that gets them."""

    address: str
    reason: UnavailableReason
    text: str
    code: str = "unavailable"
