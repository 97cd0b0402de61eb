"""Who is to be called when which tensor passes: those who need more of it than its statistics.

    previous values and ranges (evidence) ┐
    what a pausing watchpoint looks at     ├─► wants[number](row, tensor), on the training thread
    what is dumped                         ┘

Adapters look into `wants` and nothing else, so a tensor nobody wants costs one look into a dictionary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from misstep.adapters.step.frame import Frame
from misstep.capture.keep.previous import ReplayWants, both

if TYPE_CHECKING:
    from misstep.capture.session import Session

Want = Callable[[int, Any], None]


class Subscriptions:
    """Keeps a session's `wants` true."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.wants: dict[int, Want] = {}
        self.stale = True
        """Somebody wants something else from the next step on."""
        self.beyond_recommended = True
        """There are watchpoints of the user's: the recommended ones say nothing of a finite loss."""

    def tensor_added(self, number: int) -> None:
        """A tensor passes that never did before; its watchpoints are known from the next step on."""
        session = self._session
        address = session.catalog.address(number)
        node = session.catalog.graph.nodes[session.catalog.graph.tensors[number].node]
        session.evaluator.tensor_added(number, address, node.type)
        self.stale = True
        self._add(number, session.keeper.tensor_added(number))
        if session.dumper is not None:
            self._add(number, session.dumper.tensor_added(number, address, node.type))

    def refresh(self, step: int) -> None:
        """Before a step: ask everybody again, where anything has changed."""
        session, dumper = self._session, self._session.dumper
        stale, self.stale = self.stale, False
        if dumper is not None:
            watching = [watch.id for watch in session.watchpoints if watch.then == "dump" and watch.enabled]
            stale = dumper.changed(step, watching, stale=stale)
        if not stale:
            return
        self.beyond_recommended = any(watch.origin != "recommended" for watch in session.watchpoints)
        self.wants.clear()
        self.wants.update(session.evidence.wants())
        for wanted in (session.keeper.wants(), dumper.wants(step) if dumper is not None else {}):
            for number, want in wanted.items():
                self._add(number, want)

    def in_replay(self, frame: Frame) -> ReplayWants:
        """Who is to be called when a tensor passes in a replay of the step, which fills this frame."""
        session = self._session
        earlier: dict[int, Any] = {}
        keeper = session.keeper.replay_want(frame, earlier)
        askers = (keeper,) if session.dumper is None else (keeper, session.dumper.replay_want)
        return ReplayWants(askers, earlier)

    def _add(self, number: int, want: Want | None) -> None:
        if want is not None:
            self.wants[number] = both(self.wants[number], want) if number in self.wants else want
