"""`misstep ls`: the runs of a folder, a line each."""

from __future__ import annotations

import re
import shlex

import click
from rich import box
from rich.table import Table
from rich.text import Text

from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option
from misstep.cli.render.json import print_json
from misstep.cli.render.text import STATES, moment, number, terminal, word_for
from misstep.sentences.cli import general as words
from misstep.sentences.text import said
from misstep.settings import Settings
from misstep.store.runs import RunSummary, list_runs

_SOURCE = re.compile(r"; (?P<line>\S+:\d+)(?= `|$)")


@define("ls", about=words.ABOUT_LS, examples=("misstep ls", "misstep ls --dir /data/missteps --json"))
@json_option
@dir_option
def command(*, as_json: bool, directory: str | None) -> None:
    folder = directory or Settings.load().dir
    runs = list_runs(folder)
    if as_json:
        print_json(runs)
    elif not runs:
        click.echo(words.NO_RUNS(folder=folder))
    else:
        terminal().print(_table(runs))
        lost = [run.name for run in runs if run.state == "lost"]
        if lost:
            click.echo(words.LOST_RUNS(name=shlex.quote(lost[0])))


def _table(runs: list[RunSummary]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column(words.COLUMN_RUN(), no_wrap=True)
    table.add_column(words.COLUMN_STATE(), no_wrap=True)
    table.add_column(words.COLUMN_STEPS(), justify="right")
    table.add_column(words.COLUMN_LOSS(), justify="right")
    table.add_column(words.COLUMN_RANKS(), justify="right")
    table.add_column(words.COLUMN_STARTED(), no_wrap=True)
    table.add_column(words.COLUMN_VERDICT(), overflow="fold")
    for run in runs:
        table.add_row(
            run.name,
            word_for(STATES, run.state),
            f"{run.steps:,}",
            number(run.loss),
            str(len(run.ranks)),
            moment(run.started),
            Text(_in_short(run.verdict), style="red"),
        )
    return table


def _in_short(verdict: str) -> str:
    """Where the first bad value was born, in one line; `misstep show` tells the rest.

    >>> _in_short("step 2, forward, fc (aten.log): output has 3 NaN of 8; inputs were finite; train.py:87 `y = log(y)`")
    'step 2, forward, fc (aten.log) · train.py:87'
    """
    place = said(verdict.partition(": ")[0])
    source = _SOURCE.search(verdict)
    return f"{place} · {source['line']}" if source else place
