"""Which part of a picture a classifier looks at: hide it piece by piece and see where the score falls."""

from __future__ import annotations

from typing import Any

import numpy as np

from misstep.train.metrics.base import Metric, nothing_measured, rearrange_inputs
from misstep.train.steps import framework_for
from misstep.train.values import Array, to_numpy


class OcclusionSensitivity(Metric):
    """By how much the score of a class falls when the pixels around each position are replaced by `pad_val`.

    `update(model, image, label)` takes one image of shape (1, …); `margin` pixels are hidden to either side,
    `n_batch` variants are predicted at once, and `b_box` (min and max of every axis, in turn) limits the positions.
    """

    def __init__(
        self, pad_val: float = 0.0, margin: int = 2, n_batch: int = 128, b_box: list[int] | None = None
    ) -> None:
        super().__init__()
        self.pad_val = float(pad_val)
        self.margin = margin
        self.n_batch = n_batch
        self.b_box = b_box
        self.clear()

    def clear(self) -> None:
        self._map: Array | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        if len(inputs) != 3:
            raise ValueError(f"OcclusionSensitivity takes the model, an image and its label, got {len(inputs)} inputs")
        model, image, label = inputs[0], to_numpy(inputs[1]), int(to_numpy(inputs[2]).reshape(-1)[0])
        if image.shape[0] != 1:
            raise ValueError(f"OcclusionSensitivity takes one image at a time, got a batch of {image.shape[0]}")
        framework = framework_for(model, what="the model")
        first, last = _box(self.b_box, image.shape[1:])
        shape = tuple(last - first + 1)
        baseline = to_numpy(model(framework.tensor(image)))[0, label]
        scores: list[Array] = []
        hidden: list[Array] = []
        positions = list(np.ndindex(shape))
        for position in positions:
            hidden.append(self._hide(image, np.array(position) + first))
            if len(hidden) == self.n_batch or len(scores) * self.n_batch + len(hidden) == len(positions):
                scores.append(to_numpy(model(framework.tensor(np.concatenate(hidden))))[:, label])
                hidden = []
        self._map = float(baseline) - np.concatenate(scores).astype(np.float64).reshape(shape)

    def eval(self) -> Array:
        if self._map is None:
            raise nothing_measured(self)
        return np.squeeze(self._map)

    def _hide(self, image: Array, centre: Array) -> Array:
        variant = image.copy()
        window = tuple(
            slice(max(0, int(at) - self.margin), min(size, int(at) + self.margin))
            for at, size in zip(centre, image.shape[1:])
        )
        variant[(slice(None), *window)] = self.pad_val
        return variant


def _box(b_box: list[int] | None, shape: tuple[int, ...]) -> tuple[Array, Array]:
    size = np.array(shape)
    if b_box is None:
        return np.zeros_like(size), size - 1
    if len(b_box) != 2 * len(shape):
        raise ValueError(f"b_box needs a minimum and a maximum for each of {len(shape)} axes, got {len(b_box)} numbers")
    first, last = np.maximum(b_box[::2], 0), np.array(b_box[1::2])
    last = np.where(last < 0, size - 1, last)
    if (last >= size).any() or (first > last).any():
        raise ValueError(f"b_box {b_box} does not lie within an image of shape {shape}")
    return first, last
