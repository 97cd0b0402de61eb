"""`misstep diff LEFT RIGHT`: where two things that should be equal first differ."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from misstep.cli.command import command as define
from misstep.cli.command import json_option, option
from misstep.cli.render.json import print_json
from misstep.cli.render.text import terminal
from misstep.sentences import losses as losswords
from misstep.sentences.cli import files as filewords

if TYPE_CHECKING:
    from misstep.compare.loss_causes import LossCause
    from misstep.compare.loss_logs import LossCurve
    from misstep.compare.losses import LossComparison
    from misstep.compare.result import Comparison

DIFFERS = 3


@define(
    "diff",
    about=filewords.ABOUT_DIFF,
    examples=(
        "misstep diff missteps/torch missteps/mindspore",
        "misstep diff run-a@120 run-b@120 --map names.toml",
        "misstep diff model.ckpt model.pth",
        "misstep diff train.log runs/exp1 --losses --right-tag train/loss",
    ),
)
@click.argument("left")
@click.argument("right")
@option("--step", type=int, text=filewords.HELP_STEP)
@option("--right-step", type=int, text=filewords.HELP_RIGHT_STEP)
@option("--rank", type=int, text=filewords.HELP_RANK)
@option("--right-rank", type=int, text=filewords.HELP_RIGHT_RANK)
@option("--map", "names", metavar="FILE", text=filewords.HELP_MAP)
@option("--write-map", metavar="FILE", text=filewords.HELP_WRITE_MAP)
@option("--losses", is_flag=True, text=filewords.HELP_LOSSES)
@option("--tag", default="loss", metavar="WORD", text=filewords.HELP_TAG)
@option("--right-tag", metavar="WORD", text=filewords.HELP_RIGHT_TAG)
@option("--all", "every", is_flag=True, text=filewords.HELP_ALL)
@json_option
def command(
    *,
    left: str,
    right: str,
    step: int | None,
    right_step: int | None,
    rank: int | None,
    right_rank: int | None,
    names: str | None,
    write_map: str | None,
    losses: bool,
    tag: str,
    right_tag: str | None,
    every: bool,
    as_json: bool,
) -> int:
    if losses:
        return _losses(left, right, tags=(tag, right_tag or tag), as_json=as_json)
    from misstep.compare.layers import diff
    from misstep.compare.report import as_json as plain
    from misstep.compare.report import render

    found = diff(left, right, step=step, right_step=right_step, rank=rank, right_rank=right_rank, names=names)
    if write_map:
        _write_map(write_map, found)
    if as_json:
        print_json(plain(found))
    else:
        terminal().print(render(found, every=every))
    return 0 if found else DIFFERS


def _write_map(where: str, found: Comparison) -> None:
    """Node by node: a name brings everything below it, so slots and roles need no line of their own."""
    from misstep.compare.mapfile import write_map

    pairs = [(row.left.name, row.right.name) for row in found.rows if row.left is not None and row.right is not None]
    write_map(
        where,
        dict(pairs).items(),
        only_left=[entry.name for entry in found.only_left],
        only_right=[entry.name for entry in found.only_right],
    )
    click.echo(filewords.WROTE(path=where), err=True)


def _losses(left: str, right: str, *, tags: tuple[str, str], as_json: bool) -> int:
    from misstep.compare.losses import compare_losses

    found = compare_losses(_curve(left, tags[0]), _curve(right, tags[1]))
    named = _causes(left, right, found)
    if as_json:
        print_json({**asdict(found), "causes": [asdict(one) for one in named]})
    else:
        click.echo(found.summary())
        for one in named:
            where = {"left": left, "right": right} if one.kind == "forward" else {}
            click.echo("  " + losswords.CAUSES[one.kind](**{**asdict(one), **where}))
    return 0 if found else DIFFERS


def _causes(left: str, right: str, found: LossComparison) -> list[LossCause]:
    """Only runs of ours say more than their losses."""
    from misstep.compare.loss_causes import Side, causes
    from misstep.compare.setups import plain_settings
    from misstep.store.foreign.mindspore.summary import looks_like_summary
    from misstep.store.reading.reader import open_run

    sides = []
    for given in (left, right):
        path = Path(given)
        if path.is_file() or looks_like_summary(path):
            return []
        run = open_run(given)
        settings: dict[str, str] = {}
        for node in run.graph().nodes:
            if node.name.startswith("optimizer"):
                settings |= plain_settings(node.settings)
        sides.append(Side(run.steps(), settings))
    return causes(sides[0], sides[1], found)


def _curve(given: str, tag: str) -> LossCurve:
    """The losses of a run, a log file, event files or a summary folder."""
    from misstep.compare.loss_logs import LossCurve, read_curve
    from misstep.store.foreign.mindspore.summary import looks_like_summary
    from misstep.store.reading.reader import open_run

    path = Path(given)
    if path.is_file() or looks_like_summary(path):
        return read_curve(given, tag=tag)
    return LossCurve({step.number: step.loss for step in open_run(given).steps() if step.loss is not None})
