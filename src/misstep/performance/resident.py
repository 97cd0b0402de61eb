"""The memory of a training that ran: what its process held, about once a second, and whether it only ever rises.

A leak is told by its shape alone: after the first third (caches fill, workers start) the memory rises in most intervals
and in all, over steps, by more than noise. Which line holds on to it is for `misstep memory --measure`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from misstep.store.layout import rank_paths
from misstep.store.reading.reader import Run
from misstep.store.tracefile import read_trace

_FEWEST = 9
_RISING = 0.6
_LEAST_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Leak:
    bytes_per_step: float
    risen: int
    """Bytes, since the first third."""


@dataclass(frozen=True, slots=True)
class Resident:
    """Of one rank, in bytes."""

    rank: int
    looks: int
    first: int
    last: int
    most: int
    most_at_step: int
    timeline: tuple[tuple[int, int], ...]
    """(step, bytes)"""
    leak: Leak | None


def resident_memory(run: Run) -> tuple[Resident, ...]:
    """Of every rank that was looked at; a training shorter than a second was not."""
    found = []
    for rank in run.ranks:
        loads = read_trace(rank_paths(run.path, rank).trace).loads
        loads = loads[loads["resident"] > 0]
        if len(loads):
            steps, held = loads["step"].astype(np.int64), loads["resident"].astype(np.int64)
            steps[-1] = max(steps[-1], steps.max())  # the look at the very end has no step
            top = int(np.argmax(held))
            timeline = tuple((int(step), int(size)) for step, size in zip(steps, held))
            leak = leak_in(steps, held)
            found.append(
                Resident(rank, len(held), int(held[0]), int(held[-1]), int(held[top]), int(steps[top]), timeline, leak)
            )
    return tuple(found)


def leak_in(
    steps: np.ndarray[tuple[int], np.dtype[np.int64]], held: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> Leak | None:
    """A rise that does not end; None where there is none, or too few looks to tell."""
    later = slice(len(held) // 3, None)
    steps, held = steps[later], held[later]
    if len(held) < _FEWEST or steps[-1] <= steps[0]:
        return None
    changes = np.diff(held)
    risen = int(held[-1] - held[0])
    falls = int(-changes[changes < 0].sum())
    if (changes > 0).mean() < _RISING or falls > 0.2 * max(1, risen) or risen < _LEAST_SHARE * held[0]:
        return None
    # What levels off is no leak: the second half must rise at least half as fast as the first.
    half = len(held) // 2
    if held[-1] - held[half] < 0.5 * (held[half] - held[0]):
        return None
    return Leak(float(np.polyfit(steps, held, 1)[0]), risen)
