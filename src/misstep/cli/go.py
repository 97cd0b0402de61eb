"""`misstep go RUN`: a paused run goes on."""

from __future__ import annotations

import click

from misstep.cli import livewords as words
from misstep.cli.command import command as define
from misstep.cli.remote import live_options, move


@define("go", about=words.ABOUT_GO, examples=("misstep go last",))
@click.argument("run", default="last")
@live_options
def command(run: str, *, as_json: bool, directory: str | None, rank: int | None) -> None:
    move(run, directory, "continue", rank=rank, as_json=as_json)
