"""Numbers about arrays from a small, evenly spread sample of their elements: for frameworks that give numpy arrays."""

from __future__ import annotations

import math
import zlib

import numpy as np
from numpy.typing import NDArray

from misstep.core.facts import Activation, TensorLook
from misstep.core.stats import Array

MOST_SAMPLES = MOST_FEATURES = 256
MOST_ELEMENTS = 2048


def sample(values: Array, most: int = MOST_ELEMENTS) -> Array:
    """A copy of some elements, always the same ones."""
    flat = values.reshape(-1)
    return flat[:: max(1, flat.size // most)][:most].copy()


def digest(values: Array, most: int = 64) -> str:
    """Tells two arrays apart by some of their elements."""
    return f"{zlib.crc32(repr((values.shape, sample(values, most).tolist())).encode()):08x}"


def matrix(values: Array) -> NDArray[np.float32] | None:
    """(samples, features), at most 256 by 256 of them; None for what has no samples."""
    if values.ndim == 0 or values.size == 0 or values.dtype.kind not in "fiub":
        return None
    flat = values.reshape(values.shape[0], -1)
    rows = flat[:: max(1, flat.shape[0] // MOST_SAMPLES)][:MOST_SAMPLES]
    return np.asarray(rows[:, :: max(1, rows.shape[1] // MOST_FEATURES)][:, :MOST_FEATURES], np.float32)


def look_at(values: Array) -> TensorLook:
    """Range, spread, repeated samples and constant features."""
    shape, dtype = tuple(int(size) for size in values.shape), str(values.dtype)
    rows = matrix(values)
    if rows is None:
        return TensorLook(shape, dtype)
    distinct = constant = None
    if rows.shape[0] > 1:
        distinct = len({row.tobytes() for row in rows}) / rows.shape[0]
        if rows.shape[1] > 1:
            constant = float((rows == rows[:1]).all(0).mean())
    return TensorLook(
        shape,
        dtype,
        float(rows.min()),
        float(rows.max()),
        float(rows.mean()),
        float(rows.std()),
        distinct,
        constant,
        digest(values),
    )


def spread(values: Array) -> float | None:
    """How much samples of a batch differ from each other, over the size of the values; None for fewer than four."""
    rows = matrix(values)
    if rows is None or rows.shape[0] < 4:
        return None
    size = float(np.abs(rows).mean())
    if not math.isfinite(size):
        return None
    return float(rows.std(0).mean()) / size if size > 0 else 0.0


def alike(values: Array) -> bool:
    """Whether all units of a weight matrix are the same, and there are several."""
    if values.ndim < 2 or values.shape[0] < 2 or values.size // values.shape[0] < 2:
        return False
    return bool((values[1] == values[0]).all()) and bool((values == values[:1]).all())


def is_distribution(values: Array) -> bool:
    """Whether rows are never negative and sum to 1."""
    if values.ndim < 2 or values.shape[1] < 2 or values.shape[0] < 4:
        return False
    rows = np.asarray(values[:256], np.float32)
    return bool((rows >= 0).all()) and bool((np.abs(rows.sum(1) - 1) < 1e-3).all())


def are_log_rows(values: Array) -> bool:
    """Whether rows are log-probabilities."""
    rows = np.asarray(values[:256], np.float32)
    return bool((rows <= 1e-3).all()) and bool((np.abs(np.exp(rows).sum(1) - 1) < 0.01).all())


def top_share(values: Array) -> float | None:
    """Share of the most frequent of whole numbers; None for fewer than eight, or for others."""
    flat = values.reshape(-1)[:65536]
    if flat.size < 8 or (flat.dtype.kind == "f" and not np.isin(flat, (0, 1)).all()):
        return None
    return float(np.unique(flat, return_counts=True)[1].max()) / flat.size


def activation(kind: str, layer: str, values: Array) -> Activation | None:
    """What came out of an activation function."""
    if values.ndim < 2 or values.size < 2:
        return None
    size = float(np.sqrt(np.mean(np.square(np.asarray(values, np.float32)))))
    if kind == "relu":
        axis = 1 if values.ndim == 4 else values.ndim - 1
        others = tuple(each for each in range(values.ndim) if each != axis)
        return Activation(kind, layer, dead=float((np.abs(values).max(others) == 0).mean()), size=size)
    flat = np.abs(values) > 0.99 if kind == "tanh" else (values > 0.99) | (values < 0.01)
    return Activation(kind, layer, saturated=float(flat.mean()), size=size)
