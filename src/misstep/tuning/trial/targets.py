"""The number a trial is judged by: from a recorded curve, from the process, or from what it printed."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from misstep.tuning.studyfile.study import Study, Target
from misstep.tuning.trial.follow import Follower, Points

LEAST_STEPS = 3
"""Steps left out of the median step time when there are enough: the first ones build and warm up."""


class Measurements:
    """Everything measured of a trial, by name."""

    def __init__(self, follower: Follower, output: Path, *, seconds: float = 0.0, memory_mb: float = 0.0) -> None:
        self._follower, self._output = follower, output
        self._seconds, self._memory_mb = seconds, memory_mb

    def value(self, target: Target) -> float | None:
        """The target's value; None when it was never recorded."""
        if target.pattern:
            return reduced(printed(self._output, target.pattern), target.reduce)
        if target.name == "seconds":
            return self._seconds
        if target.name == "memory_mb" and not self._follower.curve("memory_mb"):
            return self._memory_mb or None
        if target.name == "step_seconds":
            times = [value for _, value in self._follower.curves["step_seconds"]]
            times = times[LEAST_STEPS:] if len(times) > 2 * LEAST_STEPS else times
            return statistics.median(times) if times else None
        return reduced(self._follower.curve(target.name), target.reduce)

    def values(self, study: Study) -> list[float | None]:
        return [self.value(target) for target in study.targets]

    def named(self, names: Sequence[str]) -> dict[str, float]:
        """These measurements by name, those that are there."""
        found = {name: self.value(Target(name)) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def recorded(self) -> list[str]:
        """What could have been a target."""
        return sorted({*(name for name, points in self._follower.curves.items() if points), "seconds", "memory_mb"})


def reduced(points: Points, how: str) -> float | None:
    """One number of a curve: its last, least, greatest, or the mean of its last tenth."""
    values = [value for _, value in points]
    if not values:
        return None
    if how == "mean":
        return statistics.fmean(values[-max(1, len(values) // 10) :])
    finite = [value for value in values if math.isfinite(value)]
    if how == "last" or not finite:
        return values[-1]
    return min(finite) if how == "min" else max(finite)


def printed(output: Path, pattern: str) -> Points:
    """Every number that a pattern finds in the output, counted from 1."""
    try:
        text = output.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return list(enumerate(_numbers(pattern, text), start=1))


class Printing:
    """The same while the output is written, line by line, so that a printed target has a curve to be compared."""

    def __init__(self, output: Path, pattern: str) -> None:
        self._output, self._pattern, self._offset = output, pattern, 0
        self.points: Points = []

    def look(self) -> bool:
        """Take in the lines written since the last look; True when a number was among them."""
        if not self._pattern:
            return False
        try:
            with open(self._output, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return False
        end = data.rfind(b"\n") + 1
        self._offset += end
        found = list(_numbers(self._pattern, data[:end].decode("utf-8", "replace")))
        self.points += [(len(self.points) + at, value) for at, value in enumerate(found, start=1)]
        return bool(found)


def _numbers(pattern: str, text: str) -> Iterator[float]:
    for match in re.finditer(pattern, text):
        try:
            yield float(match[1].replace(",", "").rstrip("%"))
        except (ValueError, AttributeError):
            continue


def report_steps(reached: int, since: int) -> list[int]:
    """The steps at which trials are compared, up to the one reached and behind `since`.

    The same for every trial, or a pruner finds nothing to compare; denser at the beginning, where most is decided.

    >>> report_steps(30, 0)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
    """
    steps, step = [], 1
    while step <= reached:
        if step > since:
            steps.append(step)
        step += max(1, 10 ** max(0, len(str(step)) - 2) * (1 if step < 10 else 2))
    return steps
