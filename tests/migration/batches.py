"""A batch for each of the sixteen networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


def batch_for(name: str) -> Arrays:
    draw = np.random.default_rng(7)

    def floats(*shape: int) -> NDArray[Any]:
        return draw.standard_normal(shape).astype(np.float32)

    def whole(high: int, *shape: int) -> NDArray[Any]:
        return draw.integers(0, high, shape)

    batches: dict[str, Arrays] = {
        "mlp": {"x": floats(6, 8), "label": whole(4, 6)},
        "cnn": {"x": floats(4, 3, 8, 8), "label": whole(5, 4)},
        "resnet": {"x": floats(4, 3, 8, 8), "label": whole(5, 4)},
        "lstm": {"x": floats(3, 5, 6), "label": whole(3, 3)},
        "gru": {"x": floats(3, 6, 5), "label": floats(3, 1)},
        "attention": {"x": floats(2, 5, 8)},
        "encoder": {"x": floats(2, 5, 8), "label": whole(4, 2)},
        "decoder": {"tokens": whole(20, 2, 4), "memory": floats(2, 3, 8)},
        "groupnorm": {"x": floats(2, 4, 6, 6)},
        "conv1d": {"x": floats(3, 2, 16)},
        "embedding": {"tokens": whole(30, 4, 6), "label": whole(2, 4)},
        "prelu": {"x": floats(5, 6)},
        "transposed": {"z": floats(2, 4, 3, 3)},
        "unet": {"x": floats(2, 1, 8, 8)},
        "vit": {"x": floats(2, 3, 8, 8)},
        "mobilenet": {"x": floats(2, 6, 5, 5)},
    }
    return batches[name]


def write_batch(folder: Path, name: str) -> Path:
    path = folder / f"{name}.npz"
    np.savez(path, **batch_for(name))
    return path
