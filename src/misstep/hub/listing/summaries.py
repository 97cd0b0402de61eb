"""Summaries of the runs of a folder, each read again only when something in its directory has changed.

A thousand finished runs are a thousand glances at sizes and times, not a thousand journals: an idle hub stays idle. Of
a run that may be alive the process itself is asked each time, as nobody writes down that it was killed.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from misstep.store.layout import RUN_FILE, rank_paths, ranks_in
from misstep.store.runs import RunSummary, list_runs, summary_of

_SETTLED = ("finished", "failed", "stopped", "lost")

Mark = tuple[tuple[int, int], ...]


class Summaries:
    """What was read last of each run, and what its files looked like then; asked from several threads."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Mark, RunSummary]] = {}
        self._lock = threading.Lock()
        self.read = 0
        """How many were read anew, over all lists."""

    def list(self, folder: Path) -> list[RunSummary]:
        """Every run of the folder, the newest first."""
        with self._lock:
            met: dict[Path, tuple[Mark, RunSummary]] = {}

            def summarise(directory: Path) -> RunSummary:
                mark = _mark(directory)
                known = self._known.get(directory)
                if known is not None and known[0] == mark and known[1].state in _SETTLED:
                    summary = known[1]
                else:
                    self.read += 1
                    summary = summary_of(directory)
                met[directory] = mark, summary
                return summary

            found = list_runs(folder, summarise=summarise)
            self._known = met
            return found


def _mark(directory: Path) -> Mark:
    """Sizes and times of what a summary is read from."""
    files = [directory / RUN_FILE, *(rank_paths(directory, rank).journal for rank in ranks_in(directory))]
    found = []
    for file in files:
        try:
            about = os.stat(file)
            found.append((about.st_mtime_ns, about.st_size))
        except OSError:
            found.append((0, -1))
    return tuple(found)
