"""Metrics of masks: overlap, and distances between the surfaces of two shapes.

A surface is what erosion by one pixel takes away. Distances are measured from every point of one surface to the
nearest point of the other; SciPy does that, and is imported on first use.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from misstep.errors import need
from misstep.train.metrics.base import Metric, nothing_measured, pair, rearrange_inputs
from misstep.train.values import Array, to_numpy

Distance: TypeAlias = Literal["euclidean", "chessboard", "taxicab"]
DISTANCES: tuple[Distance, ...] = ("euclidean", "chessboard", "taxicab")


class Dice(Metric):
    """Twice what two masks share, over what they have together: the mean over all samples.

    MindSpore takes one coefficient of the whole batch and still divides by its number of samples; for batches of one
    sample the two agree.
    """

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        if not smooth > 0:
            raise ValueError(f"smooth must be greater than 0, got {smooth}")
        self.smooth = smooth
        self.clear()

    def clear(self) -> None:
        self._sum = 0.0
        self._samples = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        prediction, label = pair(self, inputs)
        if prediction.shape != label.shape:
            raise ValueError(f"Dice needs two masks of one shape, got {prediction.shape} and {label.shape}")
        predicted = prediction.reshape(len(prediction), -1).astype(np.float64)
        actual = label.reshape(len(label), -1).astype(np.float64)
        shared = (predicted * actual).sum(axis=1)
        together = (predicted**2).sum(axis=1) + (actual**2).sum(axis=1)
        self._sum += float((2 * shared / (together + self.smooth)).sum())
        self._samples += len(label)

    def eval(self) -> float:
        if not self._samples:
            raise nothing_measured(self)
        return self._sum / self._samples


class _SurfaceMetric(Metric):
    """A number for every pair of shapes given, and the mean of them in the end."""

    def __init__(self, distance_metric: Distance = "euclidean") -> None:
        super().__init__()
        if distance_metric not in DISTANCES:
            raise ValueError(f"distance_metric must be one of {', '.join(DISTANCES)}, got {distance_metric!r}")
        self.distance_metric = distance_metric
        self.clear()

    def clear(self) -> None:
        self._values: list[float] = []

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        name = type(self).__name__
        if len(inputs) != 3:
            raise ValueError(f"{name} takes prediction, label and the number of the shape in them, got {len(inputs)}")
        prediction, label, number = to_numpy(inputs[0]), to_numpy(inputs[1]), inputs[2]
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise TypeError(f"{name} needs the number of the shape as an int or float, got {type(number).__name__}")
        if prediction.size == 0 or prediction.shape != label.shape:
            raise ValueError(f"{name} needs two masks of one shape, got {prediction.shape} and {label.shape}")
        predicted, actual = prediction == number, label == number
        if not (predicted.any() or actual.any()):
            raise ValueError(f"{name}: neither the prediction nor the label contains {number}")
        self._values.append(self._measure(_surface(predicted), _surface(actual)))

    def eval(self) -> float:
        if not self._values:
            raise nothing_measured(self)
        return float(np.mean(self._values))

    def _measure(self, predicted: Array, actual: Array) -> float:
        raise NotImplementedError

    def _distances(self, start: Array, goal: Array) -> Array:
        """From each point of one surface to the nearest of the other; infinite when there is no other."""
        if not goal.any():
            return np.full(int(start.sum()), np.inf)
        image = need("scipy.ndimage", "for distances between surfaces")
        if self.distance_metric == "euclidean":
            far = image.distance_transform_edt(~goal)
        else:
            far = image.distance_transform_cdt(~goal, metric=self.distance_metric)
        return np.asarray(far[start], dtype=np.float64)


class HausdorffDistance(_SurfaceMetric):
    """The farthest any surface point is from the other surface, or the given percentile of those distances.

    `directed` looks only from the prediction to the label. `crop` is accepted for compatibility: it changes
    no distance.
    """

    def __init__(
        self,
        distance_metric: Distance = "euclidean",
        percentile: float | None = None,
        directed: bool = False,
        crop: bool = True,
    ) -> None:
        if percentile is not None and not 0 <= percentile <= 100:
            raise ValueError(f"percentile must lie between 0 and 100, got {percentile}")
        self.percentile = percentile
        self.directed = directed
        self.crop = crop
        super().__init__(distance_metric)

    def _measure(self, predicted: Array, actual: Array) -> float:
        there = self._farthest(self._distances(predicted, actual))
        return there if self.directed else max(there, self._farthest(self._distances(actual, predicted)))

    def _farthest(self, distances: Array) -> float:
        if distances.size == 0:
            return float("inf")
        return float(distances.max() if self.percentile is None else np.percentile(distances, self.percentile))


class MeanSurfaceDistance(_SurfaceMetric):
    """The mean distance from the prediction's surface to the label's; `symmetric` averages both directions."""

    def __init__(self, symmetric: bool = False, distance_metric: Distance = "euclidean") -> None:
        self.symmetric = symmetric
        super().__init__(distance_metric)

    def _measure(self, predicted: Array, actual: Array) -> float:
        there = _mean(self._distances(predicted, actual))
        return (there + _mean(self._distances(actual, predicted))) / 2 if self.symmetric else there


class RootMeanSquareDistance(_SurfaceMetric):
    """The root of the mean squared surface distance; `symmetric` averages the squares of both directions.

    The root is taken in either case; MindSpore takes it only in the symmetric one.
    """

    def __init__(self, symmetric: bool = False, distance_metric: Distance = "euclidean") -> None:
        self.symmetric = symmetric
        super().__init__(distance_metric)

    def _measure(self, predicted: Array, actual: Array) -> float:
        squares = _mean(self._distances(predicted, actual) ** 2)
        if self.symmetric:
            squares = (squares + _mean(self._distances(actual, predicted) ** 2)) / 2
        return float(np.sqrt(squares))


def _surface(mask: Array) -> Array:
    image = need("scipy.ndimage", "for distances between surfaces")
    return np.asarray(mask ^ image.binary_erosion(mask))


def _mean(distances: Array) -> float:
    return float(distances.mean()) if distances.size else float("inf")
