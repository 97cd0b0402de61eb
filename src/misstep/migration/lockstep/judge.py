"""Whether two results of one layer are the same but for rounding: the error model, with nothing inherited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from misstep.compare.judge.error_model import Side, allowance, gradient_cancellation, unit_of
from misstep.compare.judge.measures import Measures, measure
from misstep.migration.frameworks.base import Array
from misstep.store.foreign.elements import is_float, name_of


@dataclass(frozen=True, slots=True)
class Apart:
    """How far two arrays are apart, and how far rounding explains."""

    relative: float
    largest: float
    allowed: float
    shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """Set when they cannot be laid over each other."""

    @property
    def close(self) -> bool:
        return self.shapes is None and self.relative <= self.allowed


def side(array: Array, role: str) -> Side:
    value = np.ascontiguousarray(array)
    return Side(array.shape, measure(value, value), role, partial(np.asarray, value))


def apart(
    kind: str, left: Array, right: Array, inputs: Sequence[Array], weights: Sequence[Array], *, slack: float = 1.0
) -> Apart:
    """The outputs of one layer on the same inputs."""
    found = _measured(left, right)
    if not isinstance(found, Measures):
        return found
    beside = [*(side(one, "input") for one in inputs if _floats(one)), *(side(one, "param") for one in weights)]
    unit = unit_of(name_of(left.dtype), name_of(right.dtype))
    limit = allowance(kind, left.shape, found, beside, unit=unit, inherited=0.0)
    return Apart(found.relative, found.max_abs, limit.relative * slack)


def gradients_apart(
    kind: str, left: Array, right: Array, incoming: Array | None, inputs: Sequence[Array], weights: Sequence[Array],
    role: str,
) -> Apart:  # fmt: skip
    """The gradients of one layer for the same incoming gradient."""
    found = _measured(left, right)
    if not isinstance(found, Measures):
        return found
    sides = [side(one, "input") for one in inputs if _floats(one)]
    params = [side(one, "param") for one in weights]
    unit = unit_of(name_of(left.dtype), name_of(right.dtype))
    limit = allowance(kind, left.shape, found, [*sides, *params], unit=unit, inherited=0.0, backward=True)
    hidden = gradient_cancellation(
        found, left.shape, side(incoming, "grad") if incoming is not None else None, sides, params, role
    )
    return Apart(found.relative, found.max_abs, limit.relative * hidden)


def same_values(left: Array, right: Array) -> bool:
    """Inputs that glue code computed from equal values: a few roundings may lie between."""
    found = _measured(left, right)
    if not isinstance(found, Measures):
        return False
    return found.relative <= 64 * max(unit_of(name_of(left.dtype), name_of(right.dtype)), 2.0**-24)


def fitting(left: Array, right: Array) -> bool:
    """The left value may stand in for the right one: the same elements, in floats or in whole numbers."""
    return _squeezed(left) == _squeezed(right) and _floats(left) == _floats(right)


def _measured(left: Array, right: Array) -> Measures | Apart:
    if left.shape != right.shape and _squeezed(left) != _squeezed(right):
        return Apart(float("inf"), float("inf"), 0.0, (left.shape, right.shape))
    right = right.reshape(left.shape)
    if not (_floats(left) and _floats(right)):
        left, right = left.astype(np.float64), right.astype(np.float64)
    elif left.dtype != right.dtype:
        left, right = left.astype(np.float32), right.astype(np.float32)
    return measure(np.ascontiguousarray(left), np.ascontiguousarray(right))


def _floats(array: Array) -> bool:
    return is_float(name_of(array.dtype))


def _squeezed(array: Array) -> tuple[int, ...]:
    return tuple(size for size in array.shape if size != 1)
