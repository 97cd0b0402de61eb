"""The commands that move a live run: pause, step, to, go, stop."""

from __future__ import annotations

import click

from misstep.cli.command import command as define
from misstep.cli.command import option
from misstep.cli.remote import live_options, move, wait_option
from misstep.sentences.cli import live as words


@define("pause", about=words.ABOUT_PAUSE, examples=("misstep pause last",))
@click.argument("run", default="last")
@wait_option
@live_options
def pause(run: str, *, as_json: bool, directory: str | None, rank: int | None, wait: bool) -> None:
    move(run, directory, "pause", rank=rank, as_json=as_json, wait=wait)


@define("step", about=words.ABOUT_STEP, examples=("misstep step last 5", "misstep step last --until 'loss > 10'"))
@click.argument("run", default="last")
@click.argument("count", type=int, default=1)
@option("--until", "condition", text=words.HELP_UNTIL)
@wait_option
@live_options
def step(
    run: str, count: int, *, condition: str | None, as_json: bool, directory: str | None, rank: int | None, wait: bool
) -> None:
    if condition:
        move(run, directory, "until", rank=rank, as_json=as_json, wait=wait, condition=condition)
    else:
        move(run, directory, "step", rank=rank, as_json=as_json, wait=wait, count=count)


@define("to", about=words.ABOUT_TO, examples=("misstep to last decoder.2", "misstep to last decoder.2:grad_output"))
@click.argument("run")
@click.argument("node")
@wait_option
@live_options
def to(run: str, node: str, *, as_json: bool, directory: str | None, rank: int | None, wait: bool) -> None:
    move(run, directory, "run_to", rank=rank, as_json=as_json, wait=wait, node=node)


@define("go", about=words.ABOUT_GO, examples=("misstep go last",))
@click.argument("run", default="last")
@live_options
def go(run: str, *, as_json: bool, directory: str | None, rank: int | None) -> None:
    move(run, directory, "continue", rank=rank, as_json=as_json)


@define("stop", about=words.ABOUT_STOP, examples=("misstep stop last",))
@click.argument("run", default="last")
@live_options
def stop(run: str, *, as_json: bool, directory: str | None, rank: int | None) -> None:
    move(run, directory, "terminate", rank=rank, as_json=as_json)
