"""`misstep tune status|best|importance|export`: a study as it stands, while it runs and afterwards."""

from __future__ import annotations

from pathlib import Path

import click
from rich import box
from rich.table import Table as RichTable

from misstep.cli import FAILED, FINE
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option, option
from misstep.cli.render.json import print_json
from misstep.cli.render.study import best_lines, counts, trials_table
from misstep.cli.render.text import terminal
from misstep.errors import StudyFileError
from misstep.sentences.cli import tune as words
from misstep.store.atomic import write_text
from misstep.tuning.results import export_csv, export_json, importances, plain
from misstep.tuning.storage.places import Place, find
from misstep.tuning.storage.table import StudyReader, Table
from misstep.tuning.studyfile import Study, read_study


def looked_up(study: str, directory: str | None) -> tuple[Place, Table]:
    place = find(study, directory)
    return place, StudyReader(place).read()


@define("status", about=words.ABOUT_STATUS, examples=("misstep tune status mlp", "misstep tune status sqlite:///a.db"))
@click.argument("study", default="last")
@option("--most", type=click.IntRange(1), default=20, text=words.HELP_MOST)
@json_option
@dir_option
def status(study: str, *, most: int, as_json: bool, directory: str | None) -> int:
    _, table = looked_up(study, directory)
    if as_json:
        print_json(
            {
                "study": table.name,
                "directions": table.directions,
                "targets": table.targets,
                "wanted": table.wanted,
                "counts": counts(table),
                "trials": [plain(trial, table) for trial in table.trials],
            }
        )
        return FINE
    terminal().print(trials_table(table, most=most))
    if len(table.trials) > most:
        click.echo(words.MORE(count=len(table.trials) - most, all=len(table.trials)))
    for line in best_lines(table):
        click.echo(line)
    return FINE


@define("best", about=words.ABOUT_BEST, examples=("misstep tune best mlp.yaml", "misstep tune best mlp --json"))
@click.argument("study", default="last")
@json_option
@dir_option
def best(study: str, *, as_json: bool, directory: str | None) -> int:
    _, table = looked_up(study, directory)
    if as_json:
        print_json([plain(trial, table) for trial in table.best()])
    else:
        for line in best_lines(table, _file_of(study)):
            click.echo(line)
    return FINE if table.best() else FAILED


@define("importance", about=words.ABOUT_IMPORTANCE, examples=("misstep tune importance mlp",))
@click.argument("study", default="last")
@option("--target", type=click.IntRange(0), default=0, text=words.HELP_TARGET)
@json_option
@dir_option
def importance(study: str, *, target: int, as_json: bool, directory: str | None) -> int:
    place, table = looked_up(study, directory)
    found = importances(place, table, target)
    if as_json:
        print_json(found)
        return FINE
    shown = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    shown.add_column(words.COLUMN_PARAMETER())
    shown.add_column(words.COLUMN_IMPORTANCE())
    for name, share in found.items():
        shown.add_row(name, f"{share:6.1%} {'█' * round(30 * share)}")
    terminal().print(shown)
    return FINE


@define(
    "export", about=words.ABOUT_EXPORT, examples=("misstep tune export mlp", "misstep tune export mlp --to trials.csv")
)
@click.argument("study", default="last")
@option("--format", "kind", type=click.Choice(["csv", "json"]), text=words.HELP_FORMAT)
@option("--to", "target", metavar="FILE", text=words.HELP_TO)
@json_option
@dir_option
def export(study: str, *, kind: str | None, target: str | None, as_json: bool, directory: str | None) -> int:
    _, table = looked_up(study, directory)
    kind = "json" if as_json else kind or (Path(target or "").suffix.lstrip(".") or "csv")
    text = export_json(table) if kind == "json" else export_csv(table)
    if target is None:
        click.echo(text, nl=False)
    else:
        write_text(target, text)
        click.echo(words.EXPORTED(count=len(table.trials), file=target))
    return FINE


def _file_of(study: str) -> Study | None:
    """The study file, when that is how the study was named: it knows the command."""
    if not study.endswith((".yaml", ".yml")):
        return None
    try:
        return read_study(study)
    except StudyFileError:
        return None
