"""Why two loss curves part, out of what their runs recorded of every step and of their optimizers.

A difference counts when it is there at or before the step in front of the parting: what comes later is a consequence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from misstep.compare.losses import LossComparison, relative
from misstep.core.run import Step

Kind = Literal[
    "optimizer", "setting", "learning_rate", "loss_scale", "skipped", "clipping", "scaled", "gradient", "update",
    "forward",
]  # fmt: skip
NEAR = 1e-3
"""The rule of the curves themselves: equal within one per mille."""
_WHOLE = 0.02
"""Within so much of a whole number of times, gradients were scaled and not computed otherwise."""


@dataclass(frozen=True, slots=True)
class LossCause:
    """One thing that parts the curves."""

    kind: Kind
    step: int = 0
    what: str = ""
    left: str = ""
    right: str = ""


@dataclass(frozen=True, slots=True)
class Side:
    """What one run knows: its steps, and how its optimizer was set up."""

    steps: Sequence[Step]
    settings: Mapping[str, str]


def causes(left: Side, right: Side, found: LossComparison) -> list[LossCause]:
    """What explains the parting; nothing when the curves agree."""
    if found.first_step is None:
        return []
    if found.reason == "forward":
        return [LossCause("forward")]
    pairs = _pairs(left.steps, right.steps, found)
    named = [*_settings(left, right), *_of_steps(pairs)]
    return named or _of_gradients(pairs)


def _pairs(left: Sequence[Step], right: Sequence[Step], found: LossComparison) -> list[tuple[Step, Step]]:
    """The steps in front of the parting, by place: one side may count from zero."""
    before = found.steps.index(found.first_step) if found.first_step is not None else 0
    return list(zip([one for one in left if one.loss is not None], [one for one in right if one.loss is not None]))[
        :before
    ]


def _settings(left: Side, right: Side) -> list[LossCause]:
    names = (
        {one.optimizer for one in left.steps if one.optimizer},
        {one.optimizer for one in right.steps if one.optimizer},
    )
    if names[0] and names[1] and not _alike(names[0], names[1]):
        return [LossCause("optimizer", left=", ".join(sorted(names[0])), right=", ".join(sorted(names[1])))]
    return [
        LossCause("setting", what=name, left=value, right=right.settings[name])
        for name, value in left.settings.items()
        if name in right.settings and not _same(value, right.settings[name])
    ]


def _alike(one: set[str], other: set[str]) -> bool:
    return {name.lower() for name in one} == {name.lower() for name in other}


def _of_steps(pairs: Sequence[tuple[Step, Step]]) -> list[LossCause]:
    """The first step at which a rate, a scale or a skipped update differs."""
    found: dict[Kind, LossCause] = {}
    for one, other in pairs:
        for kind, mine, yours in (
            ("learning_rate", one.learning_rate, other.learning_rate),
            ("loss_scale", one.loss_scale, other.loss_scale),
        ):
            if mine is not None and yours is not None and relative(mine, yours) > 1e-9:
                found.setdefault(kind, LossCause(kind, one.number, "", f"{mine:g}", f"{yours:g}"))  # type: ignore[arg-type]
        if one.overflow != other.overflow:
            found.setdefault("skipped", LossCause("skipped", one.number))
    return list(found.values())


def _of_gradients(pairs: Sequence[tuple[Step, Step]]) -> list[LossCause]:
    norms = [
        (one.number, one.gradient_norm, other.gradient_norm)
        for one, other in pairs
        if one.gradient_norm and other.gradient_norm
    ]
    apart = [(step, mine, yours) for step, mine, yours in norms if relative(mine, yours) > NEAR]
    if not norms:
        return []
    if not apart:
        return [LossCause("update", pairs[-1][0].number)]
    step, mine, yours = apart[0]
    limit = min(mine, yours)
    capped = [min(a, b) for _, a, b in apart]
    many = len(capped) > 1 and max(capped) - min(capped) <= NEAR * max(capped)
    untouched = all(relative(a, b) <= NEAR or max(a, b) > limit * (1 + NEAR) for _, a, b in norms)
    times = max(mine, yours) / limit
    if many and untouched:
        return [LossCause("clipping", step, "", f"{max(mine, yours):.4g}", f"{limit:.4g}")]
    if times > 1.5 and abs(times - round(times)) <= _WHOLE * times and len(apart) == len(norms):
        return [LossCause("scaled", step, "", "", f"{round(times)}")]
    return [LossCause("gradient", step, "", f"{mine:.4g}", f"{yours:.4g}")]


def _same(left: str, right: str) -> bool:
    if left == right:
        return True
    try:
        return relative(float(left), float(right)) <= 1e-9
    except ValueError:
        return False
