"""When a step is looked at from close by: often at first, ever more rarely later, and never beyond what it may cost.

Steps 1, 2, 3, 4, 6, 8, 12, 16, 24 … : mistakes of wiring show at once, and what builds up shows over powers of two. A
look costs a few milliseconds, so after the first ones it waits until the training has earned it.
"""

from __future__ import annotations

from time import perf_counter

SHARE = 0.005
"""Of the time of training that looks may take, once the first are done."""
FIRST = 4
"""Looks that are taken whatever they cost: without them nothing can be said."""
ALLOWANCE = 0.2
"""Seconds that may be spent before there is any share: a program of a second can be diagnosed too."""
LONGEST = 4096
"""Steps between two looks of a long run."""


class Schedule:
    """Decides before every step."""

    def __init__(self) -> None:
        self._due = 1
        self._looks = 0
        self._spent = 0.0
        self._began = perf_counter()

    def wants(self, step: int) -> bool:
        """Whether the step of this number is to be looked at."""
        if step < self._due:
            return False
        earned = ALLOWANCE + SHARE * (perf_counter() - self._began)
        return self._looks < FIRST or self._spent < earned

    def looked(self, step: int) -> None:
        """The look at this step is over."""
        self._looks += 1
        self._due = following(step)

    def spent(self, seconds: float) -> None:
        """CPU time a look has taken: a machine that others keep busy must not make us look away."""
        self._spent += seconds


def following(step: int) -> int:
    """1 2 3 4 6 8 12 16 24 32 …

    >>> following(16)
    24
    """
    if step < 4:
        return step + 1
    power = 1 << (step.bit_length() - 1)
    half = power // 2
    return min((power + half) if step < power + half else 2 * power, step + LONGEST)
