"""The facts of one rank, with the questions several rules ask of them.

Everything here is a pure function of the records: the same verdict live, after the run, and on another machine.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from misstep.core.facts import BACKWARD, Batches, Calls, Look, Record, Setup, Term, WeightFact, WeightLook
from misstep.core.facts import STEP as UPDATE
from misstep.store.factsfile import read_facts
from misstep.store.layout import rank_paths
from misstep.store.reading.reader import Run

FEW = 3
"""Looks needed before a habit is told from an accident."""


@dataclass(frozen=True)
class Facts:
    """Of one rank."""

    rank: int = 0
    setup: Setup | None = None
    calls: tuple[Calls, ...] = ()
    looks: tuple[Look, ...] = ()
    batches: Batches | None = None
    losses: tuple[float, ...] = ()
    rates: tuple[float | None, ...] = ()
    """Learning rate of every step."""
    steps: int = 0
    framework: str = ""
    level: str = ""
    finished: bool = True
    others: tuple[Facts, ...] = field(default=(), repr=False)
    """The other ranks of the run."""

    # ── weights ───────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def weights(self) -> dict[str, WeightFact]:
        """By name, in the order in which the network has them."""
        return {} if self.setup is None else {one.name: one for one in self.setup.weights}

    @cached_property
    def series(self) -> dict[str, list[WeightLook]]:
        """By weight: its looks, in order."""
        found: dict[str, list[WeightLook]] = {}
        for look in self.looks:
            for one in look.weights:
                found.setdefault(one.name, []).append(one)
        return found

    @cached_property
    def matrices(self) -> list[str]:
        """Trainable weights of layers, without biases and gains, in the network's order."""
        return [
            name for name, one in self.weights.items() if one.trainable and len(one.shape) > 1 and name in self.series
        ]

    def median_update(self, look: Look) -> float | None:
        """The middle of how far the layers moved, over their size."""
        # A layer that begins at zero grows from nothing: its first updates are large beside it, and mean no harm.
        known = {name for name in self.matrices if self.weights[name].held and self.series[name][0].norm}
        ratios = [
            one.update for one in look.weights if one.name in known and one.update is not None and (one.norm or 0) > 0
        ]
        return statistics.median(ratios) if ratios else None

    @cached_property
    def updates(self) -> list[float]:
        """By look: the middle of the layers' relative updates."""
        return [one for look in self.looks if (one := self.median_update(look)) is not None]

    @cached_property
    def moves(self) -> bool:
        """Some weight has changed in some update."""
        return any(one.moved for looks in self.series.values() for one in looks)

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def counts(self) -> dict[str, int]:
        return self.calls[-1].counts if self.calls else {}

    @cached_property
    def lines(self) -> dict[str, str]:
        return self.calls[-1].lines if self.calls else {}

    @property
    def optimizers_stepping(self) -> int:
        return 0 if self.setup is None else sum(one.steps > 0 for one in self.setup.optimizers)

    @cached_property
    def plain_loop(self) -> bool:
        """One optimizer, one backward an update: an ordinary loop, in which a loss means what it says."""
        made = len(self.setup.optimizers) if self.setup is not None else 0
        backwards, updates = self.counts.get(BACKWARD, 0), self.counts.get(UPDATE, 0)
        return made <= 1 and (updates == 0 or backwards <= updates + 1)

    # ── objective ─────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def terms(self) -> list[Term]:
        """The known loss functions, of every look."""
        return [term for look in self.looks if look.objective is not None for term in look.objective.terms]

    @cached_property
    def last_terms(self) -> tuple[Term, ...]:
        seen = [look.objective.terms for look in self.looks if look.objective is not None and look.objective.terms]
        return seen[-1] if seen else ()

    # ── loss ──────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def finite_losses(self) -> list[float]:
        return [one for one in self.losses if math.isfinite(one)]

    @cached_property
    def ends(self) -> tuple[float, float] | None:
        """(middle of the first losses, middle of the last); None for fewer than eight."""
        losses = self.finite_losses
        if len(losses) < 8:
            return None
        width = max(2, len(losses) // 10)
        # A first update that is too large makes the next losses jump: what counts is where it began.
        first = min(statistics.median(losses[:width]), losses[0] + 2 * self.noise)
        return first, statistics.median(losses[-width:])

    @property
    def blown_up(self) -> bool:
        """The last loss is no number any more."""
        return bool(self.losses) and not math.isfinite(self.losses[-1])

    @cached_property
    def falls(self) -> bool | None:
        """Whether the loss has come down by a tenth or more; None when there are too few."""
        if self.blown_up:
            return False
        if self.ends is None:
            return None
        first, last = self.ends
        return last < first - 0.1 * abs(first)

    @cached_property
    def noise(self) -> float:
        """How much the loss jumps from step to step."""
        losses = self.finite_losses
        if len(losses) < 4:
            return 0.0
        return statistics.median(abs(b - a) for a, b in itertools.pairwise(losses))


def facts_of(records: Iterable[Record], **more: object) -> Facts:
    """Records of one rank as facts; `more` are the fields that come from elsewhere."""
    setup: Setup | None = None
    calls: list[Calls] = []
    looks: dict[int, Look] = {}
    batches: Batches | None = None
    for record in records:
        if isinstance(record, Setup):
            setup = record
        elif isinstance(record, Calls):
            calls.append(record)
        elif isinstance(record, Look):
            looks[record.step] = record
        else:
            batches = record
    return Facts(setup=setup, calls=tuple(calls), looks=tuple(looks.values()), batches=batches, **more)  # type: ignore[arg-type]


def read_rank(run: Run, rank: int) -> Facts:
    """What one rank of a run has written so far."""
    steps = [step for step in run.steps(rank) if step.number > 0]
    versions = run.info.versions
    return facts_of(
        read_facts(rank_paths(run.path, rank).facts),
        rank=rank,
        losses=tuple(step.loss for step in steps if step.loss is not None),
        rates=tuple(step.learning_rate for step in steps),
        steps=len(steps),
        framework=next((name for name in ("torch", "mindspore") if name in versions), ""),
        level=str(run.info.settings.get("level", "")),
        finished=not run.alive,
    )
