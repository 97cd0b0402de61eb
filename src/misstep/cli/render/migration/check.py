"""A check of two networks: a line for each stage, a sentence for each difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from misstep.cli.render.text import number, terminal
from misstep.sentences.cli import migration as words

if TYPE_CHECKING:
    from misstep.migration.lockstep.findings import Finding, LayerRow
    from misstep.migration.lockstep.stages import Report

STAGES = {
    "parameters": words.STAGE_PARAMETERS,
    "model": words.STAGE_MODEL,
    "inference": words.STAGE_INFERENCE,
    "training": words.STAGE_TRAINING,
}
_SENTENCES = {
    "output": words.FOUND_OUTPUT,
    "gradient": words.FOUND_GRADIENT,
    "statistics": words.FOUND_STATISTICS,
    "between": words.FOUND_BETWEEN,
    "after": words.FOUND_AFTER,
    "shape": words.FOUND_SHAPE,
    "loss": words.FOUND_LOSS,
    "update": words.FOUND_UPDATE,
    "broken": words.FOUND_BROKEN,
}


def show_report(report: Report, *, layers: bool) -> None:
    for stage in report.stages:
        status = words.STAGE_FAILED() if stage.status == "failed" else words.STAGE_PASSED()
        click.echo(words.STAGE_LINE(stage=STAGES[stage.name](), status=status, checked=stage.checked))
        for one in stage.findings:
            click.echo("  " + sentence(one))
        if stage.note == "optimizer":
            click.echo("  " + words.NO_OPTIMIZER())
    if report:
        click.echo(words.ALL_SAME())
    if layers:
        _table(report.layers)


def sentence(one: Finding) -> str:
    """'ln: LayerNorm epsilon is 1e-07 here by default, 1e-05 there; 0.18 apart; pass epsilon=1e-05'."""
    apart = words.APART(number=number(one.apart, digits=2)) if one.apart is not None else ""
    facts = {
        "layer": one.layer,
        "kind": one.kind,
        "parameter": one.parameter,
        "left": one.left,
        "right": one.right,
        "apart": apart,
        "fix": one.fix,
    }
    if one.what == "argument" and not one.fix:
        return words.FOUND_TRAINED(**facts)
    if one.what == "argument":
        return (words.FOUND_DEFAULT if one.default else words.FOUND_ARGUMENT)(**facts)
    if one.what == "unpaired":
        return _unpaired(one)
    if one.what == "gradient" and one.mode == "whole":
        return words.FOUND_WHOLE_GRADIENT(**facts)
    return _SENTENCES[one.what](**facts)


def _unpaired(one: Finding) -> str:
    if not one.left:
        return words.FOUND_NOT_RUN(layer=one.layer, kind=one.kind)
    fix = words.FIX_PASS(fix=one.fix) if "=" in one.fix else words.NEAREST(name=one.fix) if one.fix else ""
    return (words.FOUND_ONLY_TORCH if one.left == "left" else words.FOUND_ONLY_MINDSPORE)(layer=one.layer, fix=fix)


def _table(rows: list[LayerRow]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("PyTorch", "MindSpore", "layer", "mode", "apart", "allowed", "gradient"):
        table.add_column(title, overflow="fold")
    for row in rows:
        figures = (number(row.relative, digits=2), number(row.allowed, digits=2), number(row.gradient, digits=2))
        table.add_row(row.left, row.right, row.kind, row.mode, *figures, style="" if row.close else "bold red")
    terminal().print(table)
