"""What a finished step means: hits and a verdict, their record, and what the watchpoints that tripped ask for.

rows ─► judge ─► hits ─► verdict ─► StepOutcome ─► run directory ─► listeners ─► dump, keep, stop
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from misstep.adapters.base import Adapter, TrainingStopped, Update
from misstep.adapters.step.frame import Frame
from misstep.capture.step.outcome import Rerun, StepOutcome
from misstep.capture.step.record import write_news
from misstep.capture.step.verdict import find_verdict
from misstep.core.levels import Level
from misstep.core.run import Step
from misstep.core.stats import Array

if TYPE_CHECKING:
    from misstep.capture.session import Session


class Conclusion:
    """Ends the steps of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def conclude(
        self, step: Step, frame: Frame, head: Array, summary: Array, rerun: Rerun | None = None
    ) -> StepOutcome:
        """Judge a finished step, record it and act on it; raises TrainingStopped when a hit says stop."""
        outcome = self._judge(step, frame, head, summary, rerun)
        self._record(outcome)
        for listener in self._session.on_step:
            listener(outcome)
        self._act(outcome)
        return outcome

    def passes_by(self, update: Update, level: Level, seconds: float, now: float) -> bool:
        """Record a step without rows of which nobody wants to know more than a line of the journal; False when
        somebody does. Steps of a fraction of a millisecond shall stay that short."""
        session = self._session
        writer, recorder = session.writer, session.recorder
        if (
            writer is None
            or update.overflow
            or update.left
            or update.losses
            or update.loss_scale is not None
            or session.controller is not None
            or session.dumper is not None
            or session.replays.playing
            or session.catalog.has_news
            or len(session.on_step) != (recorder is not None)
            or (recorder is not None and not recorder.passes_by(session.step, now))
        ):
            return False
        return writer.quiet_step(
            session.step,
            time.time(),
            update.loss,
            seconds,
            update.learning_rate,
            session.plan.overhead,
            level,
            update.optimizer,
        )

    def skip(self, step: Step, frame: Frame, head: Array, summary: Array, adapter: Adapter) -> StepOutcome:
        """A gradient scaler found an overflow and did not update: the step number stays, and nobody is alarmed."""
        session = self._session
        if session.writer is not None:
            why = session.replays.overflow(adapter)
            write_news(session.writer, session.catalog)
            session.writer.event("skipped", step=step.number, loss=step.loss, loss_scale=step.loss_scale, **why)
            session.writer.flush()
        if session.recorder is not None:
            session.recorder.skipped()
        return StepOutcome(step, frame, head, summary)

    def _judge(self, step: Step, frame: Frame, head: Array, summary: Array, rerun: Rerun | None) -> StepOutcome:
        session = self._session
        hits = tuple(session.judge.hits(step.number, session.rank, head, summary))
        verdict = None
        if session.first_verdict is None and any(hit.stats is not None and not hit.stats.finite for hit in hits):
            if rerun is None or (rerun.verdict is None and not rerun.cleared):
                verdict = find_verdict(session.catalog, frame, head, summary, rank=session.rank)
            if rerun is not None:
                verdict = rerun.complete(verdict)
            session.first_verdict = verdict
        if rerun is None:
            return StepOutcome(step, frame, head, summary, hits, verdict)
        return StepOutcome(step, frame, head, summary, hits, verdict, rerun.exact, rerun.note, replayed=True)

    def _record(self, outcome: StepOutcome) -> None:
        session, writer = self._session, self._session.writer
        if writer is None:
            return
        write_news(writer, session.catalog)
        asked = session.dumper is not None and session.dumper.keeps_rows(outcome.step.number)
        writer.step(outcome.step, outcome.head, outcome.summary, keep=bool(outcome.hits) or asked)
        if session.judge.evidence.refused:
            refusal = session.judge.refusal()
            if refusal:
                writer.event("warning", text=refusal)
        if not outcome.hits:
            return
        for hit in outcome.hits:
            writer.hit(hit)
        if outcome.verdict is not None:
            writer.verdict(outcome.verdict)
        writer.flush()

    def _act(self, outcome: StepOutcome) -> None:
        """Dump what hits ask for, then stop if one says so."""
        session, hits = self._session, outcome.hits
        if session.dumper is not None:
            session.dumper.step_ends(outcome)
        if not hits:
            return
        actions = {watch.id: watch.then for watch in session.evaluator.watchpoints}
        if outcome.verdict is not None and not any(actions.get(hit.watchpoint) == "dump" for hit in hits):
            session.keeper.settle(outcome.verdict, outcome.frame)
        stopping = next((hit for hit in hits if actions.get(hit.watchpoint) == "stop"), None)
        if stopping is not None:
            print(f"misstep: stopping: {stopping.address}: {stopping.reason}", file=sys.stderr)
            session.end("stopped")
            raise TrainingStopped(3)
