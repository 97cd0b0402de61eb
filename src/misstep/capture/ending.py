"""How a session ends: with the program, by an exception, by a watchpoint that stops it, or because the user lets go.

exception ─► told, with its place ┐
sys.exit  ─► noted                ├─► the step under way is judged ─► final state ─► hooks out ─► last word
detach    ────────────────────────┘
"""

from __future__ import annotations

import os
from types import FrameType
from typing import TYPE_CHECKING

from misstep.adapters.base import TrainingStopped
from misstep.adapters.source import raised_at
from misstep.capture.step.final_state import bad_at_the_end
from misstep.capture.step.record import first_of_its_run, write_news
from misstep.sentences import journal
from misstep.store.writing.writer import EndReason

if TYPE_CHECKING:
    from misstep.capture.session import Session


class Ending:
    """Ends one session, once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.over = False
        self.in_a_step = False
        """A step is being concluded: it is not judged once more if it ends the session itself."""
        self._error: BaseException | None = None
        """What the user's program ends with."""
        self._pid = os.getpid()

    def failed(self, error: BaseException) -> None:
        """The user's program ends with this exception."""
        session = self._session
        self._error = error
        if session.writer is None and session.adapters and isinstance(error, Exception) and first_of_its_run():
            session.going_live(session.adapters[0])  # it died before its first step: that is a run too
        if not getattr(error, "__misstep_told__", False):
            self.tell_exception(error, "")
        if session.recorder is not None:
            session.recorder.failed(error)

    def exiting(self, code: object, frame: FrameType | None) -> None:
        """The user's program calls sys.exit."""
        if self._session.recorder is not None and not self.over:
            self._session.recorder.exiting(code, frame)

    def end(self, reason: EndReason, exit_code: int | None) -> None:
        """Write the end and take the hooks out; safe to call twice."""
        session = self._session
        if self.over or os.getpid() != self._pid:
            return
        if reason in ("finished", "failed") and not self.in_a_step and self._stopped_in_last_step():
            return
        self.over = True
        if reason != "failed":
            self._check_final_state()
        if session.controller is not None:
            session.controller.close(reason, exit_code)
        session.facts.close()
        for adapter in session.adapters:
            try:
                adapter.detach()
            except Exception as error:
                session.trouble("at the end", error)
        if session.dumper is not None:
            session.dumper.close()
        if session.writer is not None:
            session.trace.close()
            write_news(session.writer, session.catalog)
            for where, count in session.troubles.items():
                session.writer.event("warning", text=journal.OWN_FAILURES.of(count=count, where=where))
            session.writer.end(reason, exit_code)
            session.writer.close()
        if session.recorder is not None:
            session.recorder.close(reason, exit_code)

    def tell_exception(self, error: BaseException, where: str) -> None:
        """Into the journal, with the node and the line that raised it."""
        session = self._session
        error.__misstep_node__ = where  # type: ignore[attr-defined]
        if session.writer is not None:
            write_news(session.writer, session.catalog)
            facts: dict[str, object] = {
                "type": type(error).__name__,
                "text": str(error)[:4000],
                "node": where,
                "step": session.step,
            }
            facts["source"] = raised_at(error)
            facts.update(session.extensions.explain(error))
            session.writer.event("exception", **facts)
            session.writer.flush()

    def _stopped_in_last_step(self) -> bool:
        """The program ends in the middle of a step: it is judged like any other, as far as it came, and may end the
        session itself."""
        for adapter in self._session.adapters:
            try:
                adapter.leave_step(self._error)
            except TrainingStopped:
                break
            except Exception as error:
                self._session.trouble("at the end", error)
        return self.over

    def _check_final_state(self) -> None:
        """What training left behind; a program that failed may have left memory that must not be touched."""
        session = self._session
        if session.writer is None or session.first_verdict is not None or session.step <= 1:
            return
        for adapter in session.adapters:
            try:
                take_id = session.evaluator.take_hit_id
                for hit in bad_at_the_end(adapter, step=session.step - 1, rank=session.rank, take_id=take_id):
                    session.writer.hit(hit)
            except Exception as error:
                session.trouble("at the end", error)
