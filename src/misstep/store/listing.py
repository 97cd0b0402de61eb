"""The folder of runs, kept at hand: what has ended is read once, and again only when one of its files changes.

`list_runs` reads every run each time it is called, which is right for a command. A hub is asked every second, and
with thousands of runs looks at sizes instead of journals.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from misstep.core.run import RunState
from misstep.errors import RunTooNew
from misstep.store.labels import LABELS_FILE, Labels, read_labels
from misstep.store.layout import RUN_FILE
from misstep.store.runs import RunSummary, run_directories, summary_of, too_new

_OVER: tuple[RunState, ...] = ("finished", "failed", "stopped", "lost")
_Stamp = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """A run in the list, with what people say of it."""

    summary: RunSummary
    labels: Labels
    stamp: _Stamp
    """Another one whenever something of this run was written."""


class RunListing:
    """The runs of one folder. May be asked from several threads: nobody waits for another who reads all of them, and
    what two read at once is the same."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[Path, Listed] = {}
        self._lock = threading.Lock()

    def all(self) -> list[Listed]:
        """Every run, the newest first."""
        with self._lock:  # two who ask for all at once read them once; who asks for few does not wait
            listed = {path: self._listed(path) for path in run_directories(self.folder)}
            self._known = listed
        return sorted(listed.values(), key=lambda one: one.summary.started, reverse=True)

    def newest(self, count: int) -> tuple[list[Listed], int]:
        """Those whose directories were begun last, and how many there are: enough for a screen, before all are read."""
        directories = sorted(run_directories(self.folder), key=_begun, reverse=True)
        some = [self.one(path) for path in directories[:count]]
        return sorted(some, key=lambda one: one.summary.started, reverse=True), len(directories)

    def one(self, path: Path) -> Listed:
        """One run of the folder, as it is now."""
        listed = self._known[path] = self._listed(path)
        return listed

    def paths(self) -> list[Path]:
        """Where every run lies, none of them read."""
        return run_directories(self.folder)

    def path_of(self, name: str) -> Path | None:
        """Where the run of this name lies, without reading any."""
        return next((path for path in self.paths() if path.name == name), None)

    def _listed(self, path: Path) -> Listed:
        stamp = stamp_of(path)
        known = self._known.get(path)
        if known is not None and known.stamp == stamp and known.summary.state in _OVER:
            return known
        try:
            summary = summary_of(path)
        except RunTooNew:
            summary = too_new(path)
        return Listed(summary, read_labels(path), stamp)


def stamp_of(run: Path) -> _Stamp:
    """Sizes and times of the files a line in the list is made of."""
    text = str(run)
    stamp: list[int] = []
    try:
        names = os.listdir(text)
    except OSError:
        return ()
    for name in sorted(names):
        if name in (RUN_FILE, LABELS_FILE):
            stamp += _seen(f"{text}/{name}")
        elif name.startswith("rank-"):
            stamp += _seen(f"{text}/{name}/journal.jsonl")
    return tuple(stamp)


def _seen(path: str) -> tuple[int, int, int]:
    try:
        one = os.stat(path)
    except OSError:
        return 0, 0, 0
    return one.st_ino, one.st_size, one.st_mtime_ns


def _begun(run: Path) -> float:
    """When run.json was written, which is when the run began; the directory's own time where there is none."""
    for path in (f"{run}/{RUN_FILE}", str(run)):
        try:
            return os.stat(path).st_mtime
        except OSError:
            continue
    return 0.0
