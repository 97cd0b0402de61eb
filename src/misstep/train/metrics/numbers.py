"""Metrics of numbers: loss, absolute and squared error, cosine similarity, perplexity."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from misstep.train.metrics.base import Metric, nothing_measured, pair, rearrange_inputs
from misstep.train.values import Array, to_numpy


class Loss(Metric):
    """The mean loss of all batches."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._sum = 0.0
        self._batches = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        if len(inputs) != 1:
            raise ValueError(f"Loss takes one input, the loss, but got {len(inputs)}")
        loss = to_numpy(inputs[0])
        if loss.ndim > 1:
            raise ValueError(f"Loss takes a number or a list of them, got shape {loss.shape}; reduce the loss first")
        self._sum += float(loss.astype(np.float64).mean())
        self._batches += 1

    def eval(self) -> float:
        if not self._batches:
            raise nothing_measured(self)
        return self._sum / self._batches


class _Error(Metric):
    """A sum over all elements, divided by the number of samples."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._sum = 0.0
        self._samples = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        prediction, label = pair(self, inputs)
        difference = label.reshape(prediction.shape).astype(np.float64) - prediction
        self._sum += float(self._measure(difference))
        self._samples += len(label)

    def eval(self) -> float:
        if not self._samples:
            raise nothing_measured(self)
        return self._sum / self._samples

    @staticmethod
    def _measure(difference: Array) -> Any:
        raise NotImplementedError


class MAE(_Error):
    """The absolute error of a sample, on average."""

    @staticmethod
    def _measure(difference: Array) -> Any:
        return np.abs(difference).sum()


class MSE(_Error):
    """The squared error of a sample, on average."""

    @staticmethod
    def _measure(difference: Array) -> Any:
        return (difference**2).sum()


class CosineSimilarity(Metric):
    """How alike the rows are, each with each: a square matrix, or its rows' sums or means.

    The diagonal, every row's similarity with itself, is zeroed unless told otherwise.
    """

    def __init__(
        self,
        similarity: Literal["cosine", "dot"] = "cosine",
        reduction: Literal["none", "sum", "mean"] = "none",
        zero_diagonal: bool = True,
    ) -> None:
        super().__init__()
        if similarity not in ("cosine", "dot"):
            raise ValueError(f"similarity must be 'cosine' or 'dot', got {similarity!r}")
        if reduction not in ("none", "sum", "mean"):
            raise ValueError(f"reduction must be 'none', 'sum' or 'mean', got {reduction!r}")
        self.similarity = similarity
        self.reduction = reduction
        self.zero_diagonal = zero_diagonal
        self.clear()

    def clear(self) -> None:
        self._rows: list[Array] = []

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        if len(inputs) != 1:
            raise ValueError(f"CosineSimilarity takes one input, the rows to compare, but got {len(inputs)}")
        self._rows.append(to_numpy(inputs[0]).astype(np.float64))

    def eval(self) -> Array:
        if not self._rows:
            raise nothing_measured(self)
        rows = np.concatenate(self._rows)
        if self.similarity == "cosine":
            length = np.linalg.norm(rows, axis=1, keepdims=True)
            rows = np.divide(rows, length, out=np.zeros_like(rows), where=length != 0)
        matrix = rows @ rows.T
        if self.zero_diagonal:
            np.fill_diagonal(matrix, 0)
        if self.reduction == "none":
            return np.asarray(matrix)
        return np.asarray(matrix.sum(axis=-1) if self.reduction == "sum" else matrix.mean(axis=-1))


class Perplexity(Metric):
    """Between how many equally likely words a model hesitates; the prediction is probabilities (…, words)."""

    SMALLEST = 1e-10  # a probability of 0 would make the whole measurement infinite

    def __init__(self, ignore_label: int | None = None) -> None:
        super().__init__()
        if ignore_label is not None and not isinstance(ignore_label, int):
            raise TypeError(f"ignore_label must be a class number, got {type(ignore_label).__name__}")
        self.ignore_label = ignore_label
        self.clear()

    def clear(self) -> None:
        self._surprise = 0.0
        self._words = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        prediction, label = pair(self, inputs)
        if label.size * prediction.shape[-1] != prediction.size:
            raise ValueError(
                f"Perplexity needs one probability a word and position: got {prediction.shape} for labels {label.shape}"
            )
        labels = label.reshape(-1).astype(np.int64)
        kept = np.ones(labels.size, bool) if self.ignore_label is None else labels != self.ignore_label
        # Ignored labels such as -100 point nowhere, so they are left out before looking anything up.
        chances = prediction.reshape(-1, prediction.shape[-1])[np.flatnonzero(kept), labels[kept]]
        self._surprise -= float(np.log(np.maximum(self.SMALLEST, chances.astype(np.float64))).sum())
        self._words += int(kept.sum())

    def eval(self) -> float:
        if not self._words:
            raise nothing_measured(self)
        return math.exp(self._surprise / self._words)
