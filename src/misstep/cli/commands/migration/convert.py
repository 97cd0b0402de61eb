"""`misstep convert SRC DST`: a checkpoint of one framework as the other reads it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from misstep.cli import DIFFERS, FINE
from misstep.cli.command import command as define
from misstep.cli.command import json_option, option
from misstep.cli.render.json import print_json
from misstep.sentences.cli import migration as words

if TYPE_CHECKING:
    from misstep.migration.convert import Plan


@define(
    "convert",
    about=words.ABOUT_CONVERT,
    examples=(
        "misstep convert resnet.pth resnet.ckpt",
        "misstep convert resnet.pth resnet.ckpt --like mindspore_net.py:build --dry-run",
        "misstep convert model.ckpt model.safetensors --rename 'backbone.*=*' --dtype float16",
    ),
)
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@option("--like", metavar="FILE:FUNCTION", text=words.HELP_LIKE)
@option("--of", metavar="FILE:FUNCTION", text=words.HELP_OF)
@option("--data", metavar="NPZ", text=words.HELP_DATA_ORDER)
@option("--map", "map_file", metavar="FILE", text=words.HELP_MAP)
@option("--drop", multiple=True, metavar="PATTERN", text=words.HELP_DROP)
@option("--rename", multiple=True, metavar="OLD=NEW", text=words.HELP_RENAME)
@option("--dtype", default="", metavar="TYPE", text=words.HELP_DTYPE)
@option("--dry-run", is_flag=True, text=words.HELP_DRY_RUN)
@json_option
def command(
    source: str,
    target: str,
    *,
    like: str | None,
    of: str | None,
    data: str | None,
    map_file: str | None,
    drop: tuple[str, ...],
    rename: tuple[str, ...],
    dtype: str,
    dry_run: bool,
    as_json: bool,
) -> int:
    from misstep.compare.mapfile import read_map
    from misstep.migration.convert import convert, plan

    names = read_map(map_file) if map_file else None
    planned = plan(source, target, like=like, of=of, data=data, names=names, drop=drop, rename=rename, dtype=dtype)
    if not dry_run:
        convert(planned)
    if as_json:
        print_json({**asdict(planned), "written": not dry_run})
    else:
        _show(planned, dry_run=dry_run)
    return DIFFERS if planned.missing else FINE


def _show(planned: Plan, *, dry_run: bool) -> None:
    from misstep.cli.render.migration.params import some

    if dry_run:
        for move in planned.moves:
            click.echo(f"  {move.source} → {move.target}" + (f"  ({move.layout})" if move.layout else ""))
    said = words.WOULD_CONVERT if dry_run else words.CONVERTED
    renamed = sum(move.source != move.target for move in planned.moves)
    turned = sum(bool(move.layout) for move in planned.moves)
    click.echo(said(path=planned.target, count=len(planned.moves), renamed=renamed, turned=turned))
    if planned.dropped:
        click.echo("  " + words.LEFT_OUT(names=some(planned.dropped)))
    if planned.missing:
        click.echo("  " + words.MISSING(names=some(planned.missing)))
    if planned.uncertain:
        click.echo("  " + words.UNCERTAIN(names=some([move.source for move in planned.uncertain])))
