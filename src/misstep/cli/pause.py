"""`misstep pause RUN`: a live run stands still at the next node."""

from __future__ import annotations

import click

from misstep.cli import livewords as words
from misstep.cli.command import command as define
from misstep.cli.remote import live_options, move, wait_option


@define("pause", about=words.ABOUT_PAUSE, examples=("misstep pause last",))
@click.argument("run", default="last")
@wait_option
@live_options
def command(run: str, *, as_json: bool, directory: str | None, rank: int | None, wait: bool) -> None:
    move(run, directory, "pause", rank=rank, as_json=as_json, wait=wait)
