"""`misstep check THING`: watchpoints asked of a finished run or of anybody's dump."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from misstep.cli import DIFFERS, FINE
from misstep.cli.command import command as define
from misstep.cli.command import json_option, option
from misstep.cli.render.json import print_json
from misstep.cli.render.text import terminal
from misstep.core.steps import parse_steps
from misstep.sentences.cli import files as filewords
from misstep.sentences.text import said

if TYPE_CHECKING:
    from misstep.compare.offline import Offline


@define(
    "check",
    about=filewords.ABOUT_CHECK,
    examples=(
        "misstep check last",
        "misstep check dumps/rank_0 --watch overflow --watch 'max > 6e4 on *:output'",
        "misstep check last --steps 100:110 --overflows",
    ),
)
@click.argument("thing", default="last")
@option("--watch", multiple=True, metavar="CONDITION", text=filewords.HELP_WATCH)
@option("--steps", default="", metavar="STEPS", text=filewords.HELP_CHECK_STEPS)
@option("--rank", type=int, text=filewords.HELP_ONE_RANK)
@option("--overflows", is_flag=True, text=filewords.HELP_OVERFLOWS)
@option("--most", type=click.IntRange(min=1), default=20, metavar="N", text=filewords.HELP_MOST_HITS)
@json_option
def command(
    thing: str,
    *,
    watch: tuple[str, ...],
    steps: str,
    rank: int | None,
    overflows: bool,
    most: int,
    as_json: bool,
) -> int:
    from misstep.compare.offline import offline

    dump = offline(thing)
    chosen = _chosen(dump, steps)
    hits = dump.check(*watch, steps=chosen, rank=rank)
    table = dump.overflow_table(rank=rank) if overflows else []
    for one in dump.unmatched(*watch):
        told = filewords.NOTHING_WATCHED(watch=one.watch, near=", ".join(one.near), roles=", ".join(one.roles))
        click.echo(f"misstep: {told}", err=True)
    if dump.unread:
        click.echo(f"misstep: {filewords.NOT_READ(count=len(dump.unread), first=dump.unread[0])}", err=True)
    if as_json:
        facts: dict[str, Any] = {"thing": dump.label, "steps": chosen, "hits": hits}
        if overflows:
            facts["overflows"] = [asdict(line) for line in table]
        print_json(facts)
        return DIFFERS if hits else FINE
    tensors = len(dump.tensors(steps=chosen, rank=rank))
    if not hits:
        click.echo(filewords.NOTHING_HIT(tensors=tensors, steps=len(chosen)))
    else:
        click.echo(filewords.HIT_COUNT(hits=len(hits), tensors=tensors, steps=len(chosen)))
        for hit in hits[:most]:
            click.echo(f"  {hit.address}  {hit.condition}: {said(hit.reason)}")
        if len(hits) > most:
            click.echo("  " + filewords.MORE(count=len(hits) - most, all=len(hits)))
    if overflows:
        _print_table([asdict(line) for line in table][:most])
    return DIFFERS if hits else FINE


def _chosen(dump: Offline, steps: str) -> list[int]:
    ranges = parse_steps(steps)
    return [
        step for step in dump.iterations() if ranges is None or any(first <= step <= last for first, last in ranges)
    ]


def _print_table(lines: list[dict[str, Any]]) -> None:
    from rich.table import Table

    if not lines:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, value in lines[0].items():
        table.add_column(name.replace("_", " "), justify="right" if isinstance(value, int) else "left", overflow="fold")
    for line in lines:
        table.add_row(*(str(value) for value in line.values()))
    terminal().print(table)
