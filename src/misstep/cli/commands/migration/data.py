"""`misstep data check`: a pipeline read through, or two compared element by element."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from misstep.cli import DIFFERS, FINE
from misstep.cli.command import command as define
from misstep.cli.command import json_option
from misstep.cli.render.json import print_json
from misstep.sentences.cli import migration as words
from misstep.sentences.text import Text

if TYPE_CHECKING:
    from misstep.migration.data.checks import DataFinding, DataReport


@define(
    "data",
    about=words.ABOUT_DATA,
    examples=(
        "misstep data check data.py:train",
        "misstep data check torch_data.py:train mindspore_data.py:train",
    ),
)
@click.argument("verb", type=click.Choice(["check"]))
@click.argument("pipeline")
@click.argument("other", required=False)
@json_option
def command(verb: str, pipeline: str, *, other: str | None, as_json: bool) -> int:
    from misstep.migration.data.checks import check_data, compare_data
    from misstep.migration.sources import call_function

    made = call_function(pipeline)
    report = check_data(made)
    apart = compare_data(made, call_function(other)) if other is not None else []
    if as_json:
        print_json({**_facts(report), "compared": other, "apart": [asdict(one) for one in apart]})
    else:
        _show(report, apart, compared=other is not None)
    return FINE if report and not apart else DIFFERS


def _show(report: DataReport, apart: list[DataFinding], *, compared: bool) -> None:
    from misstep.cli.render.migration.params import shape

    columns = ", ".join(
        f"{name} {shape(column.shapes.most_common(1)[0][0])} {column.dtypes.most_common(1)[0][0]}"
        for name, column in report.columns.items()
    )
    click.echo(words.DATA_READ(delivered=report.delivered, seconds=f"{report.seconds:.3g}", columns=columns))
    for one in report.findings:
        click.echo("  " + sentence(one))
    if report:
        click.echo("  " + words.DATA_FINE())
    for one in apart:
        click.echo(sentence(one))
    if compared and not apart:
        click.echo(words.DATA_EQUAL())


def sentence(one: DataFinding) -> str:
    """'column 0 has NaN or Inf in 2 samples: 3, 17'."""
    said: Text = getattr(words, f"DATA_{one.what.upper()}")
    where = ", ".join(map(str, one.samples))
    return said(column=one.column, left=one.left, right=one.right, samples=where, count=one.count)


def _facts(report: DataReport) -> dict[str, Any]:
    return {
        "promised": report.promised,
        "delivered": report.delivered,
        "seconds": report.seconds,
        "columns": {
            name: {
                "dtypes": dict(column.dtypes),
                "shapes": {"×".join(map(str, shape)): times for shape, times in column.shapes.items()},
                "min": column.low if column.count else None,
                "max": column.high if column.count else None,
                "mean": column.mean,
                "std": column.std,
                "classes": dict(column.classes),
            }
            for name, column in report.columns.items()
        },
        "findings": [asdict(one) for one in report.findings],
    }
