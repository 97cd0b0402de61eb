"""`misstep dump RUN PATTERN`: whole tensors of a live run, kept from the next step on."""

from __future__ import annotations

import json

import click

from misstep.cli.command import command as define
from misstep.cli.command import option
from misstep.cli.remote import debugger_for, live_options
from misstep.core.dumps import parse_dump
from misstep.sentences.cli import files as filewords


@define(
    "dump",
    about=filewords.ABOUT_DUMP,
    examples=("misstep dump last 'encoder.0.*' --steps 100:110", "misstep dump last '*:grad'"),
)
@click.argument("run")
@click.argument("patterns", nargs=-1, required=True)
@option("--steps", default="", metavar="STEPS", text=filewords.HELP_STEPS)
@live_options
def command(
    run: str, patterns: tuple[str, ...], *, steps: str, as_json: bool, directory: str | None, rank: int | None
) -> None:
    for pattern in patterns:
        parse_dump(pattern, steps=steps)  # a misspelt pattern is told before anybody is asked
    with debugger_for(run, directory) as debugger:
        found = debugger.dump(*patterns, steps=steps, rank=rank)
    text = filewords.DUMPING(what=", ".join(found["dumps"]), tensors=found["tensors"])
    click.echo(json.dumps(found) if as_json else text)
