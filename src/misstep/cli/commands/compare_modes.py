"""`misstep compare-modes COMMAND`: does compiled code compute what the program says?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from misstep.cli import DIFFERS, FAILED, FINE
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option, option
from misstep.cli.commands.graph import place
from misstep.cli.commands.run import launch
from misstep.cli.render.json import print_json
from misstep.diagnosis.compiled.modes import GraphCheck, ModeComparison, mode_comparison
from misstep.sentences.cli import graph as words
from misstep.sentences.text import said
from misstep.settings import Settings
from misstep.store.reading.reader import open_run
from misstep.store.runs import list_runs


@define(
    "compare-modes",
    about=words.ABOUT_COMPARE_MODES,
    examples=("misstep compare-modes python train.py", "misstep compare-modes --step 100 python train.py"),
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("started", nargs=-1, required=True, metavar="COMMAND...")
@option("--step", type=click.IntRange(min=1), default=1, metavar="N", text=words.HELP_COMPARED_STEP)
@json_option
@dir_option
def command(started: tuple[str, ...], *, step: int, as_json: bool, directory: str | None) -> int:
    given: dict[str, Any] = {
        "dir": directory,
        "level": "guard",
        "compare_modes": step,
        "pynative": str(step),
        "last_step": step,
    }
    settings = Settings.load(**given)
    before = {run.path for run in list_runs(settings.dir)}
    code = launch(started, settings, {name for name, value in given.items() if value is not None}, quiet=True, ui=False)
    made = [run.path for run in list_runs(settings.dir) if run.path not in before]
    if not made:
        click.echo(f"misstep: {words.NO_TRAINING(code=code)}", err=True)
        return FAILED
    compared = mode_comparison(open_run(made[-1]))
    if as_json:
        print_json(asdict(compared))
    else:
        _print(compared, step)
    return DIFFERS if compared.differs else FINE if compared.graphs or compared.modes else FAILED


def _print(compared: ModeComparison, step: int) -> None:
    if not compared.graphs and not compared.modes:
        click.echo(words.NOTHING_COMPARED(run=compared.run, step=step))
    for text in compared.modes:
        click.echo(said(text))
    for one in compared.graphs:
        click.echo(_sentence(one))
        if one.reproduction:
            click.echo(f"  {words.REPRODUCTION(run=compared.run, file=one.reproduction)}")
        if one.random:
            click.echo(f"  {words.RANDOM(count=one.random)}")


def _sentence(one: GraphCheck) -> str:
    gaps = {
        "graph": one.graph,
        "operator": one.operator,
        "compiled": one.compiled_error,
        "eager": one.eager_error,
        "place": place(one.file, one.line),
    }
    if one.kind == "unchecked":
        return words.UNCHECKED(graph=one.graph, why=one.why)
    if one.kind == "miscompiled":
        return (words.MISCOMPILED_BACKWARD if one.backward else words.MISCOMPILED)(**gaps)
    if one.kind == "unstable":
        return words.UNSTABLE(**gaps)
    return words.SAME(graph=one.graph, count=one.compared, compiled=one.compiled_error)
