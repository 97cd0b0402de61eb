"""Conditions across ranks, from a small digest of every rank's step: never from tensors.

    weights_out_of_sync      replicas that were equal are not any more (or never were: sharded, or not broadcast)
    gradients_not_averaged   equal weights, different gradients at the update: no all-reduce took place
    same_batch               two ranks are fed the same data, step after step
    loss_apart               one rank's loss is not finite, or far from the others'

A step is judged when every rank has reported it. Each condition tells a rank once, and again only after it was fine.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

from misstep.protocol.wire import Digest
from misstep.sentences import control as texts

RANK_CONDITIONS = ("weights_out_of_sync", "gradients_not_averaged", "same_batch", "loss_apart")

SAME_BATCH_STEPS = 3
"""Equal statistics of the input to the last bit, this often in a row, is no accident."""
APART_STEPS = 3
APART_TIMES = 10.0
"""A loss this many times the others' median, either way, three steps in a row. Replicas on different batches stay
within a factor of two or so; a tighter bound cries wolf at the end of training, when losses are small and noisy."""
_STEPS_KEPT = 512
"""A quick training sends many steps at once; those of one rank wait for the other's."""


@dataclass(frozen=True, slots=True)
class RankFinding:
    """A condition across ranks holds."""

    condition: str
    step: int
    rank: int
    text: str
    tensor: int | None = None
    """The position of the first differing tensor among the weights (or gradients) of the step."""


@dataclass(slots=True)
class _Reported:
    loss: float | None
    digest: Digest | None


@dataclass(slots=True)
class AcrossRanks:
    """Takes every rank's steps in and gives findings out."""

    world_size: int
    _steps: dict[int, dict[int, _Reported]] = field(default_factory=dict)
    _were_equal: bool = False
    _told: set[tuple[str, int]] = field(default_factory=set)
    _runs: dict[tuple[str, int], int] = field(default_factory=dict)

    def report(self, rank: int, step: int, loss: float | None, digest: Digest | None) -> list[RankFinding]:
        """A rank finished a step; what is found when it was the last of them."""
        ranks = self._steps.setdefault(step, {})
        ranks[rank] = _Reported(loss, digest)
        if len(ranks) < self.world_size:
            for old in [number for number in self._steps if number <= step - _STEPS_KEPT]:
                del self._steps[old]
            return []
        del self._steps[step]
        found = self._weights(step, ranks) + self._batches(step, ranks) + self._losses(step, ranks)
        return [finding for finding in found if self._is_news(finding)]

    def forget(self) -> None:
        """A rank left or came: nothing half-reported is compared."""
        self._steps.clear()
        self._runs.clear()

    def _weights(self, step: int, ranks: dict[int, _Reported]) -> list[RankFinding]:
        digests = {rank: one.digest for rank, one in ranks.items() if one.digest is not None and one.digest.weights}
        if len(digests) < 2 or len({digest.names for digest in digests.values()}) > 1:
            return []
        first = min(digests)
        found: list[RankFinding] = []
        for rank, digest in digests.items():
            same_weights = digest.weights == digests[first].weights
            same_gradients = digest.gradients == digests[first].gradients
            if not same_gradients and self._were_equal and digest.gradients and digests[first].gradients:
                where = _first_difference(digest.gradients, digests[first].gradients)
                text = texts.NOT_AVERAGED.of(rank=rank, other=first)
                found.append(RankFinding("gradients_not_averaged", step, rank, text, where))
            if not same_weights:
                differing = sum(a != b for a, b in zip(digest.weights, digests[first].weights))
                since = texts.WEIGHTS_PARTED if self._were_equal else texts.WEIGHTS_APART
                text = since.of(some=differing, all=len(digest.weights), rank=rank, other=first)
                where = _first_difference(digest.weights, digests[first].weights)
                found.append(RankFinding("weights_out_of_sync", step, rank, text, where))
            else:
                self._fine("weights_out_of_sync", rank)
            if same_gradients:
                self._fine("gradients_not_averaged", rank)
        self._were_equal = all(digest.weights == digests[first].weights for digest in digests.values())
        return found

    def _batches(self, step: int, ranks: dict[int, _Reported]) -> list[RankFinding]:
        found: list[RankFinding] = []
        seen: dict[int, int] = {}
        for rank in sorted(ranks):
            digest = ranks[rank].digest
            if digest is None or not digest.batch:
                continue
            other = seen.setdefault(digest.batch, rank)
            if self._in_a_row("same_batch", rank, other != rank) >= SAME_BATCH_STEPS:
                found.append(RankFinding("same_batch", step, rank, texts.SAME_BATCH.of(rank=rank, other=other)))
        return found

    def _losses(self, step: int, ranks: dict[int, _Reported]) -> list[RankFinding]:
        losses = {rank: one.loss for rank, one in ranks.items() if one.loss is not None}
        finite = {rank: loss for rank, loss in losses.items() if math.isfinite(loss)}
        found: list[RankFinding] = []
        for rank, loss in losses.items():
            others = [value for other, value in finite.items() if other != rank]
            if not others:
                continue
            # Of three or more the median is the healthy one; of two, the other.
            middle = statistics.median(finite.values() if len(finite) > 2 else others)
            if not math.isfinite(loss):
                text = texts.LOSS_APART.of(rank=rank, loss=loss, middle=middle)
                found.append(RankFinding("loss_apart", step, rank, text))
                continue
            low, high = sorted((abs(loss), abs(middle)))
            apart = high > APART_TIMES * low and high > 1e-6
            # With two ranks it is unknown which one is wrong; the larger loss is reported.
            apart = apart and abs(loss) > abs(middle) if len(losses) == 2 else apart
            if self._in_a_row("loss_apart", rank, apart) >= APART_STEPS:
                text = texts.LOSS_APART_LONG.of(rank=rank, loss=loss, middle=middle, steps=APART_STEPS)
                found.append(RankFinding("loss_apart", step, rank, text))
        return found

    def _in_a_row(self, condition: str, rank: int, holds: bool) -> int:
        count = self._runs[condition, rank] = self._runs.get((condition, rank), 0) + 1 if holds else 0
        if not holds:
            self._fine(condition, rank)
        return count

    def _fine(self, condition: str, rank: int) -> None:
        self._told.discard((condition, rank))

    def _is_news(self, finding: RankFinding) -> bool:
        key = (finding.condition, finding.rank)
        if key in self._told:
            return False
        self._told.add(key)
        return True


def _first_difference(one: tuple[int, ...], other: tuple[int, ...]) -> int | None:
    return next((place for place, (a, b) in enumerate(zip(one, other)) if a != b), None)
