"""The small pictures of a diagnosis as numbers: gradients by depth, updates by weight, the loss.

The page and the HTML report draw the same ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from misstep.diagnosis.facts import Facts

MOST_POINTS = 240


@dataclass(frozen=True, slots=True)
class Pictures:
    """Of one rank, at its last look."""

    layers: tuple[str, ...] = ()
    """Weights of layers, from the input on."""
    gradients: tuple[float | None, ...] = ()
    """Of each: norm of the gradient over norm of the weight."""
    updates: tuple[float | None, ...] = ()
    """Of each: norm of the update over norm of the weight; 0 for one that does not move."""
    losses: tuple[float | None, ...] = ()
    """Thinned to a few hundred."""
    step: int = 0


def pictures_of(facts: Facts) -> Pictures:
    """What there is to draw; empty where nobody looked."""
    losses = _thinned(facts.losses)
    if not facts.looks:
        return Pictures(losses=losses)
    last = {one.name: one for one in facts.looks[-1].weights}
    names = [name for name, one in facts.weights.items() if one.known and len(one.shape) > 1 and name in last]
    return Pictures(
        layers=tuple(names),
        gradients=tuple(_over(last[name].gradient, last[name].norm) for name in names),
        updates=tuple(_finite(last[name].update) for name in names),
        losses=losses,
        step=facts.looks[-1].step,
    )


def _thinned(losses: tuple[float, ...]) -> tuple[float | None, ...]:
    stride = max(1, math.ceil(len(losses) / MOST_POINTS))
    return tuple(_finite(one) for one in losses[::stride])


def _over(value: float | None, size: float | None) -> float | None:
    return None if value is None or not size else _finite(value / size)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
