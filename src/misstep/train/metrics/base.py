"""What a metric is: cleared, fed batch by batch, asked for its value.

All metrics compute in numpy float64, so that a number does not depend on the framework that produced the tensors.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import numpy as np

from misstep.errors import TrainError
from misstep.train.values import Array, to_numpy

EvalType = Literal["classification", "multilabel"]
Update = TypeVar("Update", bound=Callable[..., Any])


class Metric(ABC):
    """A number measured over many batches; subclass it and write `clear`, `update` and `eval`.

    >>> class Count(Metric):
    ...     def clear(self): self.n = 0
    ...     def update(self, *inputs): self.n += len(inputs[0])
    ...     def eval(self): return self.n
    """

    def __init__(self) -> None:
        self._indexes: list[int] | None = None

    @property
    def indexes(self) -> list[int] | None:
        """Which of the evaluation network's outputs `update` takes; None for prediction and label."""
        return getattr(self, "_indexes", None)

    def set_indexes(self, indexes: Sequence[int]) -> Metric:
        """Chooses which outputs of the evaluation network this metric sees, in which order; returns itself.

        >>> Accuracy().set_indexes([0, 2])
        """
        if not isinstance(indexes, list | tuple) or not all(
            isinstance(index, int) and not isinstance(index, bool) for index in indexes
        ):
            raise ValueError(f"indexes must be a list of whole numbers, got {indexes!r}")
        self._indexes = list(indexes)
        return self

    @abstractmethod
    def clear(self) -> None:
        """Forgets everything."""

    @abstractmethod
    def update(self, *inputs: Any) -> None:
        """Takes one batch in."""

    @abstractmethod
    def eval(self) -> Any:
        """The value over everything taken in since `clear`."""


class EvaluationBase(Metric):
    """A metric over classes: `classification` has one label a sample, `multilabel` one bit a class."""

    def __init__(self, eval_type: EvalType = "classification") -> None:
        super().__init__()
        if eval_type not in ("classification", "multilabel"):
            raise TypeError(f"eval_type must be 'classification' or 'multilabel', got {eval_type!r}")
        self._type: EvalType = eval_type


def rearrange_inputs(update: Update) -> Update:
    """Lets `set_indexes` choose which of many inputs an `update` method of one's own sees."""

    @functools.wraps(update)
    def wrapper(self: Metric, *inputs: Any) -> Any:
        indexes = self.indexes
        if indexes is None or len(inputs) == len(indexes) == 0:
            return update(self, *inputs)
        if max(indexes) >= len(inputs):
            if len(inputs) == len(indexes):
                return update(self, *inputs)  # Model chose them already
            raise ValueError(
                f"{type(self).__name__} was told to use outputs {indexes}, but there are only {len(inputs)}"
            )
        return update(self, *[inputs[index] for index in indexes])

    return wrapper  # type: ignore[return-value]


def pair(metric: Metric, inputs: Sequence[Any]) -> tuple[Array, Array]:
    """Prediction and label as numpy arrays, or an error that names the metric."""
    if len(inputs) != 2:
        raise ValueError(
            f"{type(metric).__name__} needs 2 inputs, the prediction and the label, but got {len(inputs)}; "
            "choose two outputs with set_indexes"
        )
    return to_numpy(inputs[0]), to_numpy(inputs[1])


def nothing_measured(metric: Metric) -> TrainError:
    """The error of a metric asked before its first batch."""
    return TrainError(f"{type(metric).__name__} has seen no data; call update(...) before eval()")


def one_hot(labels: Array, classes: int) -> Array:
    """Class numbers as rows of zeros with a single one."""
    flat = labels.astype(np.int64).reshape(-1)
    if flat.size and (flat.min() < 0 or flat.max() >= classes):
        raise ValueError(f"labels go from {flat.min()} to {flat.max()}, but the prediction has {classes} classes")
    return np.asarray(np.eye(classes, dtype=np.int64)[flat])
