"""`misstep run <any command>`: the command, unchanged, with misstep in every Python process of it that trains.

this process ── environment: PYTHONPATH = shim, MISSTEP_RUN = the run directory ──► the command
     └── reads the run directory: a status line while it runs, a report when it has ended
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from misstep.capture.attach import child_environment
from misstep.capture.keep.mindspore_config import read_dump_config
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, option
from misstep.cli.flight_record import MemoryKills, leave_record
from misstep.cli.launch import NOT_FOUND, CannotStart, run_command
from misstep.cli.progress import Progress
from misstep.cli.render.report import report_run
from misstep.cli.status_line import StatusLine, can_draw
from misstep.core.dumps import parse_dump
from misstep.core.watching.watchtext import parse_watch
from misstep.errors import MisstepError
from misstep.sentences.cli import files as filewords
from misstep.sentences.cli import general as words
from misstep.sentences.cli import live as livewords
from misstep.sentences.cli import replay as replaywords
from misstep.settings import BY_NAME, Settings
from misstep.store.modes import make_run_directory
from misstep.store.runs import new_run_directory
from misstep.store.scratch import remove_scratch

REDRAW_SECONDS = 0.25
_ACTIONS = click.Choice(BY_NAME["then"].choices)
_STEPS = re.compile(r"\s*(\d+|\d*:\d*)(\s*,\s*(\d+|\d*:\d*))*\s*")
_PYTHON = re.compile(r"python[\d.]*(\.exe)?")


@define(
    "run",
    about=words.ABOUT_RUN,
    examples=(
        "misstep run python train.py",
        "misstep run --level op --steps 400:420 python train.py",
        "misstep run --dump 'encoder.*:output@100:110' python train.py",
        "misstep run --watch overflow --then stop torchrun --nproc-per-node 2 train.py",
    ),
    # Options end at the command, so that everything behind it is the command's own.
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
)
@option("--level", type=click.Choice(BY_NAME["level"].choices), text=words.HELP_LEVEL)
@option("--steps", text=words.HELP_STEPS)
@option("--watch", multiple=True, metavar="CONDITION", text=words.HELP_WATCH)
@option("--then", type=_ACTIONS, text=words.HELP_THEN)
@option("--on-nan", type=_ACTIONS, text=words.HELP_ON_NAN)
@option("--dump", multiple=True, metavar="PATTERN[@STEPS]", text=filewords.HELP_DUMP)
@option("--dump-config", metavar="FILE", text=filewords.HELP_DUMP_CONFIG)
@option("--budget", metavar="SHARE", text=words.HELP_BUDGET)
@option("--replay", "capsule", metavar="CAPSULE", text=replaywords.HELP_REPLAY)
@option("--name", text=words.HELP_NAME)
@dir_option
@option("--pause-at-start", is_flag=True, default=None, text=words.HELP_PAUSE_AT_START)
@option("--no-ui", is_flag=True, text=words.HELP_NO_UI)
@option("-q", "--quiet", is_flag=True, text=words.HELP_QUIET)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(
    command: tuple[str, ...],
    *,
    quiet: bool,
    no_ui: bool,
    directory: str | None,
    watch: tuple[str, ...],
    dump: tuple[str, ...],
    **given: Any,
) -> int:
    if not command:
        raise click.UsageError(words.NO_COMMAND_GIVEN(), click.get_current_context())
    if given["steps"] and not _STEPS.fullmatch(given["steps"]):
        raise click.UsageError(words.BAD_STEPS(steps=given["steps"]), click.get_current_context())
    for text in watch:
        parse_watch(text)  # a misspelt condition is told now, not by a training process in an hour
    for text in dump:
        parse_dump(text)
    if given["dump_config"]:
        read_dump_config(given["dump_config"])
        given["dump_config"] = str(Path(given["dump_config"]).absolute())
    if given["capsule"]:
        given["capsule"] = str(Path(given["capsule"]).absolute())
        given["level"] = given["level"] or "op"
    chosen = {**given, "dir": directory, "watch": ";".join(watch) or None, "dump": ";".join(dump) or None}
    settings = Settings.load(**chosen)
    return launch(command, settings, {k for k, v in chosen.items() if v is not None}, quiet=quiet, ui=not no_ui)


def launch(
    command: tuple[str, ...],
    settings: Settings,
    given: set[str],
    *,
    quiet: bool,
    ui: bool,
    run: Path | None = None,
    directory: str | None = None,
) -> int:
    """Run the command under misstep, recorded in `run` and started in `directory` where given; its exit code."""
    run = run or new_run_directory(settings.dir, settings.name)
    made = _identity(run)
    progress = Progress(run)
    kills = MemoryKills()
    line = StatusLine(sys.stderr) if not quiet and can_draw(sys.stderr) else None
    environment = child_environment(command, settings, given, run)
    if ui:
        environment.update(hub_for_run(run, settings))
    try:
        seconds = REDRAW_SECONDS if line is not None else None
        tick = _drawing(progress, line)
        code = run_command(command, environment, tick=tick, seconds=seconds, directory=directory)
    except CannotStart as error:
        _remove_if_empty(run)
        return _explain(command, error)
    finally:
        if line is not None:
            line.close()
    # The command has ended: whatever goes wrong from here on, its exit code is its own.
    try:
        _sum_up(run, made, progress, code, kills, settings, quiet=quiet, hiding=hiding_flag(command))
    except Exception as error:
        if os.environ.get("MISSTEP_STRICT") == "1":
            raise
        _say(words.AFTERWARDS(code=code, why=f"{type(error).__name__}: {error}"))
    return code


def _sum_up(
    run: Path,
    made: tuple[int, int] | None,
    progress: Progress,
    code: int,
    kills: MemoryKills,
    settings: Settings,
    *,
    quiet: bool,
    hiding: str,
) -> None:
    """The last words on a run, and the record of one that failed."""
    if made is not None and _identity(run) != made:
        _say(words.DIRECTORY_REMOVED(directory=run))
        return
    progress.look()
    why = _why_not_there(run)
    remove_scratch(run)
    _remove_if_empty(run)
    if why:
        _say(words.NOTHING_RECORDED(folder=settings.dir, why=why))
        return
    record = leave_record(run, code, kills)
    if not quiet:
        report_run(progress, code, hiding_flag=hiding, say=_say, record=record)


def hub_for_run(run: Path, settings: Settings) -> dict[str, str]:
    """Start a hub and give the variables by which trainees find it, when somebody may want one from the beginning.

    In a script or a batch job nobody reads a link; there the command's output stays its own, and a debugger that
    comes later brings its own hub (`misstep debug last`, `misstep ui`).
    """
    actions = (settings.then, settings.on_nan, settings.watch)
    asked = settings.pause_at_start or any("pause" in action for action in actions)
    if settings.hub or not (asked or can_draw(sys.stderr)):
        return {}
    try:
        from misstep.hub import start_hub

        hub = start_hub(run.parent)
    except (MisstepError, OSError) as error:
        _say(str(error))
        return {}
    atexit.register(hub.stop)
    # A log is read by others: there the address alone, and `misstep ui --open` finds the rest.
    _say(livewords.OPEN(page=hub.page if sys.stderr.isatty() else hub.url))
    return hub.environment()


def _drawing(progress: Progress, line: StatusLine | None) -> Callable[[], None]:
    def tick() -> None:
        if line is not None:
            with contextlib.suppress(Exception):  # a line that cannot be drawn must not end somebody's training
                progress.look()
                line.draw(progress.sentence())

    return tick


def _explain(command: tuple[str, ...], error: CannotStart) -> int:
    program = command[0]
    hint = words.HINT_PYTHON(command=program) if program.endswith(".py") and Path(program).is_file() else ""
    if error.exit_code == NOT_FOUND:
        _say(words.NOT_FOUND(command=program, hint=hint))
    else:
        _say(words.NOT_EXECUTABLE(command=program, why=error, hint=hint))
    return error.exit_code


def hiding_flag(command: tuple[str, ...]) -> str:
    """The option of python that keeps misstep out (-E, -I, -S), when the command has one."""
    if not command or not _PYTHON.fullmatch(Path(command[0]).name):
        return ""
    for argument in command[1:]:
        if not argument.startswith("-") or argument in ("-m", "-c", "-"):
            return ""
        for flag in "EIS":
            if flag in argument[1:] and not argument.startswith("--"):
                return f"-{flag}"
    return ""


def _why_not_there(run: Path) -> str:
    """Why the run directory could not be made; empty when it is there."""
    try:
        make_run_directory(run)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _identity(run: Path) -> tuple[int, int] | None:
    """Which directory it is, whatever its name; None when there is none."""
    try:
        about = run.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _remove_if_empty(run: Path) -> None:
    """A command that never trained leaves no run behind."""
    try:
        run.rmdir()
        run.parent.rmdir()
    except OSError:
        pass  # something is in it, and stays


def _say(sentence: str) -> None:
    click.echo(f"misstep: {sentence}", err=True)
