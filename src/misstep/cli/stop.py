"""`misstep stop RUN`: a live run ends, cleanly."""

from __future__ import annotations

import click

from misstep.cli import livewords as words
from misstep.cli.command import command as define
from misstep.cli.remote import live_options, move


@define("stop", about=words.ABOUT_STOP, examples=("misstep stop last",))
@click.argument("run", default="last")
@live_options
def command(run: str, *, as_json: bool, directory: str | None, rank: int | None) -> None:
    move(run, directory, "terminate", rank=rank, as_json=as_json)
