"""Metrics by name and by class. Each is cleared, fed batch by batch, and asked for its value.

>>> Model(net, loss, optimizer, metrics={"accuracy": Accuracy(), "top 3": TopKCategoricalAccuracy(3)})
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from misstep.errors import TrainError, nearest
from misstep.train.metrics.base import EvaluationBase, Metric, rearrange_inputs
from misstep.train.metrics.classification import (
    F1,
    Accuracy,
    ConfusionMatrix,
    Fbeta,
    Precision,
    Recall,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from misstep.train.metrics.confusion import ConfusionMatrixMetric
from misstep.train.metrics.curves import AUC, ROC, auc
from misstep.train.metrics.numbers import MAE, MSE, CosineSimilarity, Loss, Perplexity
from misstep.train.metrics.occlusion import OcclusionSensitivity
from misstep.train.metrics.segmentation import (
    Dice,
    HausdorffDistance,
    MeanSurfaceDistance,
    RootMeanSquareDistance,
)
from misstep.train.metrics.text import BleuScore

__all__ = [
    "AUC",
    "F1",
    "MAE",
    "MSE",
    "ROC",
    "Accuracy",
    "BleuScore",
    "ConfusionMatrix",
    "ConfusionMatrixMetric",
    "CosineSimilarity",
    "Dice",
    "EvaluationBase",
    "Fbeta",
    "HausdorffDistance",
    "Loss",
    "MeanSurfaceDistance",
    "Metric",
    "OcclusionSensitivity",
    "Perplexity",
    "Precision",
    "Recall",
    "RootMeanSquareDistance",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "auc",
    "get_metric_fn",
    "get_metrics",
    "names",
    "rearrange_inputs",
]

_BY_NAME: dict[str, Callable[..., Metric]] = {
    "F1": F1,
    "acc": Accuracy,
    "accuracy": Accuracy,
    "auc": AUC,
    "bleu_score": BleuScore,
    "confusion_matrix": ConfusionMatrix,
    "confusion_matrix_metric": ConfusionMatrixMetric,
    "cosine_similarity": CosineSimilarity,
    "dice": Dice,
    "hausdorff_distance": HausdorffDistance,
    "loss": Loss,
    "mae": MAE,
    "mean_surface_distance": MeanSurfaceDistance,
    "mse": MSE,
    "occlusion_sensitivity": OcclusionSensitivity,
    "perplexity": Perplexity,
    "precision": Precision,
    "recall": Recall,
    "roc": ROC,
    "root_mean_square_distance": RootMeanSquareDistance,
    "top_1_accuracy": Top1CategoricalAccuracy,
    "top_5_accuracy": Top5CategoricalAccuracy,
    "topk": TopKCategoricalAccuracy,
}


def names() -> list[str]:
    """The names metrics can be asked for by."""
    return sorted(_BY_NAME)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Metric:
    """A metric by name:  get_metric_fn("topk", k=3)."""
    if name not in _BY_NAME:
        raise TrainError(f"unknown metric {name!r}{nearest(name, _BY_NAME)}")
    try:
        return _BY_NAME[name](*args, **kwargs)
    except TypeError as wrong:
        if "missing" not in str(wrong):
            raise
        raise TrainError(
            f"metric {name!r} cannot be made from its name alone: {wrong}; pass it as an object in a dictionary"
        ) from wrong


def get_metrics(metrics: Mapping[str, Metric | str] | Iterable[str] | None) -> dict[str, Metric]:
    """Metrics by the name they are reported under, from a dictionary, or from a set or list of names."""
    if metrics is None:
        return {}
    if isinstance(metrics, str):
        return {metrics: get_metric_fn(metrics)}
    if isinstance(metrics, Mapping):
        return {name: _metric(name, metric) for name, metric in metrics.items()}
    found = {}
    for name in metrics:
        if not isinstance(name, str):
            raise TrainError(f"metrics is a list, so it holds names, but got {type(name).__name__}; use a dictionary")
        found[name] = get_metric_fn(name)
    return found


def _metric(name: str, metric: Metric | str) -> Metric:
    if isinstance(metric, str):
        return get_metric_fn(metric)
    if isinstance(metric, type) or not all(hasattr(metric, verb) for verb in ("clear", "update", "eval")):
        raise TrainError(f"metric {name!r} must be a Metric object, got {metric!r}")
    return metric
