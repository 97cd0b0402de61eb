"""`misstep graph RUN`: what was compiled in a run, where it broke, and what it cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import click

from misstep.cli import DIFFERS, FINE
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option, option
from misstep.cli.render.json import print_json
from misstep.diagnosis.compiled import Break, Function, GraphReport, graph_report
from misstep.sentences.cli import graph as words
from misstep.sentences.text import said
from misstep.settings import Settings
from misstep.store.reading.reader import open_run

_MOST_REASONS = 3


@define(
    "graph",
    about=words.ABOUT_GRAPH,
    examples=("misstep graph last", "misstep graph compiled --eager plain", "misstep graph last --json"),
)
@click.argument("run", default="last")
@option("--eager", metavar="RUN", text=words.HELP_EAGER)
@option("--rank", type=int, text=words.HELP_RANK)
@json_option
@dir_option
def command(run: str, *, eager: str | None, rank: int | None, as_json: bool, directory: str | None) -> int:
    folder = directory or Settings.load().dir
    opened = open_run(run, folder)
    report = graph_report(opened, eager=open_run(eager, folder) if eager else None, rank=rank)
    if as_json:
        print_json({**asdict(report), "graphs": report.graphs, "break_even": report.break_even})
    elif not report.functions and not report.breaks:
        click.echo(words.NOTHING(run=report.run, steps=report.steps))
    else:
        _print(report)
    return DIFFERS if report.troubled else FINE


def _print(report: GraphReport) -> None:
    click.echo(
        words.HEAD(
            run=report.run,
            graphs=report.graphs,
            functions=len(report.functions),
            breaks=len(report.breaks),
            seconds=report.compile_seconds,
        )
    )
    for line in _cost(report):
        click.echo(f"  {line}")
    for hooks in report.ignored_hooks:
        where = place(hooks.file, hooks.line)
        click.echo(
            "\n" + words.HOOKS(hooks=hooks.hooks, modules=hooks.modules, function=hooks.function or "?", place=where)
        )
    for function in report.functions:
        click.echo()
        _print_function(function)
    for one in report.breaks:
        click.echo()
        _print_break(one)


def _cost(report: GraphReport) -> list[str]:
    lines = []
    if report.stages:
        parts = [words.STAGE(name=words.STAGE_NAMES[name](), seconds=value) for name, value in report.stages.items()]
        lines.append(words.STAGES(parts=parts))
    if report.first_step is not None and report.steady_step is not None:
        lines.append(words.FIRST_STEP(first=report.first_step, steady=report.steady_step))
    elif report.first_step is not None:
        lines.append(words.FIRST_ONLY(first=report.first_step))
    if report.eager_step is not None and report.steady_step is not None:
        pays = report.break_even
        lines.append(
            words.NEVER_PAYS(eager=report.eager_step)
            if pays is None
            else words.PAYS(eager=report.eager_step, steps=pays)
        )
    return lines


def _print_function(one: Function) -> None:
    text = words.FUNCTION if one.operators else words.FUNCTION_UNCOUNTED
    gaps = {"name": one.name, "place": place(one.file, one.line), "graphs": one.graphs, "seconds": one.seconds}
    click.echo(text(**gaps, operators=one.operators) if one.operators else text(**gaps))
    reasons = Counter(one.again_because).most_common()
    for reason, times in reasons[:_MOST_REASONS]:
        click.echo(f"  {words.AGAIN(reason=reason) if times == 1 else words.AGAIN_TIMES(reason=reason, times=times)}")
    if len(reasons) > _MOST_REASONS:
        click.echo(f"  {words.AGAIN_MORE(count=sum(times for _, times in reasons[_MOST_REASONS:]))}")
    if one.gave_up:
        click.echo(f"  {words.GAVE_UP(reason=one.gave_up)}")
    if any("size mismatch" in reason for reason in one.again_because):
        click.echo(f"  → {words.AGAIN_ADVICE()}")
    elif any("[" in reason and "→" in reason for reason in one.again_because):
        click.echo(f"  → {words.AGAIN_ADVICE_MINDSPORE()}")


def _print_break(one: Break) -> None:
    reason = one.explanation or one.reason
    click.echo(words.BREAK(place=place(one.file, one.line), function=one.function, reason=reason))
    if one.advice:
        click.echo(f"  → {said(one.advice)}")


def place(file: str, line: int) -> str:
    """A line of a file, as short as it is unambiguous from here."""
    path = Path(file)
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return f"{shown}:{line}"
