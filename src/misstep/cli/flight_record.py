"""What `misstep run` does when its command failed: makes the flight record a killed process could not make itself."""

from __future__ import annotations

import os
from pathlib import Path

from misstep.errors import MisstepError
from misstep.store.bundle.write import RECORDS, write_bundle
from misstep.store.layout import rank_paths, ranks_in

_COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


class MemoryKills:
    """How often the kernel has killed a process of this container for want of memory, since this was made."""

    def __init__(self) -> None:
        self._before = _count()

    @property
    def some(self) -> bool:
        return _count() > self._before


def leave_record(run: Path, exit_code: int, kills: MemoryKills) -> Path | None:
    """The flight record of a run that ended badly; None when it did not, or nothing was recorded.

    The command may say 0 although a rank was killed, and be killed although all ranks said their last word.
    """
    ranks = [rank for rank in ranks_in(run) if rank_paths(run, rank).ring.exists()]
    if not ranks or exit_code == 0:
        return None
    made = run / RECORDS / "crash.zip"
    if made.exists() and len(ranks) == 1 and exit_code < 128:
        return made  # the process has said all there is to say
    note = "out-of-memory killer" if kills.some else ""
    try:
        return write_bundle(run, kind="crash", environment=dict(os.environ), exit_code=exit_code, note=note)
    except (OSError, ValueError, MisstepError):
        return made if made.exists() else None


def _count() -> int:
    for file in _COUNTERS:
        try:
            for line in Path(file).read_text().splitlines():
                word, _, number = line.partition(" ")
                if word == "oom_kill" and number.strip().isdecimal():
                    return int(number)
        except OSError:
            continue
    return 0
