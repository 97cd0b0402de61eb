"""The seventeen numbers people compute from true and false positives and negatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from misstep.errors import nearest
from misstep.train.metrics.base import Metric, nothing_measured, pair, rearrange_inputs
from misstep.train.values import Array

Decrease: TypeAlias = Literal["none", "mean", "sum", "mean_batch", "sum_batch", "mean_channel", "sum_channel"]
DECREASES: tuple[Decrease, ...] = ("none", "mean", "sum", "mean_batch", "sum_batch", "mean_channel", "sum_channel")


def _over(numerator: Any, denominator: Any) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator != 0, numerator / denominator, np.nan)


def _tpr(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    return _over(tp, tp + fn)


def _tnr(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    return _over(tn, tn + fp)


def _ppv(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    return _over(tp, tp + fp)


def _npv(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    return _over(tn, tn + fn)


def _prevalence_threshold(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    hit, specific = _tpr(tp, fp, tn, fn), _tnr(tp, fp, tn, fn)
    return _over(np.sqrt(hit * (1 - specific)) + specific - 1, hit + specific - 1)


def _mcc(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    return _over(tp * tn - fp * fn, np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


FORMULAS: dict[str, Callable[[Array, Array, Array, Array], Array]] = {
    "tpr": _tpr,
    "tnr": _tnr,
    "ppv": _ppv,
    "npv": _npv,
    "fnr": lambda tp, fp, tn, fn: _over(fn, tp + fn),
    "fpr": lambda tp, fp, tn, fn: _over(fp, fp + tn),
    "fdr": lambda tp, fp, tn, fn: _over(fp, fp + tp),
    "for": lambda tp, fp, tn, fn: _over(fn, fn + tn),
    "pt": _prevalence_threshold,
    "ts": lambda tp, fp, tn, fn: _over(tp, tp + fn + fp),
    "acc": lambda tp, fp, tn, fn: _over(tp + tn, tp + fp + tn + fn),
    "ba": lambda tp, fp, tn, fn: (_tpr(tp, fp, tn, fn) + _tnr(tp, fp, tn, fn)) / 2,
    "f1": lambda tp, fp, tn, fn: _over(2 * tp, 2 * tp + fn + fp),
    "mcc": _mcc,
    "fm": lambda tp, fp, tn, fn: np.sqrt(_ppv(tp, fp, tn, fn) * _tpr(tp, fp, tn, fn)),
    "bm": lambda tp, fp, tn, fn: _tpr(tp, fp, tn, fn) + _tnr(tp, fp, tn, fn) - 1,
    "mk": lambda tp, fp, tn, fn: _ppv(tp, fp, tn, fn) + _npv(tp, fp, tn, fn) - 1,
}

OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "tpr": ("sensitivity", "recall", "hit_rate", "true_positive_rate"),
    "tnr": ("specificity", "selectivity", "true_negative_rate"),
    "ppv": ("precision", "positive_predictive_value"),
    "npv": ("negative_predictive_value",),
    "fnr": ("miss_rate", "false_negative_rate"),
    "fpr": ("fall_out", "false_positive_rate"),
    "fdr": ("false_discovery_rate",),
    "for": ("false_omission_rate",),
    "pt": ("prevalence_threshold",),
    "ts": ("threat_score", "critical_success_index", "csi"),
    "acc": ("accuracy",),
    "ba": ("balanced_accuracy",),
    "f1": ("f1_score",),
    "mcc": ("matthews_correlation_coefficient",),
    "fm": ("fowlkes_mallows_index",),
    "bm": ("informedness", "bookmaker_informedness"),
    "mk": ("markedness", "deltap"),
}

_SHORT = {name: short for short, names in OTHER_NAMES.items() for name in (short, *names)}


class ConfusionMatrixMetric(Metric):
    """One number from the confusion matrix of binary masks shaped (samples, channels, …).

    Counts of all samples are added and the number is taken of the sums; with `calculation_method=True` it is taken
    of every sample and channel and `decrease` joins them, leaving out those where it is undefined (0/0).
    `skip_channel` leaves out the first channel, usually the background, when there are others.
    """

    def __init__(
        self,
        skip_channel: bool = True,
        metric_name: str = "sensitivity",
        calculation_method: bool = False,
        decrease: Decrease = "mean",
    ) -> None:
        super().__init__()
        short = _SHORT.get(metric_name.lower().replace(" ", "_"))
        if short is None:
            raise ValueError(f"unknown metric_name {metric_name!r}{nearest(metric_name, _SHORT)}")
        if decrease not in DECREASES:
            raise ValueError(f"decrease must be one of {', '.join(DECREASES)}, got {decrease!r}")
        self.skip_channel = skip_channel
        self.metric_name = metric_name
        self.calculation_method = calculation_method
        self.decrease = decrease
        self._formula = FORMULAS[short]
        self.clear()

    def clear(self) -> None:
        self._counts: list[Array] = []

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        prediction, label = pair(self, inputs)
        if prediction.ndim < 2 or prediction.shape != label.shape:
            raise ValueError(
                f"ConfusionMatrixMetric needs masks of one shape (samples, channels, …), got {prediction.shape} "
                f"and {label.shape}"
            )
        if not (np.isin(prediction, (0, 1)).all() and np.isin(label, (0, 1)).all()):
            raise ValueError("ConfusionMatrixMetric takes masks of zeros and ones; cut scores first:  scores > 0.5")
        if self.skip_channel and prediction.shape[1] > 1:
            prediction, label = prediction[:, 1:], label[:, 1:]
        shape = (*prediction.shape[:2], -1)
        predicted = prediction.reshape(shape).astype(bool)
        actual = label.reshape(shape).astype(bool)
        self._counts.append(
            np.stack(
                [
                    (predicted & actual).sum(axis=2),
                    (predicted & ~actual).sum(axis=2),
                    (~predicted & ~actual).sum(axis=2),
                    (~predicted & actual).sum(axis=2),
                ]
            ).astype(np.float64)
        )

    def eval(self) -> Any:
        if not self._counts:
            raise nothing_measured(self)
        counts = np.concatenate(self._counts, axis=1)  # (tp fp tn fn, samples, channels)
        if not self.calculation_method:
            return float(self._formula(*counts.sum(axis=(1, 2))))
        return _joined(self._formula(*counts), self.decrease)


def _joined(values: Array, decrease: Decrease) -> Any:
    """(samples, channels) made smaller; undefined entries count for nothing."""
    defined = ~np.isnan(values)
    filled = np.where(defined, values, 0.0)
    if decrease == "none":
        return values
    if decrease == "sum":
        return float(filled.sum())
    if decrease == "mean":  # first within a sample, then over the samples that have a value
        within = _mean(filled, defined, axis=1)
        return float(_mean(within, defined.any(axis=1), axis=0))
    axis = 0 if decrease.endswith("batch") else 1
    return filled.sum(axis=axis) if decrease.startswith("sum") else _mean(filled, defined, axis=axis)


def _mean(filled: Array, defined: Array, *, axis: int) -> Array:
    count = defined.sum(axis=axis)
    total = filled.sum(axis=axis)
    return np.divide(total, count, out=np.zeros_like(np.asarray(total, dtype=np.float64)), where=count > 0)
