"""Metrics of predicted classes: accuracy, precision, recall, F-measure, top-k and the confusion matrix.

A prediction is (samples, classes, …) scores, a label (samples, …) class numbers or the same in one-hot form. For
`multilabel`, both are zeros and ones of equal shape.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from misstep.train.metrics.base import (
    EvalType,
    EvaluationBase,
    Metric,
    nothing_measured,
    one_hot,
    pair,
    rearrange_inputs,
)
from misstep.train.values import Array


class Accuracy(EvaluationBase):
    """The share of right answers; for `multilabel`, of samples whose every bit is right."""

    def __init__(self, eval_type: EvalType = "classification") -> None:
        super().__init__(eval_type)
        self.clear()

    def clear(self) -> None:
        self._right = 0
        self._seen = 0
        self._classes = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        prediction, label = pair(self, inputs)
        label = _class_numbers(prediction, label) if self._type == "classification" else label
        _check_shapes(self, prediction, label, self._type)
        self._classes = _same_classes(self, self._classes, prediction)
        if self._type == "classification":
            right = (prediction.argmax(axis=1) == label).reshape(-1)
        else:
            right = (np.moveaxis(prediction == label, 1, -1)).reshape(-1, self._classes).all(axis=1)
        self._right += int(right.sum())
        self._seen += right.size

    def eval(self) -> float:
        if not self._seen:
            raise nothing_measured(self)
        return self._right / self._seen


class _PerClass(EvaluationBase):
    """Counts of predicted, actual and right positives: by class, or by sample for `multilabel`."""

    def __init__(self, eval_type: EvalType = "classification") -> None:
        super().__init__(eval_type)
        self.clear()

    def clear(self) -> None:
        self._classes = 0
        self._true_positives: Array = np.zeros(0)
        self._predicted: Array = np.zeros(0)
        self._actual: Array = np.zeros(0)

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        prediction, label = pair(self, inputs)
        label = _class_numbers(prediction, label) if self._type == "classification" else label
        _check_shapes(self, prediction, label, self._type)
        first = self._classes == 0
        self._classes = _same_classes(self, self._classes, prediction)
        if self._type == "classification":
            actual = one_hot(label, self._classes)
            predicted = one_hot(prediction.argmax(axis=1), self._classes)
            axis = 0
        else:
            actual = np.moveaxis(label, 1, -1).reshape(-1, self._classes)
            predicted = np.moveaxis(prediction, 1, -1).reshape(-1, self._classes)
            axis = 1
        counts = [(actual * predicted).sum(axis=axis), predicted.sum(axis=axis), actual.sum(axis=axis)]
        counts = [count.astype(np.float64) for count in counts]
        if first:
            self._true_positives, self._predicted, self._actual = counts
        elif axis == 0:
            self._true_positives, self._predicted, self._actual = (
                old + new for old, new in zip((self._true_positives, self._predicted, self._actual), counts)
            )
        else:
            self._true_positives, self._predicted, self._actual = (
                np.concatenate([old, new])
                for old, new in zip((self._true_positives, self._predicted, self._actual), counts)
            )

    def _ratio(self, numerator: Array, denominator: Array, average: bool) -> Any:
        if not self._classes:
            raise nothing_measured(self)
        ratio = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0)
        return float(ratio.mean()) if average else ratio


class Precision(_PerClass):
    """Of what was predicted as a class, the share that is: by class, or their mean with `eval(average=True)`."""

    def eval(self, average: bool = False) -> Any:
        return self._ratio(self._true_positives, self._predicted, average)


class Recall(_PerClass):
    """Of what is a class, the share that was found: by class, or their mean with `eval(average=True)`."""

    def eval(self, average: bool = False) -> Any:
        return self._ratio(self._true_positives, self._actual, average)


class Fbeta(_PerClass):
    """Precision and recall in one number; `beta` times as much weight on recall."""

    def __init__(self, beta: float) -> None:
        if not beta > 0:
            raise ValueError(f"beta must be greater than 0, got {beta}")
        self.beta = float(beta)
        super().__init__("classification")

    def eval(self, average: bool = False) -> Any:
        squared = self.beta**2
        return self._ratio((1 + squared) * self._true_positives, squared * self._actual + self._predicted, average)


class F1(Fbeta):
    """The harmonic mean of precision and recall."""

    def __init__(self) -> None:
        super().__init__(1.0)


class TopKCategoricalAccuracy(Metric):
    """The share of samples whose class is among the `k` highest scores."""

    def __init__(self, k: int) -> None:
        super().__init__()
        if isinstance(k, bool) or not isinstance(k, int):
            raise TypeError(f"k must be a whole number, got {type(k).__name__}")
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        self.k = k
        self.clear()

    def clear(self) -> None:
        self._right = 0
        self._seen = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        prediction, label = pair(self, inputs)
        label = _class_numbers(prediction, label).reshape(-1, 1)
        best = np.argsort(-prediction, axis=1, kind="stable")[:, : self.k]
        self._right += int((best == label).any(axis=1).sum())
        self._seen += len(label)

    def eval(self) -> float:
        if not self._seen:
            raise nothing_measured(self)
        return self._right / self._seen


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """The share of samples whose class has the highest score."""

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """The share of samples whose class is among the five highest scores."""

    def __init__(self) -> None:
        super().__init__(5)


class ConfusionMatrix(Metric):
    """How often class i (row) was taken for class j (column); scores of one class are cut at `threshold`."""

    def __init__(
        self,
        num_classes: int,
        normalize: Literal["no_norm", "target", "prediction", "all"] = "no_norm",
        threshold: float = 0.5,
    ) -> None:
        super().__init__()
        if normalize not in ("no_norm", "target", "prediction", "all"):
            raise ValueError(f"normalize must be 'no_norm', 'target', 'prediction' or 'all', got {normalize!r}")
        self.num_classes = num_classes
        self.normalize = normalize
        self.threshold = threshold
        self.clear()

    def clear(self) -> None:
        self._counts = np.zeros((self.num_classes, self.num_classes))
        self._seen = False

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        prediction, label = pair(self, inputs)
        if prediction.ndim == label.ndim + 1:
            prediction = prediction.argmax(axis=1)
        elif prediction.ndim != label.ndim:
            raise ValueError(
                f"ConfusionMatrix takes scores of shape (samples, classes, …) or class numbers shaped like the label, "
                f"got {prediction.shape} for a label of {label.shape}"
            )
        elif prediction.dtype.kind == "f":
            prediction = prediction >= self.threshold
        actual = one_hot(label, self.num_classes)
        predicted = one_hot(prediction, self.num_classes)
        self._counts += actual.T @ predicted
        self._seen = True

    def eval(self) -> Array:
        if not self._seen:
            raise nothing_measured(self)
        if self.normalize == "no_norm":
            return self._counts.copy()
        axis = {"target": 1, "prediction": 0, "all": None}[self.normalize]
        total = self._counts.sum(axis=axis, keepdims=True)
        return np.divide(self._counts, total, out=np.zeros_like(self._counts), where=total != 0)


def _class_numbers(prediction: Array, label: Array) -> Array:
    """Labels as class numbers, also when they were given one-hot."""
    if prediction.ndim != label.ndim or label.ndim < 2:
        return label
    one_hot_label = ((label == 0) | (label == 1)).all() and (label.sum(axis=1) == 1).all()
    return np.asarray(label.argmax(axis=1)) if one_hot_label else label


def _check_shapes(metric: Metric, prediction: Array, label: Array, eval_type: EvalType) -> None:
    name = type(metric).__name__
    if eval_type == "multilabel":
        if prediction.shape != label.shape:
            raise ValueError(
                f"{name} of several labels needs prediction and label of one shape, got {prediction.shape} "
                f"and {label.shape}"
            )
        if not (np.isin(prediction, (0, 1)).all() and np.isin(label, (0, 1)).all()):
            raise ValueError(f"{name} of several labels takes zeros and ones; cut scores first:  scores > 0.5")
        return
    if prediction.ndim < 2 or label.shape != (prediction.shape[0], *prediction.shape[2:]):
        raise ValueError(
            f"{name} needs scores of shape (samples, classes, …) and labels of shape (samples, …), "
            f"got {prediction.shape} and {label.shape}"
        )


def _same_classes(metric: Metric, before: int, prediction: Array) -> int:
    classes = int(prediction.shape[1])
    if before and classes != before:
        raise ValueError(
            f"{type(metric).__name__} saw {before} classes in earlier batches and {classes} in this one; "
            "call clear() between different outputs"
        )
    return classes
