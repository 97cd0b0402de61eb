"""`misstep diff LEFT RIGHT`: where two things that should be equal first differ."""

from __future__ import annotations

import click

from misstep.cli import filewords
from misstep.cli.command import command as define
from misstep.cli.command import json_option, option
from misstep.cli.json import print_json
from misstep.cli.render import terminal

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
@option("--map", "names", metavar="FILE", text=filewords.HELP_MAP)
@option("--losses", is_flag=True, text=filewords.HELP_LOSSES)
@option("--all", "every", is_flag=True, text=filewords.HELP_ALL)
@json_option
def command(
    *,
    left: str,
    right: str,
    step: int | None,
    right_step: int | None,
    names: str | None,
    losses: bool,
    every: bool,
    as_json: bool,
) -> int:
    if losses:
        return _losses(left, right, as_json=as_json)
    from misstep.compare.layers import diff
    from misstep.compare.report import as_json as plain
    from misstep.compare.report import render

    found = diff(left, right, step=step, right_step=right_step, names=names)
    if as_json:
        print_json(plain(found))
    else:
        terminal().print(render(found, every=every))
    return 0 if found else DIFFERS


def _losses(left: str, right: str, *, as_json: bool) -> int:
    from misstep.compare.losses import compare_losses

    found = compare_losses(_curve(left), _curve(right))
    if as_json:
        print_json(found)
    else:
        click.echo(found.summary())
    return 0 if found else DIFFERS


def _curve(given: str) -> dict[int, float] | str:
    """The losses of a run; anything else is taken for a training log."""
    from misstep.errors import RunNotFound
    from misstep.store.reader import open_run

    try:
        run = open_run(given)
    except RunNotFound:
        return given
    return {step.number: step.loss for step in run.steps() if step.loss is not None}
