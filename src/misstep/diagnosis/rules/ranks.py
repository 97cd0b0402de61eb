"""Ranks: what the processes of one training should have in common, and what not; from their files alone."""

from __future__ import annotations

from collections.abc import Iterator

from misstep.diagnosis.facts import Facts
from misstep.diagnosis.rules.rule import Found, rule
from misstep.sentences.diagnosis import evidence
from misstep.sentences.diagnosis import ranks as texts


@rule("ranks.weights-differ", "error", texts.DIFFER, texts.DIFFER_FIX, texts.DIFFER_WHEN)
def weights_differ(facts: Facts) -> Iterator[Found]:
    """Ranks that have gone their own ways; told by the first rank alone."""
    if not _speaks(facts) or any(one.setup is not None and one.setup.sharded for one in (facts, *facts.others)):
        return
    for look in facts.looks:
        for other in facts.others:
            theirs = {x.name: x.digest for one in other.looks if one.step == look.step for x in one.weights}
            for mine in look.weights:
                if mine.digest and theirs.get(mine.name, mine.digest) != mine.digest:
                    ranks = [str(facts.rank), str(other.rank)]
                    said = [evidence.RANKS.of(ranks=ranks, step=look.step)]
                    yield Found(0.92, {"step": look.step, "name": mine.name}, said, step=look.step)
                    return


@rule("ranks.same-data", "warning", texts.SAME_DATA, texts.SAME_DATA_FIX, texts.SAME_DATA_WHEN)
def same_data(facts: Facts) -> Iterator[Found]:
    """Every rank reads all of the data."""
    mine = facts.batches.digests if facts.batches is not None else ()
    if not _speaks(facts) or len(mine) < 4 or len(set(mine)) < 2:
        return
    theirs = [one.batches.digests[: len(mine)] for one in facts.others if one.batches is not None]
    if theirs and all(digests == mine for digests in theirs):
        yield Found(0.85, {}, [evidence.BATCH.of(count=len(mine), distinct=len(set(mine)))])


def _speaks(facts: Facts) -> bool:
    together = facts.setup is not None and facts.setup.world > 1
    return together and bool(facts.others) and all(facts.rank < other.rank for other in facts.others)
