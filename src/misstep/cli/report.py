"""The last words of `misstep run`: what went wrong and where, or that nothing did, and the next command."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from misstep.cli import crashwords, words
from misstep.cli.launch import signal_of
from misstep.cli.progress import Progress
from misstep.cli.render import count_hits, count_steps, verdict_sentence

WARNINGS_TOLD = 3


def report_run(
    progress: Progress, exit_code: int, *, hiding_flag: str, say: Callable[[str], None], record: Path | None = None
) -> None:
    """Say in a few lines what came of the run."""
    signal = signal_of(exit_code)
    if signal:
        say(words.KILLED(signal=signal))
    if not progress.seen:
        say(words.NO_TRAINING())
        if hiding_flag:
            say(words.FLAG_HIDES_US(flag=hiding_flag))
        return
    steps = progress.last.number if progress.last else 0
    for warning in progress.warnings[:WARNINGS_TOLD]:
        say(warning)
    if progress.lost:
        say(words.LOST_RECORDS(count=f"{sum(progress.lost.values()):,}"))
    verdict = progress.verdict
    if verdict is not None:
        say(verdict_sentence(verdict, ranks=len(progress.ranks)))
    elif steps == 0:
        say(words.NO_STEPS())
    else:
        say(words.ALL_FINE(steps=count_steps(steps)))
    say(words.WATCHED(steps=count_steps(steps), hits=count_hits(progress.hits), directory=_short(progress.run)))
    if record is not None:
        say(crashwords.MADE(path=_short(record)))
    say(words.NEXT(command="misstep open last" if record is not None else "misstep show last"))


def _short(directory: Path) -> str:
    """Relative to where the user is, when that is the shorter way to say it."""
    relative = os.path.relpath(directory)
    return str(directory) if relative.startswith("..") else relative
