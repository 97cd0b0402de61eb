"""Two loss curves side by side: from which step they part, and what that says about the cause.

The rule of thumb of accuracy debugging (MindSpore's precision guide): equal within 1 ‰ is equal.

    step 1 off                   the forward pass or its inputs differ
    step 1 equal, step 2 off     the backward pass or the update differs
    later                        look at the step where they part, with everything of it dumped
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from misstep.errors import CompareError

Reason = Literal["equal", "forward", "backward", "later"]

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf)"
_LOSS = re.compile(rf"(?<![\w.])(?P<tag>[\w/ ]*loss[\w/]*)\s*(?:is)?\s*[:=]?\s*\(?(?P<value>{_NUMBER})", re.IGNORECASE)
_STEP = re.compile(r"(?<![\w])(?:global[_ ]?step|step|iter(?:ation)?)s?\s*(?:[:=]|\[)?\s*(?P<step>\d+)", re.IGNORECASE)


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


Curve = Sequence[float] | Mapping[int, float]


def compare_losses(left: Curve | str | Path, right: Curve | str | Path, *, tolerance: float = 1e-3) -> LossComparison:
    """Two loss curves: lists, dictionaries step → loss, or log files.

    >>> compare_losses([1.0, 0.9], [1.0, 0.8]).reason
    'backward'
    """
    one, other = _curve(left), _curve(right)
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


def read_loss_log(path: str | Path, *, tag: str = "loss") -> dict[int, float]:
    """Losses from a log: the number behind the tag, at the step the line names, else counted from 1.

    >>> read_loss_log("train.log", tag="lm loss")
    """
    found: dict[int, float] = {}
    with open(path, encoding="utf-8", errors="replace") as lines:
        _collect(lines, tag, found)
    if not found:
        raise CompareError(f"{path} has no line with {tag!r} and a number; name the word before the loss with --tag")
    return found


def _collect(lines: Iterable[str], tag: str, found: dict[int, float]) -> None:
    for line in lines:
        values = [one for one in _LOSS.finditer(line) if one["tag"].strip().lower().endswith(tag.lower())]
        if values:
            step = _STEP.search(line)
            found[int(step["step"]) if step else len(found) + 1] = float(values[0]["value"])


def _curve(given: Curve | str | Path) -> dict[int, float]:
    if isinstance(given, str | Path):
        return read_loss_log(given)
    if isinstance(given, Mapping):
        return {int(step): float(value) for step, value in given.items()}
    return {step: float(value) for step, value in enumerate(given, start=1)}


def _range(curve: Mapping[int, float]) -> str:
    return f"steps {min(curve)} to {max(curve)}" if curve else "none"
