"""What may be said of NaN and Inf in a recorded run."""

from __future__ import annotations

from misstep.core.seen import Seen
from misstep.store.reading.reader import Run


def seen_in(run: Run) -> Seen:
    """Over all ranks."""
    seen = Seen(hits=len(run.hits()), skipped=len(run.events("skipped")), lost=sum(run.lost.values()))
    seen.broken_off = sum(reader.broken_off for number in run.ranks if (reader := run.rank(number)) is not None)
    for rank in run.ranks:
        for step in run.steps(rank):
            seen.add(step)
    return seen
