"""The last words of `misstep run`: what went wrong and where, or that nothing did, and the next command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from misstep.cli.launch import signal_of
from misstep.cli.progress import Progress
from misstep.cli.render.diagnosis import top_finding
from misstep.cli.render.text import count_hits, count_steps, verdict_sentence
from misstep.core.seen import Seen
from misstep.diagnosis.diagnose import diagnose
from misstep.errors import MisstepError
from misstep.sentences.cli import crash as crashwords
from misstep.sentences.cli import diagnose as diagnosewords
from misstep.sentences.cli import general as words
from misstep.settings import Settings

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
    verdict = progress.verdict
    if verdict is not None:
        say(verdict_sentence(verdict, ranks=len(progress.ranks)))
    for sentence in what_was_seen(progress.seen_of_it, by_severity=progress.hits, verdict=verdict is not None):
        say(sentence)
    if verdict is None:
        _tell_why(progress.run, say)
    say(words.WATCHED(steps=count_steps(steps), hits=count_hits(progress.hits), directory=_short(progress.run)))
    if record is not None:
        say(crashwords.MADE(path=_short(record)))
    say(words.NEXT(command=f"misstep {'show' if record is None else 'open'} {called(progress.run, 'last')}"))


def _tell_why(run: Path, say: Callable[[str], None]) -> None:
    """The first reason why it does not learn, when there is one."""
    try:
        diagnosis = diagnose(run)
    except (MisstepError, OSError, ValueError):
        return  # the report is about the run; whoever asks for a diagnosis is told why there is none
    top = top_finding(diagnosis)
    if top:
        say(top)
        say(diagnosewords.MORE(run="last"))


def what_was_seen(seen: Seen, *, by_severity: Mapping[str, int], verdict: bool) -> Iterator[str]:
    """That all is fine, when that is known; else what speaks against it, and what to do."""
    if seen.clean and not verdict:
        yield words.ALL_FINE(steps=count_steps(seen.steps), what=words.CHECKED[seen.level]())
        return
    if seen.steps == 0 and not seen.skipped and not verdict:
        yield words.NO_STEPS()
    if seen.first_bad_loss is not None and not verdict:
        yield words.BAD_LOSSES(steps=count_steps(seen.bad_losses), first=f"{seen.first_bad_loss:,}")
    elif seen.hits and not verdict:
        yield words.HITS_SEEN(hits=count_hits(by_severity))
    if seen.skipped:
        yield words.SKIPPED_UPDATES(count=f"{seen.skipped:,}", steps=count_steps(seen.steps))
    if seen.unwatched:
        yield words.NOT_WATCHED(steps=count_steps(seen.unwatched), all=count_steps(seen.steps))
    if seen.lost:
        yield words.LOST_SIGHT(count=f"{seen.lost:,}")
    elif seen.broken_off:
        yield words.BROKEN_OFF(steps=count_steps(seen.steps))


def called(run: Path, name: str) -> str:
    """How the run is called in a command that works as printed: by `name` only where names are looked for."""
    return name if run.parent.absolute() == Path(Settings.load().dir).absolute() else shlex.quote(_short(run))


def _short(directory: Path) -> str:
    """Relative to where the user is, when that is the shorter way to say it."""
    try:
        relative = os.path.relpath(directory)
    except OSError:  # where the user was is gone
        return str(directory)
    return str(directory) if relative.startswith("..") else relative
