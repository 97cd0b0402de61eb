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
