"""`misstep migrate check`: two networks through the four stages of a migration."""

from __future__ import annotations

from dataclasses import asdict

import click

from misstep.cli import DIFFERS, FINE
from misstep.cli.command import command as define
from misstep.cli.command import json_option, option
from misstep.cli.render.json import print_json
from misstep.sentences.cli import migration as words


@define(
    "migrate",
    about=words.ABOUT_MIGRATE,
    examples=(
        "misstep migrate check --torch a.py:build --mindspore b.py:build --data batch.npz",
        "misstep migrate check --torch a.py:build --mindspore b.py:build --data batch.npz --all --layers",
    ),
)
@click.argument("verb", type=click.Choice(["check"]))
@option("--torch", "left", required=True, metavar="FILE:FUNCTION", text=words.HELP_TORCH)
@option("--mindspore", "right", required=True, metavar="FILE:FUNCTION", text=words.HELP_MINDSPORE)
@option("--data", required=True, metavar="NPZ", text=words.HELP_BATCH)
@option("--map", "map_file", metavar="FILE", text=words.HELP_MAP)
@option("--all", "go_on", is_flag=True, text=words.HELP_GO_ON)
@option("--layers", is_flag=True, text=words.HELP_LAYERS)
@json_option
def command(
    verb: str, *, left: str, right: str, data: str, map_file: str | None, go_on: bool, layers: bool, as_json: bool
) -> int:
    from misstep.cli.render.migration.check import sentence, show_report
    from misstep.compare.mapfile import read_map
    from misstep.migration.lockstep.stages import check
    from misstep.migration.sources import build, read_batch

    ours, theirs = build(left, "torch"), build(right, "mindspore")
    batch = read_batch(data, labelled=ours.loss is not None)
    report = check(ours, theirs, batch, names=read_map(map_file) if map_file else None, go_on=go_on)
    if as_json:
        stages = [asdict(stage) for stage in report.stages]
        for stage, said in zip(report.stages, stages):
            said["sentences"] = [sentence(one) for one in stage.findings]
        print_json({"same": bool(report), "stages": stages, "layers": [asdict(row) for row in report.layers]})
    else:
        show_report(report, layers=layers)
    return FINE if report else DIFFERS
