"""What two sides have in common before a value is read: their steps, their ranks, and values or statistics alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from misstep.compare.align import Pair, one_step_each
from misstep.compare.judge.measures import Measures, measure_statistics
from misstep.compare.judge.sameness import Measured
from misstep.core.stats import TensorStats
from misstep.errors import TensorUnavailable
from misstep.store.foreign.sniff import source_of
from misstep.store.foreign.source import Entry, Summarised, TensorSource, select, stats_of


def open_both(left: object, right: object) -> tuple[TensorSource, TensorSource]:
    """Two things that hold tensors; a run that kept none is taken by the statistics it recorded."""
    return source_of(left, label="left", statistics=True), source_of(right, label="right", statistics=True)


def of_one_rank(source: TensorSource) -> tuple[TensorSource, str]:
    """The first rank of several: what ranks hold differs by design. And what is said of it."""
    ranks = sorted({entry.rank for entry in source.entries() if entry.rank is not None})
    if len(ranks) < 2:
        return source, ""
    return select(source, rank=ranks[0]), f"{len(ranks)} ranks, rank {ranks[0]} is compared (--rank)"


def steps_of_both(left: Sequence[Entry], right: Sequence[Entry]) -> tuple[list[Entry], list[Entry], list[str]]:
    """The entries of the steps both sides have, where they have several; and what is said of the others."""
    ours = {entry.step for entry in left if entry.step is not None}
    theirs = {entry.step for entry in right if entry.step is not None}
    common = ours & theirs
    ranks_left, ranks_right = ({entry.rank for entry in side} for side in (left, right))
    if len(ranks_left) == len(ranks_right) == 1 and ranks_left != ranks_right:
        # One rank against another: their numbers tell nothing.
        (rank,) = ranks_left
        right = [replace(entry, rank=rank) for entry in right]
    if len(ours | theirs) < 2 or not common or one_step_each(left, right) or (len(ours) == 1 and len(theirs) == 1):
        return list(left), list(right), []
    said = [
        f"only the {side} side has {_steps(sorted(more))}"
        for side, more in (("left", ours - common), ("right", theirs - common))
        if more
    ]
    kept = [[entry for entry in side if entry.step is None or entry.step in common] for side in (left, right)]
    return kept[0], kept[1], said


def by_statistics(left: TensorSource, right: TensorSource, pair: Pair) -> Measured | None:
    """A pair measured without its values; None when a side knows nothing but the name."""
    one, other = _stats(left, pair.left), _stats(right, pair.right)
    digests = [_digest(side, entry) for side, entry in ((left, pair.left), (right, pair.right))]
    dtypes = pair.left.dtype, pair.right.dtype
    if pair.left.shape != pair.right.shape and not pair.layout:
        shapes = ("×".join(map(str, entry.shape)) or "scalar" for entry in (pair.left, pair.right))
        return Measured(pair, None, dtypes, "shape {} against {}".format(*shapes))
    if all(digests):
        return Measured(pair, _by_digest(pair.left, digests[0] == digests[1], one, other), dtypes)
    return None if one is None or other is None else Measured(pair, measure_statistics(one, other), dtypes)


def _by_digest(entry: Entry, equal: bool, one: TensorStats | None, other: TensorStats | None) -> Measures:
    """Equal checksums are equal bits; different ones say no more than the statistics beside them."""
    nothing = float("nan")
    count = max(1, math.prod(entry.shape))
    empty = TensorStats(count, 0, 0, 0, 0, 0, 0, nothing, nothing, nothing, nothing, nothing, nothing)
    found = measure_statistics(one or empty, other or empty)
    if equal:
        return replace(found, equal=found.count)
    known = one is not None and other is not None and not found.identical
    return replace(found, equal=0, rmse=found.rmse if known else float("nan"))


def _stats(source: TensorSource, entry: Entry) -> TensorStats | None:
    known = source.stats(entry) if isinstance(source, Summarised) else None
    if known is not None:
        return known
    try:
        return stats_of(source.array(entry))
    except TensorUnavailable:
        return None


def _digest(source: TensorSource, entry: Entry) -> str:
    digest = getattr(source, "digest", None)
    return digest(entry) if digest is not None else ""


def _steps(steps: Sequence[int]) -> str:
    if len(steps) == 1:
        return f"step {steps[0]}"
    return f"steps {steps[0]} to {steps[-1]}" if steps[-1] - steps[0] == len(steps) - 1 else f"{len(steps)} more steps"
