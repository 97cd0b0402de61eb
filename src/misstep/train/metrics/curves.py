"""The receiver operating characteristic and the area under it."""

from __future__ import annotations

from typing import Any

import numpy as np

from misstep.train.metrics.base import Metric, nothing_measured, pair, rearrange_inputs
from misstep.train.values import Array, to_numpy


def auc(x: Any, y: Any, reorder: bool = False) -> float:
    """The area under a curve by the trapezoidal rule; `reorder` sorts the points by x first.

    >>> fpr, tpr, _ = roc.eval()
    >>> auc(fpr, tpr)
    """
    across, up = to_numpy(x).reshape(-1).astype(np.float64), to_numpy(y).reshape(-1).astype(np.float64)
    if across.shape != up.shape or across.size < 2:
        raise ValueError(f"auc needs two lists of equally many points, at least 2, got {across.size} and {up.size}")
    if reorder:
        order = np.lexsort((up, across))
        across, up = across[order], up[order]
    steps = np.diff(across)
    if (steps < 0).any() and (steps > 0).any():
        raise ValueError("auc needs x to rise or to fall throughout; pass reorder=True to sort the points")
    area = float((steps * (up[1:] + up[:-1]) / 2).sum())
    return -area if (steps < 0).any() else area


class ROC(Metric):
    """(false positive rate, true positive rate, thresholds) for every threshold, over all batches.

    Scores shaped like the label are of one class, `pos_label`; scores of shape (samples, class_num) give one curve a
    class, each as three lists. The first threshold lies 1 above the highest score: nothing is predicted there.
    """

    def __init__(self, class_num: int | None = None, pos_label: int | None = None) -> None:
        super().__init__()
        self.class_num = class_num
        self.pos_label = pos_label
        self.clear()

    def clear(self) -> None:
        self._scores: list[Array] = []
        self._labels: list[Array] = []

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        scores, labels = pair(self, inputs)
        if scores.ndim == labels.ndim:
            if self.class_num not in (None, 1):
                raise ValueError(f"scores shaped like the label are of one class, but class_num is {self.class_num}")
            scores = scores.reshape(-1)
        elif scores.ndim == labels.ndim + 1:
            if self.pos_label is not None:
                raise ValueError("pos_label is for scores of one class; leave it out for a curve a class")
            if self.class_num is not None and self.class_num != scores.shape[1]:
                raise ValueError(f"class_num is {self.class_num}, but the scores are of {scores.shape[1]} classes")
            scores = np.moveaxis(scores, 1, -1).reshape(-1, scores.shape[1])
        else:
            raise ValueError(f"ROC cannot lay scores of shape {scores.shape} beside labels of shape {labels.shape}")
        self._scores.append(scores.astype(np.float64))
        self._labels.append(labels.reshape(-1))

    def eval(self) -> tuple[Any, Any, Any]:
        if not self._scores:
            raise nothing_measured(self)
        scores, labels = np.concatenate(self._scores), np.concatenate(self._labels)
        if scores.ndim == 1:
            return _curve(scores, labels == (1 if self.pos_label is None else self.pos_label))
        curves = [_curve(scores[:, number], labels == number) for number in range(scores.shape[1])]
        across, up, thresholds = zip(*curves)
        return list(across), list(up), list(thresholds)


class AUC(ROC):
    """The area under the receiver operating characteristic; with several classes, a list of them."""

    def eval(self) -> Any:
        across, up, _ = super().eval()
        return [auc(x, y) for x, y in zip(across, up)] if isinstance(across, list) else auc(across, up)


def _curve(scores: Array, positive: Array) -> tuple[Array, Array, Array]:
    if not positive.any():
        raise ValueError("ROC needs at least one positive sample, or the true positive rate means nothing")
    if positive.all():
        raise ValueError("ROC needs at least one negative sample, or the false positive rate means nothing")
    order = np.argsort(-scores, kind="stable")
    scores, positive = scores[order], positive[order]
    last_of_equals = np.append(np.flatnonzero(np.diff(scores)), scores.size - 1)
    true_positives = np.cumsum(positive)[last_of_equals]
    false_positives = 1 + last_of_equals - true_positives
    thresholds = np.concatenate([[scores[0] + 1], scores[last_of_equals]])
    across = np.concatenate([[0.0], false_positives / false_positives[-1]])
    up = np.concatenate([[0.0], true_positives / true_positives[-1]])
    return across, up, thresholds
