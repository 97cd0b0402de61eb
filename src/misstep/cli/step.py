"""`misstep step RUN [N]`: so many steps more, or until something holds; then the run stands still again."""

from __future__ import annotations

import click

from misstep.cli import livewords as words
from misstep.cli.command import command as define
from misstep.cli.command import option
from misstep.cli.remote import live_options, move, wait_option


@define("step", about=words.ABOUT_STEP, examples=("misstep step last 5", "misstep step last --until 'loss > 10'"))
@click.argument("run", default="last")
@click.argument("count", type=int, default=1)
@option("--until", "condition", text=words.HELP_UNTIL)
@wait_option
@live_options
def command(
    run: str,
    count: int,
    *,
    condition: str | None,
    as_json: bool,
    directory: str | None,
    rank: int | None,
    wait: bool,
) -> None:
    if condition:
        move(run, directory, "until", rank=rank, as_json=as_json, wait=wait, condition=condition)
    else:
        move(run, directory, "step", rank=rank, as_json=as_json, wait=wait, count=count)
