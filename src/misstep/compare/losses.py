"""Two loss curves side by side: from which step they part, and what that says about the cause.

The rule of thumb of accuracy debugging (MindSpore's precision guide): equal within 1 ‰ is equal.

    step 1 off                   the forward pass or its inputs differ
    step 1 equal, step 2 off     the backward pass or the update differs
    later                        look at the step where they part, with everything of it dumped
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from misstep.compare.loss_logs import LossCurve, read_curve
from misstep.errors import CompareError

Reason = Literal["equal", "forward", "backward", "later"]


@dataclass(frozen=True, slots=True)
class LossComparison:
    """Where two loss curves part; true when they do not."""

    steps: tuple[int, ...]
    left: tuple[float, ...]
    right: tuple[float, ...]
    tolerance: float
    first_step: int | None
    """The first step whose losses differ by more than the tolerance; None when none does."""
    reason: Reason
    largest: float
    """The largest relative difference."""

    def __bool__(self) -> bool:
        return self.first_step is None

    @property
    def relative(self) -> tuple[float, ...]:
        return tuple(relative(a, b) for a, b in zip(self.left, self.right))

    def summary(self) -> str:
        """'losses part at step 2 …: step 1 was equal, so the backward pass or the update differs'"""
        count = len(self.steps)
        if self.first_step is None:
            return (
                f"losses agree over {count} steps (largest difference {self.largest:.1e}, allowed {self.tolerance:.0e})"
            )
        at = self.steps.index(self.first_step)
        text = f"losses part at step {self.first_step}: {self.left[at]:.6g} against {self.right[at]:.6g}"
        meaning = {
            "forward": "the first step is off already, so the forward pass, its inputs or the initial weights differ: "
            "compare a dump of that step",
            "backward": "the first step was equal, so the forward pass is right and the backward pass or the update "
            "differs: compare gradients and the optimizer's settings",
            "later": f"{at} steps before were equal; dump step {self.first_step} of both and compare",
            "equal": "",
        }[self.reason]
        return f"{text}; {meaning}"


Curve = Sequence[float] | Mapping[int, float] | LossCurve


def compare_losses(left: Curve | str | Path, right: Curve | str | Path, *, tolerance: float = 1e-3) -> LossComparison:
    """Two loss curves: lists, dictionaries step → loss, or log files.

    >>> compare_losses([1.0, 0.9], [1.0, 0.8]).reason
    'backward'
    """
    one, other = aligned(_curve(left), _curve(right))
    steps = tuple(sorted(one.keys() & other.keys()))
    if not steps:
        raise CompareError(
            f"the loss curves share no step: left has {_range(one)}, right has {_range(other)}; "
            f"count from the same number"
        )
    a, b = tuple(one[step] for step in steps), tuple(other[step] for step in steps)
    gaps = [relative(x, y) for x, y in zip(a, b)]
    first = next((at for at, gap in enumerate(gaps) if not gap <= tolerance), None)
    reason: Reason = "equal" if first is None else "forward" if first == 0 else "backward" if first == 1 else "later"
    finite = [gap for gap in gaps if math.isfinite(gap)]
    return LossComparison(
        steps, a, b, tolerance, None if first is None else steps[first], reason, max(finite, default=math.inf)
    )


def relative(left: float, right: float) -> float:
    """|a − b| against the larger; two NaN or the same infinity are equal, one alone is infinitely far."""
    if left == right or (math.isnan(left) and math.isnan(right)):
        return 0.0
    if not (math.isfinite(left) and math.isfinite(right)):
        return math.inf
    return abs(left - right) / max(abs(left), abs(right))


def aligned(left: LossCurve, right: LossCurve) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """Both curves by the steps they share: one that counts from 0 is moved by one, one without numbers goes by place.

    >>> aligned(LossCurve({0: 2.0, 1: 1.0}), LossCurve({1: 2.0, 2: 1.0}))[0]
    {1: 2.0, 2: 1.0}
    """
    one, other = left.values, right.values
    if one and other:
        if left.numbered != right.numbered and len(one) == len(other):
            numbers = sorted(one if left.numbered else other)
            return dict(zip(numbers, _in_order(one))), dict(zip(numbers, _in_order(other)))
        if min(one) == 0 and min(other) == 1:
            one = {step + 1: value for step, value in one.items()}
        elif min(other) == 0 and min(one) == 1:
            other = {step + 1: value for step, value in other.items()}
    return one, other


def _in_order(curve: Mapping[int, float]) -> list[float]:
    return [curve[step] for step in sorted(curve)]


def _curve(given: Curve | str | Path) -> LossCurve:
    if isinstance(given, LossCurve):
        return given
    if isinstance(given, str | Path):
        return read_curve(given)
    if isinstance(given, Mapping):
        return LossCurve({int(step): float(value) for step, value in given.items()})
    return LossCurve({step: float(value) for step, value in enumerate(given, start=1)}, numbered=False)


def _range(curve: Mapping[int, float]) -> str:
    return f"steps {min(curve)} to {max(curve)}" if curve else "none"
