"""`misstep watch RUN CONDITION`: a watchpoint for a live run, or a dry run of one."""

from __future__ import annotations

import json

import click
import msgspec

from misstep.cli.command import command as define
from misstep.cli.command import option
from misstep.cli.remote import debugger_for, live_options
from misstep.sentences.cli import live as words
from misstep.settings import BY_NAME


@define(
    "watch",
    about=words.ABOUT_WATCH,
    examples=(
        "misstep watch last 'abs_mean > 1e3' --on '*:grad'",
        "misstep watch last 'gradient_vanishing(abs_mean_lt=1e-9) on encoder.*:grad' --then note",
        "misstep watch last overflow --try",
    ),
)
@click.argument("run")
@click.argument("condition")
@option("--on", multiple=True, metavar="PATTERN", text=words.HELP_ON)
@option("--then", type=click.Choice(BY_NAME["then"].choices), default="pause", text=words.HELP_THEN)
@option("--try", "dry", is_flag=True, text=words.HELP_TRY)
@live_options
def command(
    run: str,
    condition: str,
    *,
    on: tuple[str, ...],
    then: str,
    dry: bool,
    as_json: bool,
    directory: str | None,
    rank: int | None,
) -> None:
    with debugger_for(run, directory) as debugger:
        if dry:
            trial = debugger.dry_run(condition, on=on)
            text = words.DRY(hits=trial.hits, tensors=trial.tensors)
            click.echo(json.dumps(msgspec.to_builtins(trial)) if as_json else text)
            return
        view = debugger.watch(condition, on=on, then=then)
        count = words.EVERYWHERE() if view.tensors is None else view.tensors
        text = words.ADDED(id=view.id, condition=view.condition, count=count, then=view.then)
        click.echo(json.dumps(msgspec.to_builtins(view)) if as_json else text)
