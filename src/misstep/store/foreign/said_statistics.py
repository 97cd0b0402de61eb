"""Statistics as another tool wrote them, in our words: what it does not say stays unknown.

A table with the maximum Inf and no count of them still says that there is an Inf: never is such a tensor called fine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from misstep.core.stats import TensorStats

MINDSPORE = {
    "min": "Min Value",
    "max": "Max Value",
    "mean": "Avg Value",
    "l2": "L2Norm Value",
    "nan": "NaN Count",
    "pos_inf": "Positive Inf Count",
    "neg_inf": "Negative Inf Count",
    "zeros": "Zero Count",
    "negatives": "Negative Zero Count",
    "positives": "Positive Zero Count",
    "count": "Count",
}
"""Our word: the column of statistic.csv."""
MSPROBE = {"min": "Min", "max": "Max", "mean": "Mean", "l2": "Norm"}
_COUNTS = ("nan", "pos_inf", "neg_inf", "zeros", "negatives", "positives", "count")


def stats_said(
    said: Mapping[str, Any], words: Mapping[str, str], *, shape: tuple[int, ...], dtype: str
) -> TensorStats | None:
    """The statistics a tool wrote under its own words; None when it wrote none."""
    numbers = {ours: _number(said.get(theirs)) for ours, theirs in words.items()}
    if all(math.isnan(number) and not _is_nan(said.get(words[ours])) for ours, number in numbers.items()):
        return None
    counts = {name: _whole(numbers.get(name, math.nan)) for name in _COUNTS}
    values = {name: numbers.get(name, math.nan) for name in ("min", "max", "mean", "l2")}
    named = [_is_nan(said.get(words[name])) for name in values if name in words]
    if any(named):
        counts["nan"] = max(1, counts["nan"])
    if math.inf in (values["min"], values["max"]):
        counts["pos_inf"] = max(1, counts["pos_inf"])
    if -math.inf in (values["min"], values["max"]):
        counts["neg_inf"] = max(1, counts["neg_inf"])
    counts["count"] = counts["count"] or math.prod(shape)
    finite = {name: value if math.isfinite(value) else math.nan for name, value in values.items()}
    return TensorStats(
        **counts,
        min=finite["min"],
        max=finite["max"],
        mean=finite["mean"],
        l2=finite["l2"],
        abs_mean=math.nan,
        std=math.nan,
        dtype=dtype or "unknown",
        shape=shape,
    )


def _is_nan(value: Any) -> bool:
    return value is not None and str(value).strip().lower() in ("nan", "-nan")


def _number(value: Any) -> float:
    if isinstance(value, bool):
        return float(value)
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _whole(number: float) -> int:
    return int(number) if math.isfinite(number) else 0
