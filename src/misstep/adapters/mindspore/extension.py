"""What MindSpore adds to a session: compiled code is followed, failures are explained, remarks are heard.

A failure of the compiler or a missing kernel becomes a finding with the user's line and the way out; a deprecated
option that MindSpore remarks on becomes a finding too, so that it is read once in the report and not in the log.
"""

from __future__ import annotations

import logging
import sys
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import mindspore as ms
import numpy as np

from misstep.adapters.base import Extension, SessionPort
from misstep.adapters.mindspore.graph.both_modes import BothModes
from misstep.adapters.mindspore.graph.compile_failure import compile_failure
from misstep.adapters.mindspore.graph.follower import follow_graphs
from misstep.adapters.mindspore.graph.listeners import log_of_mindspore
from misstep.adapters.mindspore.numpy_version import numpy_problem
from misstep.adapters.source import source_line
from misstep.core.finding import Finding
from misstep.core.graph import Source

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter

_MOST_REMARKS = 20


def extend(session: SessionPort, adapter: MindSporeAdapter) -> Extension:
    """Called before the adapter is attached: compiled code is followed below the adapter's own seams."""
    problem = numpy_problem(str(ms.__version__), np.__version__)
    if problem:
        print(f"misstep: {problem}", file=sys.stderr)
    follow_graphs(session, adapter)
    log = log_of_mindspore()
    if log is not None:
        log.addHandler(Remarks(session))
    return Extension(lambda error: explain(session, error), BothModes(session, adapter))


def explain(session: SessionPort, error: BaseException) -> dict[str, Any]:
    """More facts about an exception of MindSpore's compiler or kernels, and the finding."""
    failure = compile_failure(error)
    if failure is None:
        return {}
    if failure.source is None:
        failure = replace(failure, source=_users_line(error))
    session.report(replace(failure.finding, step=session.step, rank=session.rank))
    facts: dict[str, Any] = {"source": failure.source} if failure.source is not None else {}
    return {**facts, "node": failure.node} if failure.node else facts


class Remarks(logging.Handler):
    """Listens to MindSpore's Python log for options that have had their day."""

    def __init__(self, session: SessionPort) -> None:
        super().__init__(logging.WARNING)
        self.session = session
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        # Remarks on operators come from inside MindSpore (nn.Adam makes one); options are the user's.
        if "deprecated" not in text or "context" not in text or text in self._told or len(self._told) >= _MOST_REMARKS:
            return
        self._told.add(text)
        self.session.report(
            Finding(
                rule="mindspore.deprecated",
                title=text.partition(". ")[0].strip()[:200],
                severity="info",
                advice=text.partition(". ")[2].strip()[:300],
            )
        )


def _users_line(error: BaseException) -> Source | None:
    frames = [
        (frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if "/mindspore/" not in frame.filename and "/misstep/" not in frame.filename and frame.lineno
    ]
    return source_line(frames[-1][0], int(frames[-1][1] or 0)) if frames else None
