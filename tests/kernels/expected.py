"""What the kernels should say, computed the slow and obvious way: whole arrays in float64, sums in longdouble."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

FLOATS = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}
INTEGERS = {name: np.dtype(name) for name in (f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
COMPLEX = {"complex64": np.complex64, "complex128": np.complex128}
EVERY: dict[str, Any] = {**FLOATS, **INTEGERS, **COMPLEX, "bool": np.bool_}

COUNTS = ("count", "nan", "pos_inf", "neg_inf", "zeros", "negatives", "positives")

# float32 lanes are flushed to float64 every 32 additions: a few float32 roundings (6e-8 each) at worst.
RELATIVE = {"float64": 1e-12, "int64": 1e-12, "uint64": 1e-12, "complex128": 1e-12}
RELATIVE_DEFAULT = 1e-6


def summary(array: np.ndarray) -> dict[str, float]:
    values = array.reshape(-1)
    if np.iscomplexobj(values):
        parts = values.astype(np.complex128)
        broken = np.isnan(parts.real) | np.isnan(parts.imag)
        values = np.where(broken, np.nan, np.hypot(parts.real, parts.imag))
    with np.errstate(invalid="ignore"):  # a signalling NaN among the bit patterns
        exact = values.astype(np.float64).astype(np.longdouble)
    finite = exact[np.isfinite(exact)]
    n = finite.size
    mean = finite.mean() if n else math.nan
    return {
        "count": exact.size,
        "nan": int(np.isnan(exact).sum()),
        "pos_inf": int((exact == math.inf).sum()),
        "neg_inf": int((exact == -math.inf).sum()),
        "zeros": int((exact == 0).sum()),
        "negatives": int((exact < 0).sum()),
        "positives": int((exact > 0).sum()),
        "min": float(finite.min()) if n else math.nan,
        "max": float(finite.max()) if n else math.nan,
        "mean": float(mean),
        "abs_mean": float(np.abs(finite).mean()) if n else math.nan,
        "l2": min(float(np.sqrt((finite * finite).sum())), np.finfo(float).max) if n else 0.0,  # never infinite
        "std": float(np.sqrt(((finite - mean) ** 2).mean())) if n else math.nan,
    }


def assert_summary(record: np.void, array: np.ndarray, *, rtol: float | None = None) -> None:
    """Counts and extremes exactly; sums within the type's tolerance, the mean judged against abs_mean."""
    want = summary(array)
    rtol = rtol or RELATIVE.get(array.dtype.name, RELATIVE_DEFAULT)
    extremes = () if np.iscomplexobj(array) else ("min", "max")  # |z| itself is rounded, in one order or another
    for name in (*COUNTS, *extremes):
        assert record[name] == want[name] or (math.isnan(record[name]) and math.isnan(want[name])), (name, record, want)
    for name in ("abs_mean", "l2", "min", "max"):
        np.testing.assert_allclose(record[name], want[name], rtol=rtol, atol=0, err_msg=name)
    np.testing.assert_allclose(
        record["mean"], want["mean"], rtol=0, atol=rtol * (want["abs_mean"] or 1), err_msg="mean"
    )
    # A float64 mean is known to a rounding of the largest value, and so is what is left after subtracting it.
    floor = 4 * np.finfo(float).eps * max(-want["min"], want["max"]) if record["nan"] < record["count"] else 0.0
    np.testing.assert_allclose(record["std"], want["std"], rtol=4 * rtol, atol=floor, err_msg="std")
