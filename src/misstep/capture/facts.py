"""How a program trains, into `facts.jsonl`: what an adapter's fact seam hands on at the end of a step.

Records are small and ever rarer, so they are written at once: a run that is killed has told all it knew, and a reader
who diagnoses it live sees the last look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from misstep.adapters.base import Adapter, Update
from misstep.core.facts import Record
from misstep.store.factsfile import fact_line
from misstep.store.layout import rank_paths
from misstep.store.writing.append import AppendFile, whole_lines

if TYPE_CHECKING:
    from misstep.capture.session import Session


class Facts(Protocol):
    """An adapter's fact seam, found as its attribute `facts`; an adapter without one tells nothing."""

    def take(self, step: int, *, complete: bool, last: bool = False) -> list[Record]: ...

    def close(self, step: int) -> list[Record]: ...


class FactsFile:
    """Of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._file: AppendFile | None = None

    def step_done(self, adapter: Adapter, update: Update, number: int) -> None:
        """The step of this number is over."""
        facts: Facts | None = getattr(adapter, "facts", None)
        if facts is None:
            return
        try:
            self._write(facts.take(number, complete=not update.overflow and not update.left, last=update.left))
        except Exception as error:
            self._session.trouble("in the facts", error)

    def close(self) -> None:
        """Training is over."""
        for adapter in self._session.adapters:
            facts: Facts | None = getattr(adapter, "facts", None)
            try:
                if facts is not None:
                    self._write(facts.close(self._session.step - 1))
            except Exception as error:
                self._session.trouble("in the facts", error)
        if self._file is not None:
            self._file.close(sync=False)

    def _write(self, records: list[Record]) -> None:
        writer = self._session.writer
        if writer is None or not records:
            return
        if self._file is None:
            self._file = AppendFile(rank_paths(writer.directory, writer.rank).facts, cut=whole_lines)
        self._file.append(b"".join(map(fact_line, records)))
