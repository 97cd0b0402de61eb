"""`misstep replay RUN@STEP`: one step of an earlier run, again, operator by operator, from its capsule."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from misstep.capture.replay.capsules import find_capsule
from misstep.cli import DIFFERS, FAILED, FINE
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option, option
from misstep.cli.commands.run import launch
from misstep.cli.render.json import print_json
from misstep.cli.render.report import called
from misstep.errors import ReplayError
from misstep.sentences.cli import replay as replaywords
from misstep.settings import Settings
from misstep.store.layout import RUN_FILE
from misstep.store.reading.reader import Run, open_run
from misstep.store.runs import new_run_directory


@define(
    "replay",
    about=replaywords.ABOUT_REPLAY,
    examples=("misstep replay last", "misstep replay last@412", "misstep replay fox@412 --json"),
)
@click.argument("run", default="last")
@option("--rank", type=int, text=replaywords.HELP_REPLAY_RANK)
@json_option
@dir_option
def command(run: str, *, rank: int | None, as_json: bool, directory: str | None) -> int:
    name, _, number = run.partition("@")
    if number and not number.isdigit():
        raise ReplayError(f"cannot read the step in {run!r}; it looks like {name or 'last'}@412")
    opened = open_run(name or "last", directory)
    refused = [str(event.facts["text"]) for event in opened.events("capsule") if "path" not in event.facts]
    capsule = find_capsule(opened.path, int(number) if number else None, rank, refused)
    if not opened.info.command:
        raise ReplayError(
            f"{opened.name} does not know its command; run it with  misstep run --replay {capsule} <command>"
        )
    started = opened.info.command
    words = tuple(shlex.split(started[0])) if len(started) == 1 else started
    again = replay_capsule(words, capsule, opened.info.directory, directory=directory, quiet=as_json)
    facts = replay_facts(again, capsule)
    if as_json:
        print_json(facts)
    elif facts["exact"]:
        click.echo(replaywords.REPLAYED(step=facts["step"], exact=facts["exact"], run=called(again.path, again.name)))
    else:
        click.echo(replaywords.NOT_REPLAYED(step=facts["step"], run=called(again.path, again.name)), err=True)
    if not facts["exact"]:
        return FAILED
    return FINE if facts["exact"] == "exact" else DIFFERS


def replay_capsule(started: tuple[str, ...], capsule: Path, where: str, *, directory: str | None, quiet: bool) -> Run:
    """Start the command again, where it was started, with a capsule; the run that it made."""
    given: dict[str, Any] = {"dir": directory, "level": "op", "capsule": str(capsule.absolute())}
    settings = Settings.load(**given)
    chosen = {name for name, value in given.items() if value is not None}
    run = new_run_directory(settings.dir, settings.name)
    there = where if where and Path(where).is_dir() else None
    code = launch(started, settings, chosen, quiet=quiet, ui=False, run=run, directory=there)
    if not (run / RUN_FILE).is_file():
        raise ReplayError(replaywords.NOTHING_RAN.of(command=shlex.join(started), directory=there or ".", code=code))
    return open_run(str(run), directory)


def replay_facts(run: Run, capsule: Path) -> dict[str, Any]:
    told = [event.facts for event in run.events("replay") if "exact" in event.facts]
    last = told[-1] if told else {}
    return {
        "run": run.name,
        "capsule": str(capsule),
        "step": last.get("step", int(capsule.stem.partition("-")[2])),
        "exact": last.get("exact", ""),
        "verdict": run.verdict,
    }
