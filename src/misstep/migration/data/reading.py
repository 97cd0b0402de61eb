"""A data pipeline as rows of arrays, whatever made it: a PyTorch Dataset or DataLoader, a MindSpore dataset, a list.

Told by what the object can do, so neither framework is imported here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from misstep.errors import MigrationError
from misstep.migration.frameworks.base import Array


@dataclass(frozen=True, slots=True)
class Sample:
    """One element of a pipeline: its columns by name, and how long it took to come."""

    columns: Mapping[str, Array]
    seconds: float


def samples(pipeline: Any) -> Iterator[Sample]:
    """Every element, in the pipeline's own order."""
    source = _iterator(pipeline)
    while True:
        begun = time.perf_counter()
        try:
            element = next(source)
        except StopIteration:
            return
        taken = time.perf_counter() - begun
        yield Sample(_columns(element), taken)


def promised_length(pipeline: Any) -> int | None:
    """How many elements it says it has; None when it does not say."""
    if hasattr(pipeline, "get_dataset_size"):
        return int(pipeline.get_dataset_size())
    try:
        return len(pipeline)
    except (TypeError, NotImplementedError):
        return None


def _iterator(pipeline: Any) -> Iterator[Any]:
    if hasattr(pipeline, "create_dict_iterator"):
        return iter(pipeline.create_dict_iterator(num_epochs=1, output_numpy=True))
    if hasattr(pipeline, "__iter__"):
        return iter(pipeline)
    if hasattr(pipeline, "__getitem__"):
        return _by_index(pipeline)
    raise MigrationError(
        f"{type(pipeline).__name__} is no data pipeline: it has neither __iter__ nor __getitem__; "
        "return a Dataset, a DataLoader, a MindSpore dataset or a list"
    )


def _by_index(pipeline: Any) -> Iterator[Any]:
    """A map-style dataset; its length counts, because many never raise IndexError."""
    length = promised_length(pipeline)
    at = 0
    while length is None or at < length:
        try:
            yield pipeline[at]
        except IndexError:
            return
        at += 1


def _columns(element: Any) -> dict[str, Array]:
    if isinstance(element, Mapping):
        parts = {str(name): value for name, value in element.items()}
    elif isinstance(element, tuple | list):
        parts = {str(at): value for at, value in enumerate(element)}
    else:
        parts = {"0": element}
    return {name: _array(value) for name, value in parts.items()}


def _array(value: Any) -> Array:
    for way in ("asnumpy", "numpy"):
        if hasattr(value, way):
            return np.asarray(getattr(value, way)())
    return np.asarray(value)
