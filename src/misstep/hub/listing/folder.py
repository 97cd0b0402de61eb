"""The folder of runs a hub serves: what is in it, and runs that are open because somebody looks at them.

The list and every open run are read again at most a few times a second, however many clients ask.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from pathlib import Path

from misstep.core.finding import Verdict
from misstep.errors import RunNotFound, nearest
from misstep.hub.listing.glances import Glances
from misstep.hub.listing.parameters import parameters_of
from misstep.protocol.views import Number, RunBrief, number
from misstep.sentences import verdict as texts
from misstep.sentences.text import said
from misstep.store.layout import is_run
from misstep.store.listing import Listed, RunListing
from misstep.store.reading.reader import Run

REFRESH_SECONDS = 0.2
OPEN_RUNS = 64


class RunFolder:
    """Runs by name."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._open: dict[str, tuple[Run, float, tuple[int, int], int]] = {}
        self.listing = RunListing(directory)
        self._list: tuple[float, list[RunBrief]] = (0.0, [])
        self._lines: dict[str, tuple[Listed, RunBrief]] = {}
        self._glances = Glances()

    def briefs(self) -> list[RunBrief]:
        """Every run, as its directory tells it."""
        if time.monotonic() - self._list[0] > REFRESH_SECONDS:
            briefs = [self._line(one) for one in self.listing.all()]
            # From its end: with thousands of runs reading them takes longer than they may be kept.
            self._list = (time.monotonic(), briefs)
        return self._list[1]

    def newest(self, count: int) -> tuple[list[RunBrief], int]:
        """The runs begun last, and how many there are."""
        some, total = self.listing.newest(count)
        return [self._line(one) for one in some], total

    def brief(self, name: str) -> RunBrief | None:
        """One run's line; None for a name that is not in the folder."""
        path = self.listing.path_of(name)
        return None if path is None else self._line(self.listing.one(path))

    def forget(self) -> None:
        """Somebody changed the folder through us: the next who asks gets it as it is now."""
        self._list = (0.0, [])

    def _line(self, listed: Listed) -> RunBrief:
        """Made once for a run that has ended: its parameters and its curve do not change any more."""
        name = listed.summary.name
        known = self._lines.get(name)
        if known is None or known[0] is not listed:
            known = self._lines[name] = (listed, _brief(listed, self._glances))
        return known[1]

    def open(self, name: str, *, elsewhere: Path | None = None, also: Iterable[str] = (), told: int = 0) -> Run:
        """The run of that name, refreshed; `elsewhere` is where a live run outside of the folder says it writes.

        `told`: how often clients were told of something new in it; whoever asks because of that gets it.

        RunNotFound for a name that is not there, with the nearest of those that are, or of `also`.
        """
        now = time.monotonic()
        if name in self._open and _identity(self._open[name][0].path) != self._open[name][2]:
            del self._open[name]  # deleted, and perhaps recorded anew under the same name
        if name in self._open:
            run, at, made, known = self._open[name]
            if now - at > REFRESH_SECONDS or told != known:
                run.refresh()
                self._open[name] = (run, time.monotonic(), made, told)
            return run
        paths = {path.name: path for path in self.listing.paths()}
        if elsewhere is not None and is_run(elsewhere):
            paths.setdefault(name, elsewhere)
        if name not in paths:
            near = nearest(name, [*paths, *also])
            raise RunNotFound(f"no run {name[:100]!r} in {self.directory}{near}", run=name)
        run = Run(paths[name])
        while len(self._open) >= OPEN_RUNS:
            self._open.pop(next(iter(self._open)))
        self._open[name] = (run, now, _identity(run.path), told)
        return run


def _brief(listed: Listed, glances: Glances) -> RunBrief:
    summary, labels = listed.summary, listed.labels
    glance = glances.of(summary.path, summary.ranks)
    # The earliest birth of all ranks, as everywhere; the journals are in the order in which it was written down.
    found = _born(summary.first_bad, len(summary.ranks)) if summary.first_bad else glance.found
    return RunBrief(
        run=summary.name,
        state=summary.state,
        live=False,
        started=summary.started,
        step=summary.steps,
        loss=number(summary.loss),
        world_size=max(len(summary.ranks), 1),
        ranks=summary.ranks,
        host=summary.host,
        command=summary.command,
        hits=glance.hits,
        spark=tuple(_drawn(loss) for loss in glance.losses),
        found=said(found, "en"),
        found_zh=said(found, "zh"),
        bad=summary.first_bad.kind if summary.first_bad else "",
        params=parameters_of(summary.command, directory=summary.directory, started=summary.started, host=summary.host),
        tags=labels.tags,
        note=labels.note,
        pinned=labels.pinned,
    )


def _drawn(loss: Number | None) -> Number | None:
    """Four digits are more than eighteen pixels can show, and a third of the list's bytes."""
    return float(f"{loss:.4g}") if isinstance(loss, float) and math.isfinite(loss) else loss


def _born(verdict: Verdict, ranks: int) -> str:
    kind = "NaN" if verdict.kind == "nan" else "Inf"
    if ranks > 1:
        return texts.BORN_ON.of(kind=kind, node=verdict.node, step=verdict.step, rank=verdict.rank)
    return texts.BORN.of(kind=kind, node=verdict.node, step=verdict.step)


def _identity(directory: Path) -> tuple[int, int]:
    """Another one for a directory of the same name that was made later; zeros when there is none."""
    try:
        made = directory.stat()
    except OSError:
        return 0, 0
    return made.st_dev, made.st_ino
