"""Where the steps of one rank spend their time: the records of its trace as a handful of figures.

The first step, steps that compiled and steps that began an epoch are told apart: their time is real, but it is not what
the next thousand steps will take. `misstep` is our own work, which the user's step does not contain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from misstep.core.segments import COMPILE, DATA, EPOCH, FIRST, LEFT, OWN, SEGMENTS, SKIPPED, WHOLE
from misstep.store.tracefile import Records

Floats = npt.NDArray[np.float64]

FEWEST = 8
"""Steps below which nothing is concluded: a median of three says nothing of a fourth."""
_OUTLIER = 3.0
"""A step is an outlier beyond the third quartile by this many quartile distances (Tukey's "far out")."""
_MOST_OUTLIERS = 20
_COMPILED_MS = 1.0


@dataclass(frozen=True, slots=True)
class Outlier:
    """A step that took much longer than the others, and what of it did."""

    step: int
    ms: float
    segment: str
    """The segment that grew most over its usual time."""
    asks: int
    """Batches asked for in it; more than usual means that something else read data, such as an evaluation."""


@dataclass(frozen=True, slots=True)
class Period:
    """Slow steps that come back after the same number of steps: a checkpoint, an evaluation, a log."""

    every: int
    ms: float
    """What they take more than the others."""
    segment: str


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Of one rank; times in milliseconds."""

    rank: int
    steps: int
    """Steps there are records of."""
    steady: int
    """Steps the figures below are of."""
    first_ms: float
    compile_ms: float
    """In all steps together."""
    compiled_later: tuple[int, ...]
    """Steps after the first in which something was compiled again."""
    epoch_ms: float
    """What a step that begins an epoch takes more than the others; 0 when there was none after the first step."""
    epochs: int
    mean: float
    p50: float
    p90: float
    p99: float
    parts: dict[str, float]
    """Mean of each segment, our own work included."""
    cpu: float
    """CPU time of the training process."""
    asks: float
    """Batches a step asks for; more than one with gradient accumulation."""
    empty: float | None
    """Share of the asks that found the queue empty; None where nothing is made ahead."""
    queue: float | None
    """Batches that lay ready, on average."""
    outliers: tuple[Outlier, ...]
    period: Period | None
    whole: bool
    """Steps run as one compiled graph: its inside is one figure, `forward`."""

    @property
    def own(self) -> float:
        return self.parts["misstep"]

    @property
    def bare(self) -> float:
        """A step without our own work."""
        return self.mean - self.own

    def share(self, segment: str) -> float:
        """Of the step without our own work."""
        return self.parts[segment] / self.bare if self.bare > 0 else 0.0


def step_times(records: Records, rank: int = 0) -> StepTimes | None:
    """The figures of one rank; None when there are too few steps."""
    if len(records) < FEWEST:
        return None
    spent = records["spent"].astype(np.float64) / 1e3
    spent[:, COMPILE] = np.where(spent[:, COMPILE] < _COMPILED_MS / 1e3, 0.0, spent[:, COMPILE])
    flags, asks = records["flags"], records["asks"].astype(np.int64)
    total = spent.sum(axis=1)
    compiled = (spent[:, COMPILE] >= _COMPILED_MS) & ((flags & FIRST) == 0)
    usual_asks = float(np.median(asks))
    apart = ((flags & (FIRST | EPOCH | SKIPPED | LEFT)) != 0) | compiled
    apart[0] = True
    if (~apart).sum() < FEWEST // 2:  # epochs of one or two steps: every step begins one
        apart = ((flags & (FIRST | LEFT)) != 0) | compiled
        apart[0] = True
    steady = np.flatnonzero(~apart)
    if len(steady) < FEWEST // 2:
        return None
    chosen, whole = spent[steady], total[steady]
    later = np.flatnonzero(((flags & EPOCH) != 0) & (np.arange(len(records)) > 0) & ~compiled)
    queue = records["queue"][steady]
    made_ahead = queue >= 0
    return StepTimes(
        rank=rank,
        steps=len(records),
        steady=len(steady),
        first_ms=float(total[0]),
        compile_ms=float(spent[:, COMPILE].sum()),
        compiled_later=tuple(int(number) for number in records["number"][np.flatnonzero(compiled)][:200]),
        epoch_ms=max(0.0, float(np.median(total[later]) - np.median(whole))) if len(later) else 0.0,
        epochs=len(later) + 1,
        mean=float(whole.mean()),
        **{f"p{percent}": float(np.percentile(whole, percent)) for percent in (50, 90, 99)},
        parts=dict(zip(SEGMENTS, map(float, chosen.mean(axis=0)))),
        cpu=float(records["cpu"][steady].astype(np.float64).mean() / 1e3),
        asks=usual_asks,
        empty=float((queue[made_ahead] == 0).mean()) if made_ahead.any() else None,
        queue=float(queue[made_ahead].mean()) if made_ahead.any() else None,
        outliers=_outliers(records["number"][steady], chosen, asks[steady]),
        period=_period(records["number"][steady], chosen),
        whole=bool((flags[steady] & WHOLE).any()),
    )


def steady_ms(records: Records, *, skip: int = 0) -> Floats:
    """What each steady step took without our own work, after the first `skip` of them."""
    spent = records["spent"].astype(np.float64) / 1e3
    steady = (records["flags"] & (FIRST | EPOCH | SKIPPED | LEFT)) == 0
    steady &= spent[:, COMPILE] < _COMPILED_MS
    if len(steady):
        steady[0] = False
    kept: Floats = (spent.sum(axis=1) - spent[:, OWN])[steady][skip:]
    return kept


def ready_waits(records: Records) -> Floats:
    """Milliseconds a batch was waited for although some lay ready: what receiving one costs."""
    waits: Floats = records["spent"][records["queue"] > 0][:, DATA].astype(np.float64) / 1e3
    return waits


def _outliers(numbers: Records, spent: Floats, asks: npt.NDArray[np.int64]) -> tuple[Outlier, ...]:
    total = spent.sum(axis=1)
    low, high = np.percentile(total, [25, 75])
    limit = max(high + _OUTLIER * (high - low), 1.5 * float(np.median(total)))
    usual = np.median(spent, axis=0)
    beyond = np.flatnonzero(total > limit)
    worst = beyond[np.argsort(-total[beyond])][:_MOST_OUTLIERS]
    return tuple(
        Outlier(int(numbers[at]), float(total[at]), SEGMENTS[int(np.argmax(spent[at] - usual))], int(asks[at]))
        for at in sorted(worst)
    )


def _period(numbers: Records, spent: Floats) -> Period | None:
    """Slow steps at equal distances. Of the steps beyond 1.3 medians, four or more whose distances are one number (a
    tenth of them may be off: a slow step of another cause lies between)."""
    total = spent.sum(axis=1)
    usual = float(np.median(total))
    slow = np.flatnonzero(total > max(1.3 * usual, usual + 0.2))
    if len(slow) < 4 or len(slow) > len(total) // 3:
        return None
    distances = np.diff(numbers[slow].astype(np.int64))
    values, counts = np.unique(distances, return_counts=True)
    every = int(values[np.argmax(counts)])
    if every < 3 or counts.max() < 0.6 * len(distances) or counts.max() < 3:
        return None
    more = spent[slow].mean(axis=0) - np.median(spent, axis=0)
    return Period(every, float(np.median(total[slow]) - usual), SEGMENTS[int(np.argmax(more))])
