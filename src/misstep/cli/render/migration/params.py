"""Parameters of one side as a table, of two sides as pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from misstep.cli.render.text import terminal
from misstep.sentences.cli import migration as words
from misstep.sentences.text import Text

if TYPE_CHECKING:
    from misstep.migration.frameworks.base import Param
    from misstep.migration.pairing import Pairing, Unmatched
    from misstep.migration.params import Inventory

FEW = 6


def show_inventory(found: Inventory, *, rows: bool) -> None:
    trainable = found.trainable
    facts = {"label": found.label, "tensors": len(found.weights), "numbers": f"{found.count:,}"}
    if trainable is None:
        click.echo(words.COUNTS_UNKNOWN(**facts))
    else:
        click.echo(words.COUNTS(**facts, trainable=f"{trainable:,}"))
    if found.frozen:
        click.echo("  " + words.FROZEN(names=some([one.name for one in found.frozen])))
    if found.shared:
        pairs = [" = ".join((one.name, *one.shared)) for one in found.shared]
        click.echo("  " + words.SHARED(names=some(pairs)))
    buffers = sum(one.kind == "buffer" for one in found.params)
    if buffers:
        click.echo("  " + words.BUFFERS(count=buffers))
    state = sum(one.kind == "optimizer" for one in found.params)
    if state:
        click.echo("  " + words.OPTIMIZER(count=state))
    if rows:
        _table(found.weights)


def show_pairing(found: Pairing, *, rows: bool) -> None:
    wrong = [one for one in found.matches if not one.fits]
    left = [one for one in found.only_left if not one.expected]
    right = [one for one in found.only_right if not one.expected]
    if found.complete:
        click.echo(words.ALL_PAIRED(count=len(found.matches)))
    else:
        click.echo(
            words.SOME_PAIRED(
                paired=len(found.matches) - len(wrong),
                shapes=len(wrong),
                left=len(left),
                right=len(right),
                a=found.left.label,
                b=found.right.label,
            )
        )
    for one in wrong:
        click.echo(
            "  "
            + words.OTHER_SHAPE(
                left=one.left.name,
                left_shape=shape(one.left.shape),
                right=one.right.name,
                right_shape=shape(one.right.shape),
            )
        )
    _left_over(found.left.label, left)
    _left_over(found.right.label, right)
    expected = [one.param.name for one in (*found.only_left, *found.only_right) if one.expected]
    if expected:
        click.echo("  " + words.NO_COUNTERPART(names=some(expected)))
    _trainable(found)
    if rows:
        _pairs(found)


def show_loading(found: Pairing) -> None:
    """Whether the file on the left would load into the network on the right as it is, and if not, why."""
    from misstep.migration.loading import why_not_loaded

    reasons = why_not_loaded(found.left, found.right)
    facts = {"file": found.left.label, "network": found.right.label}
    if not reasons:
        click.echo(words.LOADS(**facts))
    for one in reasons:
        said: Text = getattr(words, f"NOT_LOADED_{one.why.upper()}")
        click.echo(said(**facts, count=len(one.names), names=some(one.names), old=one.old, new=one.new))


def some(names: Sequence[str]) -> str:
    return ", ".join(names[:FEW]) + (f", … ({len(names)})" if len(names) > FEW else "")


def shape(sizes: tuple[int, ...]) -> str:
    return "×".join(map(str, sizes)) or "scalar"


def _trainable(found: Pairing) -> None:
    one_sided = [
        f"{one.left.name} / {one.right.name}"
        for one in found.matches
        if None not in (one.left.trainable, one.right.trainable) and one.left.trainable != one.right.trainable
    ]
    if one_sided:
        click.echo("  " + words.TRAINABLE_DIFFERS(names=some(one_sided)))


def _left_over(label: str, found: Sequence[Unmatched]) -> None:
    for one in found:
        line = words.ONLY_IN(label=label, name=one.param.name, shape=shape(one.param.shape))
        click.echo("  " + line + (words.NEAREST(name=one.suggestion) if one.suggestion else ""))


def _table(params: Sequence[Param]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("name", "shape", "dtype", "layer", "trainable"):
        table.add_column(title, overflow="fold")
    for one in params:
        moves = "buffer" if one.kind == "buffer" else {True: "yes", False: "no", None: ""}[one.trainable]
        table.add_row(one.name, shape(one.shape), one.dtype, one.layer, moves)
    terminal().print(table)


def _pairs(found: Pairing) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (found.left.label, "shape", found.right.label, "shape", "by", "layout"):
        table.add_column(title, overflow="fold")
    for one in found.matches:
        cells = (one.left.name, shape(one.left.shape), one.right.name, shape(one.right.shape), one.how, one.layout)
        table.add_row(*cells, style="" if one.fits else "bold red")
    terminal().print(table)
