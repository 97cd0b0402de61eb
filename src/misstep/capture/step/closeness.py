"""How closely the step under way is watched: as the plan says, and closer where a dump, or somebody who walks from node
to node, needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from misstep.adapters.base import Adapter
from misstep.core.levels import LEVELS, Level

if TYPE_CHECKING:
    from misstep.capture.session import Session

CLOSE: frozenset[Level] = frozenset({"module", "op"})
"""The levels with rows of everything."""


class Closeness:
    """The level of one session's steps."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.level: Level = "off"
        """Of the step under way."""

    def set(self, adapter: Adapter, level: Level) -> None:
        adapter.set_level(level)
        self.level = level
        self._session.replays.arm(adapter, level)

    def begin_step(self, step: int) -> None:
        wanted = self.wanted(step)
        if wanted != self.level:
            for adapter in self._session.adapters:
                self.set(adapter, wanted)

    def wanted(self, step: int) -> Level:
        session = self._session
        planned = session.plan.level_for(step)
        if session.dumper is None and not session.stepping:
            return planned
        asked: list[Level] = [planned]
        if session.dumper is not None:
            asked.append(session.dumper.level_for(step) or "off")
        asked.append(session.entry.level())
        closest = max(asked, key=LEVELS.index)
        if closest != planned:
            session.plan.force(step, closest)
        return closest

    def shows_loss(self, step: int) -> bool:
        """Whether somebody looks at the row of a finite loss under the guard, or the run keeps it."""
        session = self._session
        return (
            session.writer is None
            or session.writer.shows_loss(step)
            or session.controller is not None
            or session.dumper is not None
            or session.subscriptions.beyond_recommended
            or len(session.on_step) != (session.recorder is not None)
        )
