"""What may be said of NaN and Inf in a recorded run."""

from __future__ import annotations

from misstep.core.seen import Seen
from misstep.store.reading.reader import Run


def seen_in(run: Run) -> Seen:
    """Over all ranks."""
    seen = Seen(hits=len(run.hits()), lost=sum(run.lost.values()))
    seen.broken_off = sum(reader.broken_off for number in run.ranks if (reader := run.rank(number)) is not None)
    for event in run.events("skipped"):
        seen.skip(event.rank)
    for rank in run.ranks:
        for step in run.steps(rank):
            seen.add(step, rank)
    return seen
