"""`misstep record [RUN]`: a flight record now, of a live run or of what a dead one left behind."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import click

from misstep.cli import FINE
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option, option
from misstep.cli.render.json import print_json
from misstep.sentences.cli import crash as crashwords
from misstep.store.atomic import copy_file
from misstep.store.bundle.write import BundleKind, bundles_of, can_be_recorded, is_bundle, write_bundle
from misstep.store.layout import rank_paths
from misstep.store.reading.reader import Run, open_run

ANSWER_SECONDS = 10.0


@define(
    "record",
    about=crashwords.ABOUT_RECORD,
    examples=("misstep record last", "misstep record last --to stuck.zip"),
)
@click.argument("run", default="last")
@option("--to", "target", metavar="FILE", text=crashwords.HELP_TO)
@json_option
@dir_option
def command(run: str, *, target: str | None, as_json: bool, directory: str | None) -> int:
    opened = open_run(run, directory)
    asked = ask(opened) if opened.alive else 0
    if opened.alive and not asked and not as_json:
        click.echo(f"misstep: {crashwords.NO_ANSWER(run=opened.name)}", err=True)
    kind: BundleKind = "asked" if asked or opened.alive else "crash"
    if opened.state == "finished":
        kind = "end"
    made = write_bundle(opened.path, kind=kind, environment=dict(os.environ))
    if target:
        copy_file(made, target)
        made = Path(target)
    if as_json:
        print_json({"run": opened.name, "bundle": str(made.absolute()), "asked": asked})
    else:
        click.echo(crashwords.MADE(path=made))
    return FINE


def ask(run: Run) -> int:
    """Have every live process of the run on this machine write its stacks; how many answered."""
    waiting: dict[Path, int] = {}
    for event in run.events("start"):
        pid = int(event.facts.get("pid", 0))
        reports = rank_paths(run.path, event.rank).reports
        if (
            event.facts.get("host") != socket.gethostname()
            or not pid
            or not rank_paths(run.path, event.rank).stacks.is_dir()
        ):
            continue  # without a recorder nobody catches the signal, and it would end the process
        size = reports.stat().st_size if reports.exists() else 0
        try:
            os.kill(pid, signal.SIGUSR1)
            waiting[reports] = size
        except OSError:
            continue
    answered = 0
    until = time.monotonic() + ANSWER_SECONDS
    while waiting and time.monotonic() < until:
        for reports, size in list(waiting.items()):
            if reports.exists() and reports.stat().st_size > size:
                del waiting[reports]
                answered += 1
        time.sleep(0.05)
    return answered


def record_of(run: Run) -> Path | None:
    """The record of a run that tells the most: its crash, else the newest; None when there is none.

    A process that was killed leaves its ring, but nobody to make a record of it when it was not started by
    `misstep run`: then whoever asks first makes it.
    """
    found = [path for path in bundles_of(run.path) if is_bundle(path)]
    crash = next((path for path in found if path.stem == "crash"), None)
    if crash is None and run.state == "lost" and can_be_recorded(run.path):
        try:
            crash = write_bundle(run.path, kind="crash", environment=dict(os.environ))
        except OSError as error:  # somebody else's folder
            click.echo(f"misstep: {crashwords.NOT_MADE(run=run.name, why=error.strerror or error)}", err=True)
    return crash or (found[0] if found else None)
