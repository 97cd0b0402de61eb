"""Our own failures: counted by place, shown once, and never the user's."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from misstep.sentences import journal

if TYPE_CHECKING:
    from misstep.capture.session import Session

_MOST_SHOWN = 3
"""Places shown in the terminal; one fault of ours often shows in many."""


class Troubles:
    """Of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.counts: dict[str, int] = {}

    def tell(self, where: str, error: BaseException) -> None:
        """Something of ours failed here; training goes on."""
        if self._session.settings.strict:
            raise error
        count = self.counts[where] = self.counts.get(where, 0) + 1
        if count > 1 or len(self.counts) > _MOST_SHOWN:
            return
        why = f"{type(error).__name__}: {error}"
        print(
            f"misstep: internal error {where}; training goes on: {why}  (MISSTEP_STRICT=1 shows the traceback)",
            file=sys.stderr,
        )
        if self._session.writer is not None:
            self._session.writer.event("warning", text=journal.OWN_FAILURE.of(where=where, error=why))
