"""`misstep params A [B]`: what a network or checkpoint holds, and which parameter of one is which of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from misstep.cli import DIFFERS, FINE
from misstep.cli.command import command as define
from misstep.cli.command import json_option, option
from misstep.cli.render.json import print_json
from misstep.sentences.cli import files as filewords
from misstep.sentences.cli import migration as words

if TYPE_CHECKING:
    from misstep.migration.frameworks.base import Param
    from misstep.migration.pairing import Pairing
    from misstep.migration.params import Inventory


@define(
    "params",
    about=words.ABOUT_PARAMS,
    examples=(
        "misstep params model.py:build",
        "misstep params resnet.pth resnet.ckpt --values",
        "misstep params torch_net.py:build mindspore_net.py:build --data batch.npz",
    ),
)
@click.argument("a")
@click.argument("b", required=False)
@option("--values", is_flag=True, text=words.HELP_VALUES)
@option("--data", metavar="NPZ", text=words.HELP_DATA_ORDER)
@option("--map", "map_file", metavar="FILE", text=words.HELP_MAP)
@option("--write-map", metavar="FILE", text=words.HELP_WRITE_MAP)
@option("--all", "every", is_flag=True, text=words.HELP_ALL)
@json_option
def command(
    a: str,
    *,
    b: str | None,
    values: bool,
    data: str | None,
    map_file: str | None,
    write_map: str | None,
    every: bool,
    as_json: bool,
) -> int:
    from misstep.cli.render.migration.params import show_inventory, show_loading, show_pairing
    from misstep.compare.mapfile import read_map
    from misstep.compare.mapfile import write_map as write
    from misstep.migration.pairing import pair
    from misstep.migration.params import execution_order, read_inventory
    from misstep.migration.sources import names_a_source

    left = read_inventory(a)
    if b is None:
        print_json(_facts(left)) if as_json else show_inventory(left, rows=True)
        return FINE
    order = (execution_order(a, data), execution_order(b, data)) if data is not None else None
    names = read_map(map_file) if map_file else None
    found = pair(left, read_inventory(b), values=values, names=names, order=order)
    if as_json:
        print_json(_pairs(found))
    else:
        show_inventory(found.left, rows=False)
        show_inventory(found.right, rows=False)
        show_pairing(found, rows=every)
        if names_a_source(b) and not names_a_source(a):
            show_loading(found)
    if write_map:
        pairs = [(one.left.name, one.right.name) for one in found.matches]
        alone = ([one.param.name for one in side] for side in (found.only_left, found.only_right))
        write(write_map, pairs, only_left=next(alone), only_right=next(alone))
        click.echo(filewords.WROTE(path=write_map), err=as_json)
    return FINE if found.complete else DIFFERS


def _facts(found: Inventory) -> dict[str, Any]:
    return {
        "label": found.label,
        "framework": found.framework,
        "numbers": found.count,
        "trainable": found.trainable,
        "params": [_param(one) for one in found.params],
    }


def _param(one: Param) -> dict[str, Any]:
    return {
        "name": one.name,
        "shape": one.shape,
        "dtype": one.dtype,
        "kind": one.kind,
        "trainable": one.trainable,
        "layer": one.layer,
        "shared": one.shared,
    }


def _pairs(found: Pairing) -> dict[str, Any]:
    return {
        "left": _facts(found.left),
        "right": _facts(found.right),
        "complete": found.complete,
        "pairs": [
            {"left": one.left.name, "right": one.right.name, "how": one.how, "layout": one.layout, "fits": one.fits}
            for one in found.matches
        ],
        **{
            side: [{"name": one.param.name, "expected": one.expected, "suggestion": one.suggestion} for one in alone]
            for side, alone in (("only_left", found.only_left), ("only_right", found.only_right))
        },
    }
