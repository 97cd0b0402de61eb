"""How `misstep show model.ckpt` looks: a line for each weight, the suspicious ones first named."""

from __future__ import annotations

from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from misstep.cli import DIFFERS, FINE
from misstep.cli.render.json import print_json
from misstep.cli.render.text import terminal

if TYPE_CHECKING:
    from misstep.compare.checkpoints import Weight


def show_checkpoint(path: str, *, as_json: bool, check: bool, most: int, pattern: str | None) -> int:
    """What a checkpoint of either framework holds; with `check` exit code 3 when a weight is suspicious."""
    from rich.table import Table

    from misstep.compare.checkpoints import inspect

    found = inspect(path)
    weights = [one for one in found.weights if pattern is None or fnmatchcase(one.name, pattern)]
    if as_json:
        print_json({**asdict(found), "weights": [asdict(one) for one in weights], "summary": found.summary()})
    else:
        click.echo(found.summary())
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("name", "shape", "dtype", "section", "trainable", "values", "state"):
            table.add_column(title, overflow="fold")
        for one in sorted(weights, key=lambda one: one not in found.suspicious)[:most]:
            table.add_row(*_line(one), style="bold red" if one in found.suspicious else "")
        terminal().print(table)
        if len(weights) > most:
            click.echo(f"… {len(weights) - most} more; --most {len(weights)} shows all")
    return DIFFERS if check and not found else FINE


def _line(one: Weight) -> tuple[str, ...]:
    trainable = {True: "yes", False: "no", None: ""}[one.trainable]
    shape = "×".join(map(str, one.shape)) or "scalar"
    dtype = f"{one.dtype} × {one.quantized[0]:.4g} − {one.quantized[1]}" if one.quantized else one.dtype
    return one.name, shape, dtype, one.section, trainable, one.stats.describe(), one.state
