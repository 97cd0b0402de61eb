"""`misstep to RUN NODE`: run to a node and stand still there."""

from __future__ import annotations

import click

from misstep.cli import livewords as words
from misstep.cli.command import command as define
from misstep.cli.remote import live_options, move, wait_option


@define("to", about=words.ABOUT_TO, examples=("misstep to last decoder.2", "misstep to last decoder.2:grad_output"))
@click.argument("run")
@click.argument("node")
@wait_option
@live_options
def command(run: str, node: str, *, as_json: bool, directory: str | None, rank: int | None, wait: bool) -> None:
    move(run, directory, "run_to", rank=rank, as_json=as_json, wait=wait, node=node)
