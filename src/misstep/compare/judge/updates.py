"""What an optimizer made of its gradients: how far apart two updated weights may be, and why they are further.

    weight after = weight before + update(gradient)

The error of the sum is the error the weight had, plus that of the update. An update may stretch a gradient's rounding:
Adam divides by its size, so that an element near zero changes sign for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.compare.judge import error_model as model
from misstep.compare.result import BAD, Row
from misstep.store.foreign.source import Entry

LARGEST_UPDATE = 1e-2
"""Of a weight's size, where the weight before was not kept."""
_EXPLAINED = 0.05
"""Of the difference may be left when a guess is told."""


def allowance(
    row_units: float, unit: float, before: Row | None, gradient: Row | None, moved: Callable[[], float]
) -> model.Allowance:
    """What may lie between two weights after an update, given the weights and the gradients it began with.

    `moved` tells how far the update went against the size of the weight.
    """
    base = row_units * unit
    if gradient is not None and gradient.verdict == "identical" and before is not None:
        return model.Allowance(base + 2 * before.error, unit)
    carried = before.error if before is not None and before.close else 0.0
    noise = gradient.error if gradient is not None and gradient.close else unit
    nothing = gradient is not None and gradient.close and bool(gradient.note)  # both are zero up to rounding
    share = 2.0 if nothing else min(2.0, 4 * math.sqrt(noise + unit))
    return model.Allowance(base + 2 * carried + min(1.0, moved()) * share, unit)


def how_far(after: NDArray[Any], before: NDArray[Any]) -> float:
    """‖after − before‖ / ‖after‖; a hundredth when the shape changed."""
    if before.shape != after.shape:
        return LARGEST_UPDATE
    size = float(np.linalg.norm(after.astype(np.float64)))
    gap = float(np.linalg.norm(after.astype(np.float64) - before.astype(np.float64)))
    return gap / size if size else 1.0


def as_one(rows: Sequence[Row]) -> list[Row]:
    """Weights that differ after equal gradients are one cause, the update, told at the first of them."""
    told = list(rows)
    by_step: dict[int, list[int]] = {}
    for at, row in enumerate(rows):
        if row.entry.updated and row.entry.role == "param":
            by_step.setdefault(row.entry.step or 0, []).append(at)
    for places in by_step.values():
        causes = [at for at in places if rows[at].part == "cause" and rows[at].verdict in BAD]
        if len(causes) < 2:
            continue
        first, *others = causes
        told[first] = replace(
            rows[first],
            note=f"the update differs: gradients were equal, and after it {len(causes)} of {len(places)} weights"
            f" are not",
        )
        for at in others:
            told[at] = replace(rows[at], part="consequence")
    return told


Fetch = Callable[[Entry], NDArray[Any]]


def why(row: Row, rows: Sequence[Row], left: Fetch, right: Fetch) -> str:
    """What the two updates of a weight say about the optimizer's settings; empty when nothing fits."""
    step = row.entry.step
    before = next(
        (
            one
            for one in rows
            if one.entry.name == row.entry.name and one.entry.role == "param" and one.entry.step == (step or 0) - 1
        ),
        None,
    )
    if before is None or before.left is None or before.right is None or row.left is None or row.right is None:
        return ""
    began = left(before.left).astype(np.float64)
    ours = left(row.left).astype(np.float64) - began
    theirs = right(row.right).astype(np.float64) - right(before.right).astype(np.float64)
    return guess(began, ours, theirs)


def guess(weight: NDArray[Any], ours: NDArray[Any], theirs: NDArray[Any]) -> str:
    """What takes one update to the other: a factor (the learning rate), or a share of the weight (its decay).

    >>> guess(np.ones(4), np.array([1.0, 2, 3, 4]), np.array([2.0, 4, 6, 8]))
    'the right side moves 2 times as far: the learning rate'
    """
    gap = theirs - ours
    size = float(np.linalg.norm(gap))
    if not size or weight.shape != ours.shape or ours.shape != theirs.shape:
        return ""
    for direction, words in (
        (ours, "the right side moves {factor:.4g} times as far: the learning rate"),
        (weight, "the right side's weights shrink by {shrink:.3g} more: the weight decay"),
    ):
        length = float(np.vdot(direction, direction))
        factor = float(np.vdot(direction, gap)) / length if length else 0.0
        if factor and float(np.linalg.norm(gap - factor * direction)) < _EXPLAINED * size:
            return words.format(factor=1 + factor, shrink=-factor)
    return "the optimizer's settings or its rule: learning rate, weight decay, momentum, epsilon"
