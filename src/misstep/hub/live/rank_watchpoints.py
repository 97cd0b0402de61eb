"""Watchpoints across ranks: they live in the hub, which alone hears every rank, and look to a client like any other."""

from __future__ import annotations

from misstep.control.ranks import RANK_CONDITIONS, AcrossRanks, RankFinding
from misstep.errors import ControlError
from misstep.protocol import messages as m
from misstep.protocol.views import HitView, WatchpointView, as_float
from misstep.protocol.wire import StepDone
from misstep.sentences import control as texts

RANK_WATCHPOINT = 1_000_001
"""Their numbers begin here."""
RANK_HIT = 10_000_001
"""And those of their hits here."""


class RankWatch:
    """The conditions across the ranks of one run."""

    def __init__(self) -> None:
        self.world_size = 1
        self.views = {
            condition: WatchpointView(RANK_WATCHPOINT + place, condition, origin="recommended")
            for place, condition in enumerate(RANK_CONDITIONS)
        }
        self._across = AcrossRanks(1)
        self._next_hit = RANK_HIT

    def grow(self, world_size: int) -> None:
        """A rank says how many there are."""
        if world_size > self.world_size:
            self.world_size = world_size
            self._across = AcrossRanks(world_size)

    def forget(self) -> None:
        """A rank went: its steps will not be reported any more."""
        self._across.forget()

    def report(self, rank: int, words: StepDone) -> list[tuple[WatchpointView, HitView]]:
        """A rank has done a step: the hits this makes, with the watchpoints they are of."""
        if self.world_size < 2:
            return []
        found = self._across.report(rank, words.step, as_float(words.loss), words.digest)
        return [(view, self._hit(one, view)) for one in found if (view := self.views[one.condition]).enabled]

    def edit(self, edit: m.WatchEdit) -> WatchpointView | None:
        """The watchpoint as it is after this edit; None when the edit is of one that lives in the trainees."""
        name = edit.spec.condition.strip() if edit.spec is not None else ""
        known = next((view for view in self.views.values() if view.id == edit.watchpoint), None)
        view = self.views.get(name) if known is None else known
        if view is None:
            return None
        if self.world_size < 2:
            raise ControlError(texts.ONE_RANK.of(condition=view.condition), code="unsupported")
        view.enabled = edit.op not in ("remove", "disable")
        if view.enabled and edit.spec is not None:
            view.then = edit.spec.then
        return view

    def _hit(self, found: RankFinding, view: WatchpointView) -> HitView:
        number, self._next_hit = self._next_hit, self._next_hit + 1
        return HitView(
            id=number,
            watchpoint=view.id,
            address=f"*:param@{found.step}#{found.rank}",
            node="*",
            role="grad" if found.condition == "gradients_not_averaged" else "param",
            slot=0,
            step=found.step,
            rank=found.rank,
            reason=found.text,
            severity="error" if found.condition != "same_batch" else "warning",
            condition=found.condition,
        )
