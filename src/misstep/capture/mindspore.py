"""What misstep does in a process that trains with MindSpore, besides the adapter: compiled code, failures, remarks.

A failure of the compiler or a missing kernel becomes a finding with the user's line and the way out; a deprecated
option that MindSpore remarks on becomes a finding too, so that it is read once in the report and not in the log.
"""

from __future__ import annotations

import logging
import sys
import traceback
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from misstep.adapters.base import adapter_named
from misstep.adapters.source import source_line
from misstep.capture.bothmodes import BothModes
from misstep.capture.compilefailure import compile_failure
from misstep.capture.graphmode import follow_graphs
from misstep.capture.oldnumpy import numpy_problem
from misstep.core.finding import Finding
from misstep.core.graph import Source

if TYPE_CHECKING:
    from misstep.capture.session import Session

_MOST_REMARKS = 20
_PREPARED: weakref.WeakSet[Session] = weakref.WeakSet()


def prepare_for_mindspore(session: Session) -> None:
    """Called once MindSpore is imported, before its adapter is attached."""
    if session in _PREPARED:
        return
    _PREPARED.add(session)
    _warn_of_numpy()
    follow_graphs(session)
    session.modes = BothModes(session, adapter_named("mindspore"))
    session.explainers.append(lambda error: explain(session, error))
    Remarks(session).listen()


def _warn_of_numpy() -> None:
    import numpy

    mindspore = sys.modules.get("mindspore")
    problem = numpy_problem(str(getattr(mindspore, "__version__", "")), numpy.__version__)
    if problem:
        print(f"misstep: {problem}", file=sys.stderr)


def explain(session: Session, error: BaseException) -> dict[str, Any]:
    """More facts about an exception of MindSpore's compiler or kernels, and the finding."""
    failure = compile_failure(error)
    if failure is None:
        return {}
    if failure.source is None:
        failure = replace(failure, source=_users_line(error))
    if session.writer is not None:
        session.writer.finding(replace(failure.finding, step=session.step, rank=session.rank))
    facts: dict[str, Any] = {"source": failure.source} if failure.source is not None else {}
    return {**facts, "node": failure.node} if failure.node else facts


class Remarks(logging.Handler):
    """Listens to MindSpore's Python log for options that have had their day."""

    def __init__(self, session: Session) -> None:
        super().__init__(logging.WARNING)
        self.session = session
        self._told: set[str] = set()
        self._waiting: list[Finding] = []

    def listen(self) -> None:
        from misstep.adapters.mindspore.compiledruns import log_of_mindspore

        log = log_of_mindspore()
        if log is not None:
            log.addHandler(self)
            self.session.on_step.append(lambda step, head, summary: self._write())

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        # Remarks on operators come from inside MindSpore (nn.Adam makes one); options are the user's.
        if "deprecated" not in text or "context" not in text or text in self._told or len(self._told) >= _MOST_REMARKS:
            return
        self._told.add(text)
        self._waiting.append(
            Finding(
                rule="mindspore.deprecated",
                title=text.partition(". ")[0].strip()[:200],
                severity="info",
                advice=text.partition(". ")[2].strip()[:300],
            )
        )
        self._write()

    def _write(self) -> None:
        """A run may begin long after the option was set."""
        while self._waiting and self.session.writer is not None:
            self.session.writer.finding(self._waiting.pop(0))


def _users_line(error: BaseException) -> Source | None:
    frames = [
        (frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if "/mindspore/" not in frame.filename and "/misstep/" not in frame.filename and frame.lineno
    ]
    return source_line(frames[-1][0], int(frames[-1][1] or 0)) if frames else None
