"""A run that is open in the hub is read again when there is something new in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from misstep.core.run import RunInfo, Step
from misstep.core.stats import HEAD, SUMMARY
from misstep.hub.listing.folder import RunFolder
from misstep.store.writing.writer import RunWriter


def test_who_was_told_of_something_new_gets_it_however_soon_they_ask(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "fox", 0, RunInfo(name="fox", command=("python",), started=1.0))
    folder = RunFolder(tmp_path)
    for number in range(1, 20):  # faster than a run is read again by itself
        writer.step(Step(number, loss=0.5), np.zeros(0, HEAD), np.zeros(0, SUMMARY))
        writer.flush()
        assert len(folder.open("fox", told=number).steps()) == number
    writer.end("finished", 0)
