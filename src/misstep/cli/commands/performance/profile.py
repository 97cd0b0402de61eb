"""`misstep profile COMMAND`: which operators take the time of a few steps, with module and line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click

from misstep.cli import FINE
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option, option
from misstep.cli.commands.run import launch
from misstep.cli.render.json import print_json
from misstep.cli.render.performance.operators import tell_comparison, tell_profile
from misstep.cli.render.text import terminal
from misstep.errors import PerformanceError, RunError
from misstep.performance.operators import Profile, compare, merged_trace, profile_of, reproduction
from misstep.sentences.cli import operators as words
from misstep.settings import Settings
from misstep.store.reading.reader import Run, open_run

_STEPS = re.compile(r"(\d+):(\d+)")


@define(
    "profile",
    about=words.ABOUT_PROFILE,
    examples=(
        "misstep profile python train.py",
        "misstep profile --steps 100:103 python train.py",
        "misstep profile --diff before last",
        "misstep profile --export trace.json last",
        "misstep profile --reproduce 1 last > call.py",
    ),
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False},
)
@option("--steps", default="5:8", metavar="FIRST:AFTER", text=words.HELP_STEPS)
@option("--diff", "other", metavar="RUN", text=words.HELP_DIFF)
@option("--export", "export", metavar="FILE", text=words.HELP_EXPORT)
@option("--reproduce", "row", type=click.IntRange(min=1), metavar="ROW", text=words.HELP_REPRODUCE)
@option("--rank", type=int, text=words.HELP_RANK)
@option("--most", type=click.IntRange(min=1), default=20, text=words.HELP_MOST)
@json_option
@dir_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(
    command: tuple[str, ...],
    *,
    steps: str,
    other: str | None,
    export: str | None,
    row: int | None,
    rank: int | None,
    most: int,
    as_json: bool,
    directory: str | None,
) -> int:
    run = _known(command or ("last",), directory) or _recorded(command, steps, directory)
    if export:
        trace = merged_trace(run)
        Path(export).write_text(json.dumps(trace), encoding="utf-8")
        click.echo(words.EXPORTED(events=len(trace["traceEvents"]), path=export), err=True)
        return FINE
    profile = profile_of(run, rank)
    if row is not None:
        if row > len(profile.operators):
            raise PerformanceError(words.NO_ROW.of(row=row, rows=len(profile.operators)))
        click.echo(reproduction(profile.operators[row - 1]), nl=False)
    elif other is not None:
        _tell_difference(profile_of(open_run(other, directory), rank), profile, most=most, as_json=as_json)
    elif as_json:
        print_json(profile)
    else:
        tell_profile(terminal(), profile, most=most)
    return FINE


def _tell_difference(left: Profile, right: Profile, *, most: int, as_json: bool) -> None:
    found = compare(left, right)
    if as_json:
        print_json({"left": left.run, "right": right.run, "operators": found})
    else:
        tell_comparison(terminal(), left, right, found[:most])


def _known(given: tuple[str, ...], directory: str | None) -> Run | None:
    """The run that is meant, when it is no command."""
    if len(given) != 1:
        return None
    try:
        return open_run(given[0], directory)
    except RunError:
        if given[0] == "last":
            raise
        return None


def _recorded(command: tuple[str, ...], steps: str, directory: str | None) -> Run:
    found = _STEPS.fullmatch(steps)
    if found is None or int(found[1]) >= int(found[2]):
        raise click.UsageError(words.BAD_STEPS(steps=steps), click.get_current_context())
    given: dict[str, Any] = {"level": "off", "profile": steps, "last_step": int(found[2]) - 1, "dir": directory}
    settings = Settings.load(**given)
    launch(command, settings, {name for name, value in given.items() if value is not None}, quiet=True, ui=False)
    run = open_run("last", directory)
    if not run.events("profile"):
        raise PerformanceError(words.NOT_PROFILED.of(first=found[1]))
    return run
