"""`misstep determinism -- COMMAND`: does it do the same twice, and if not, what is to blame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from misstep.cli import DIFFERS, FINE
from misstep.cli.command import command as define
from misstep.cli.command import json_option, option
from misstep.cli.render.json import print_json
from misstep.sentences import porting as sentences
from misstep.sentences.cli import porting as words

if TYPE_CHECKING:
    from misstep.migration.determinism.examine import Examined


@define(
    "determinism",
    about=words.ABOUT_DETERMINISM,
    examples=("misstep determinism -- python train.py --epochs 1", "misstep determinism --json -- python train.py"),
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@option("--no-threads", is_flag=True, text=words.HELP_NO_THREADS)
@json_option
def command(command: tuple[str, ...], *, no_threads: bool, as_json: bool) -> int:
    from misstep.migration.determinism.examine import examine

    found = examine(command, _environment, threads=not no_threads)
    if as_json:
        print_json({**asdict(found), "deterministic": found.deterministic, "why": _why(found)})
    else:
        _show(found)
    return FINE if found.deterministic else DIFFERS


def _environment(given: Mapping[str, str], folder: Path) -> dict[str, str]:
    from misstep.capture.attach import environment_for_child

    door = {"MISSTEP_DOOR": "misstep.migration.determinism.probe", "MISSTEP_PROBE": str(folder)}
    return {**environment_for_child(dict(given), folder), **door}


def _show(found: Examined) -> None:
    for stage, same in found.fixed.items():
        click.echo((words.STAGE_FIXED if same else words.STAGE_OPEN)(stage=words.STAGE_NAMES[stage]()))
    if found.difference is not None:
        click.echo(words.NOT_DETERMINED(why=_why(found)))
        return
    click.echo(words.DETERMINED(operations=found.operations, steps=found.steps, runs=found.runs))
    if found.threads is None:
        click.echo(words.THREADS_NOT_TRIED())


def _why(found: Examined) -> str:
    one = found.difference
    if one is None:
        return ""
    fix = sentences.SEED_CALLS.get(one.detail, "")
    return sentences.CAUSES[one.cause](detail=one.detail, where=one.where or "?", fix=fix)
