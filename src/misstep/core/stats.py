"""The numbers that summarise a tensor, as a record in memory and as an object to read.

The record layouts are shared by the native kernels, the statistics file and every reader; a field is only ever
appended. Everything from `min` to `std` is over the finite values, in float64; counts are over all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from misstep.sentences import hits
from misstep.sentences.text import Sentence, clauses

Array = npt.NDArray[Any]

SUMMARY = np.dtype(
    [
        ("count", "<i8"),
        ("nan", "<i8"),
        ("pos_inf", "<i8"),
        ("neg_inf", "<i8"),
        ("zeros", "<i8"),
        ("negatives", "<i8"),
        ("positives", "<i8"),
        ("min", "<f8"),
        ("max", "<f8"),
        ("mean", "<f8"),
        ("abs_mean", "<f8"),
        ("l2", "<f8"),
        ("std", "<f8"),
    ]
)
"""What one pass over a tensor's memory yields: 104 bytes."""

HEAD = np.dtype(
    [
        ("tensor", "<u4"),  # which tensor: an index into the run's tensor table
        ("step", "<u4"),
        ("order", "<u4"),  # position in the execution order of the step
        ("flags", "<u2"),
        ("dtype", "u1"),  # an index into DTYPE_NAMES
        ("spare", "u1"),
        ("shape", "<u4"),  # an index into the run's shape table
        ("check", "<u4"),  # of the other 124 bytes (store/statsfile.py), filled in by the writer
    ]
)

ROW = np.dtype(HEAD.descr + SUMMARY.descr)
"""One line of the statistics file: 128 bytes."""

assert ROW.itemsize == 128
assert SUMMARY.itemsize == 104

INPUTS_SEEN, INPUTS_BAD, ALIAS, QUEUED = 1, 2, 4, 8
"""Flags of a row: the node's inputs were looked at; one of them was not finite; same memory as an earlier row of the
step, summarised once; summarised on the device and fetched at the end of the step."""

DTYPE_NAMES = (
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex64",
    "complex128",
    "unknown",
)
"""In the order of the kernels' codes; append only."""

DTYPE_CODES = {name: code for code, name in enumerate(DTYPE_NAMES)}
ITEM_BYTES = (8, 4, 2, 2, 1, 1, 1, 1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 8, 16, 0)


@dataclass(frozen=True, slots=True)
class TensorStats:
    """What is known of a tensor without keeping it."""

    count: int
    nan: int
    pos_inf: int
    neg_inf: int
    zeros: int
    negatives: int
    positives: int
    min: float
    max: float
    mean: float
    abs_mean: float
    l2: float
    std: float
    dtype: str = "unknown"
    shape: tuple[int, ...] = ()

    @classmethod
    def of(cls, record: np.void, *, dtype: str = "unknown", shape: tuple[int, ...] = ()) -> TensorStats:
        """From a SUMMARY or ROW record."""
        names = SUMMARY.names or ()
        values: dict[str, Any] = dict(zip(names, record.item()[-len(names) :]))  # the summary stands last in a row too
        return cls(**values, dtype=dtype, shape=shape)

    @property
    def nonfinite(self) -> int:
        return self.nan + self.pos_inf + self.neg_inf

    @property
    def finite(self) -> bool:
        return self.nonfinite == 0

    @property
    def zero_percentage(self) -> float:
        return 100.0 * self.zeros / self.count if self.count else 0.0

    def describe(self) -> Sentence:
        """One line for eyes: '1,204 NaN of 65,536; the rest -3.1 … 4.2'."""
        if self.finite:
            spread = hits.SPREAD.of(low=self.min, high=self.max, mean=self.mean)
            return hits.EMPTY.of() if math.isnan(self.min) else spread
        rest = "" if math.isnan(self.min) else hits.REST.of(low=self.min, high=self.max)
        return clauses([self.bad(), rest]) if rest else self.bad()

    def bad(self) -> Sentence:
        """How much is not finite: '1,204 NaN, 3 +Inf of 65,536'."""
        counts = {"nan": self.nan, "pos_inf": self.pos_inf, "neg_inf": self.neg_inf}
        return hits.BAD.of(kinds=[hits.SOME[kind].of(n=n) for kind, n in counts.items() if n], count=self.count)
