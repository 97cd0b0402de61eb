"""How far two arrays are apart: every measure in one pass over the memory.

The kernel reads both sides once, in float64 accumulators, and gives all numbers together; what is derived from them
(`relative`, `peak`) is arithmetic on that record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.core.stats import TensorStats
from misstep.errors import CompareError
from misstep.kernels import compare as compare_kernel

RTOL, ATOL = 1e-4, 1e-6
"""For the share of elements `within`: what the field's comparison tools use; the verdict does not depend on it."""


@dataclass(frozen=True, slots=True)
class Measures:
    """Two arrays of one shape, measured against each other."""

    count: int
    equal: int
    within: int
    max_abs: float
    mean_abs: float
    max_rel: float
    mean_rel: float
    rmse: float
    cosine: float
    max_ulp: int
    first_different: int
    """Index into the flattened arrays; -1 when all are equal."""
    nonfinite_mismatch: int
    """Elements that are NaN or Inf on one side only, or differ in which."""
    norm_left: float
    norm_right: float
    estimated: bool = False
    """Known from statistics alone: the least the two can be apart."""

    @property
    def identical(self) -> bool:
        return self.equal == self.count

    @property
    def scale(self) -> float:
        """The root mean square of the larger side: what an error is held against."""
        return max(self.norm_left, self.norm_right) / math.sqrt(self.count) if self.count else 0.0

    @property
    def relative(self) -> float:
        """‖a−b‖ / max(‖a‖, ‖b‖): the one number for how different two tensors are."""
        if self.identical or not self.count:
            return 0.0
        return self.rmse / self.scale if self.scale else math.inf

    @property
    def error(self) -> float:
        """How far single elements may be apart: a length hides errors that point every way."""
        return min(2.0, self.relative * math.sqrt(self.count)) if self.estimated else self.relative

    @property
    def peak(self) -> float:
        """The largest single difference against the usual size of an element."""
        if self.identical or not self.count:
            return 0.0
        return self.max_abs / self.scale if self.scale else math.inf

    @property
    def stretch(self) -> float:
        """How much longer one side is than the other: rounding leaves the length alone, a wrong factor does not."""
        longer, shorter = max(self.norm_left, self.norm_right), min(self.norm_left, self.norm_right)
        return longer / shorter - 1 if shorter > 0 else math.inf

    @property
    def share_within(self) -> float:
        return self.within / self.count if self.count else 1.0

    def first_index(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """Where the first differing element stands."""
        if self.first_different < 0:
            return None
        return tuple(int(i) for i in np.unravel_index(self.first_different, shape or (1,)))


def measure(left: NDArray[Any], right: NDArray[Any], *, rtol: float = RTOL, atol: float = ATOL) -> Measures:
    """Every measure of two arrays of the same shape; NaN in the same place counts as equal.

    >>> measure(a, b).relative
    """
    if left.shape != right.shape:
        raise CompareError(f"shapes differ: {left.shape} and {right.shape}")
    record = compare_kernel(left, right, rtol=rtol, atol=atol)
    return Measures(
        count=int(record["count"]),
        equal=int(record["equal"]),
        within=int(record["within"]),
        max_abs=float(record["max_abs"]),
        mean_abs=float(record["mean_abs"]),
        max_rel=float(record["max_rel"]),
        mean_rel=float(record["mean_rel"]),
        rmse=float(record["rmse"]),
        cosine=float(record["cosine"]),
        max_ulp=int(record["max_ulp"]),
        first_different=int(record["first_different"]),
        nonfinite_mismatch=int(record["nonfinite_mismatch"]),
        norm_left=float(record["norm_a"]),
        norm_right=float(record["norm_b"]),
    )


def measure_statistics(left: TensorStats, right: TensorStats) -> Measures:
    """The same from what is known of two tensors without their values; what one side does not know is left out."""
    names = ("nan", "pos_inf", "neg_inf", "zeros", "min", "max", "mean", "abs_mean", "l2", "std")
    known = [(name, getattr(left, name), getattr(right, name)) for name in names]
    known = [(name, a, b) for name, a, b in known if not (math.isnan(a) or math.isnan(b))]
    equal = all(a == b for _, a, b in known)
    gaps = {name: abs(a - b) for name, a, b in known}
    count = max(1, left.count)
    norms = [one.l2 if not math.isnan(one.l2) else _size(one) * math.sqrt(count) for one in (left, right)]
    scale = max(norms) / math.sqrt(count)
    length = gaps.get("l2", 0.0) / math.sqrt(count)
    apart = max(length, *(gaps.get(name, 0.0) for name in ("mean", "abs_mean", "std")))
    bad = int(sum(gaps.get(name, 0) for name in ("nan", "pos_inf", "neg_inf")))
    return Measures(
        count=count,
        equal=count if equal else 0,
        within=count if apart <= RTOL * scale else 0,
        max_abs=max(gaps.get("min", 0.0), gaps.get("max", 0.0)),
        mean_abs=gaps.get("mean", 0.0),
        max_rel=math.nan,
        mean_rel=math.nan,
        rmse=apart,
        cosine=math.nan,
        max_ulp=-1,
        first_different=-1,
        nonfinite_mismatch=bad,
        norm_left=norms[0],
        norm_right=norms[1],
        estimated=True,
    )


def _size(stats: TensorStats) -> float:
    """The usual size of an element, where the length is not known."""
    sizes = [abs(value) for value in (stats.abs_mean, stats.min, stats.max) if not math.isnan(value)]
    return max(sizes, default=0.0)
