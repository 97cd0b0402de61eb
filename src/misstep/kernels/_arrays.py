"""The kernels for people who hold an array rather than an address: any numpy array, of any layout.

    ArrayKernels(engine).summarize(array)["mean"]

The engine sees memory only; here a dtype becomes a code, byte-swapped arrays are
turned, and results come back as records.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from misstep.kernels.records import CHANGE, COMPARE, DTYPES, SUMMARY, Engine, exponent_bins


def code_of(dtype: np.dtype[Any]) -> int:
    """The code of a numpy (or ml_dtypes) element type."""
    try:
        return DTYPES[dtype.name]
    except KeyError:
        raise TypeError(f"no statistics for dtype {dtype}; there are kernels for {', '.join(_names())}") from None


class ArrayKernels:
    """The array-level functions over one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def summarize(self, array: ArrayLike) -> np.void:
        """The statistics of an array, as a SUMMARY record.

        >>> summarize(np.array([1.0, -2.0, np.nan]))["abs_mean"]
        1.5
        """
        values, code = _readable(array)
        out = np.empty(1, SUMMARY)
        size = values.itemsize
        if any(step % size for step in values.strides):
            values = np.ascontiguousarray(values)
        strides = [step // size for step in values.strides]
        self.engine.summarize_strided(_address(values), values.shape, strides, code, out, 0)
        return _record(out)

    def change(
        self, now: ArrayLike, before: ArrayLike, *, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
    ) -> np.void:
        """What happened to an array since `before`, as a CHANGE record."""
        new, code = _dense(now)
        old, old_code = _dense(before)
        if code != old_code or new.size != old.size:
            raise ValueError(
                f"cannot tell the change from {old.size} x {old.dtype} to {new.size} x {new.dtype}: "
                "both sides need one dtype and one size; use compare() for two dtypes"
            )
        out = np.empty(1, CHANGE)
        self.engine.change_memory(_address(new), _address(old), new.size, code, rtol, atol, out, 0, equal_nan)
        return _record(out)

    def compare(self, a: ArrayLike, b: ArrayLike, *, rtol: float = 1e-5, atol: float = 1e-8) -> np.void:
        """How close two arrays are, b being the reference, as a COMPARE record. The dtypes may differ."""
        left, left_code = _dense(a)
        right, right_code = _dense(b)
        if left.size != right.size:
            raise ValueError(f"cannot compare {left.size} elements with {right.size}: align the shapes first")
        out = np.empty(1, COMPARE)
        self.engine.compare_memory(
            _address(left), left_code, _address(right), right_code, left.size, rtol, atol, out, 0
        )
        return _record(out)

    def exponent_histogram(self, array: ArrayLike) -> NDArray[np.int64]:
        """How many values lie in each power of two.

        [0] zeros  [1] subnormals  [2] infinities  [3] NaN  [4 + k] values with 2^(low+k) <= |x| < 2^(low+k+1),
        where `low, high = exponent_range(dtype)`. Complex numbers count by magnitude, in the bins of a float64.
        """
        values, code = _dense(array)
        bins = np.zeros(exponent_bins(code), np.int64)
        self.engine.exponents_memory(_address(values), values.size, code, bins)
        return bins


def _readable(array: ArrayLike) -> tuple[NDArray[Any], int]:
    values = np.asarray(array)
    code = code_of(values.dtype)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return values, code


def _dense(array: ArrayLike) -> tuple[NDArray[Any], int]:
    values, code = _readable(array)
    return np.ascontiguousarray(values), code


def _address(values: NDArray[Any]) -> int:
    return int(values.__array_interface__["data"][0])


def _record(out: NDArray[Any]) -> np.void:
    record = out[0]
    assert isinstance(record, np.void)
    return record


def _names() -> list[str]:
    return [name for name in DTYPES if not name[1:2].isdigit() and name != "bf16"]
