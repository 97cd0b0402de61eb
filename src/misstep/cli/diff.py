"""`misstep diff LEFT RIGHT`: where two things that should be equal first differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from misstep.cli import filewords
from misstep.cli.command import command as define
from misstep.cli.command import json_option, option
from misstep.cli.json import print_json
from misstep.cli.render import terminal

if TYPE_CHECKING:
    from misstep.compare.result import Comparison

DIFFERS = 3


@define(
    "diff",
    about=filewords.ABOUT_DIFF,
    examples=(
        "misstep diff missteps/torch missteps/mindspore",
        "misstep diff run-a@120 run-b@120 --map names.toml",
        "misstep diff model.ckpt model.pth",
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
    every: bool,
    as_json: bool,
) -> int:
    if losses:
        return _losses(left, right, tag=tag, as_json=as_json)
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


def _losses(left: str, right: str, *, tag: str, as_json: bool) -> int:
    from misstep.compare.losses import compare_losses

    found = compare_losses(_curve(left, tag), _curve(right, tag))
    if as_json:
        print_json(found)
    else:
        click.echo(found.summary())
    return 0 if found else DIFFERS


def _curve(given: str, tag: str) -> dict[int, float]:
    """The losses of a run; a file is taken for a training log."""
    from misstep.compare.losses import read_loss_log
    from misstep.store.reader import open_run

    if Path(given).is_file():
        return read_loss_log(given, tag=tag)
    return {step.number: step.loss for step in open_run(given).steps() if step.loss is not None}
