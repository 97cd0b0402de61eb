"""What a finished step means: hits and a verdict, their record, and what the watchpoints that tripped ask for.

rows ─► judge ─► hits ─► verdict ─► run directory ─► listeners ─► dump, keep, stop
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from misstep.adapters.base import Adapter, TrainingStopped
from misstep.adapters.frame import Frame
from misstep.capture.facts import write_news
from misstep.capture.verdict import find_verdict
from misstep.core.finding import Verdict
from misstep.core.run import Step
from misstep.core.stats import Array
from misstep.core.watch import Hit

if TYPE_CHECKING:
    from misstep.capture.session import Session


class Concluding:
    """Ends the steps of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def conclude(self, step: Step, head: Array, summary: Array, frame: Frame) -> None:
        """Watchpoints, verdict and record of a finished step; raises TrainingStopped when a hit says stop."""
        session = self._session
        session.hits = hits = session.judge.hits(step.number, session.rank, head, summary)
        verdict = None
        if session.first_verdict is None and any(hit.stats is not None and not hit.stats.finite for hit in hits):
            verdict = session.replays.complete(find_verdict(session.catalog, frame, head, summary, rank=session.rank))
        self._record(step, head, summary, verdict)
        if verdict is not None:
            session.first_verdict = verdict
        for listener in session.on_step:
            listener(step, head, summary)
        self._act(hits, frame, verdict)

    def skip(self, step: Step, adapter: Adapter) -> None:
        """A gradient scaler found an overflow and did not update: the step number stays, and nobody is alarmed."""
        session = self._session
        if session.writer is not None:
            why = session.replays.overflow(adapter)
            write_news(session.writer, session.catalog)
            session.writer.event("skipped", step=step.number, loss=step.loss, loss_scale=step.loss_scale, **why)
            session.writer.flush()
        if session.recorder is not None:
            session.recorder.skipped()

    def _record(self, step: Step, head: Array, summary: Array, verdict: Verdict | None) -> None:
        session, writer = self._session, self._session.writer
        if writer is None:
            return
        write_news(writer, session.catalog)
        keep = bool(session.hits) or (session.dumper is not None and session.dumper.keeps_rows(step.number))
        writer.step(step, head, summary, keep=keep)
        for hit in session.hits:
            writer.hit(hit)
        if verdict is not None:
            writer.verdict(verdict)
        refusal = session.judge.refusal()
        if refusal:
            writer.event("warning", text=refusal)
        writer.flush()

    def _act(self, hits: list[Hit], frame: Frame, verdict: Verdict | None) -> None:
        """Dump what hits ask for, then stop if one says so."""
        session = self._session
        if session.dumper is not None:
            session.dumper.step_ends(hits, frame)
        actions = {watch.id: watch.then for watch in session.evaluator.watchpoints} if hits else {}
        if verdict is not None and not any(actions.get(hit.watchpoint) == "dump" for hit in hits):
            session.keepsakes.settle(verdict, frame)
        stopping = next((hit for hit in hits if actions.get(hit.watchpoint) == "stop"), None)
        if stopping is not None:
            print(f"misstep: stopping: {stopping.address}: {stopping.reason}", file=sys.stderr)
            session.end("stopped")
            raise TrainingStopped(3)
