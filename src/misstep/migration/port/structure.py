"""What is not a call: a network's class and its forward, types and functions that are handed around by name."""

from __future__ import annotations

import ast
from collections.abc import Callable

from misstep.diagnosis.lint.source import Source
from misstep.migration.apimap.table import Table
from misstep.migration.scan.conventions import VALUES
from misstep.migration.scan.page import Page
from misstep.migration.scan.reading import Reading
from misstep.migration.scan.writing import Spell

Mark = Callable[[ast.AST, str, str, str], None]
"""Leave a node to a human: (node, name, reason, detail)."""


def edit_names(source: Source, reading: Reading, page: Page, spell: Spell, table: Table, mark: Mark) -> None:
    """Names of PyTorch that are used without being called: bases, types, functions as values."""
    for node, kind in reading.kinds.items():
        if kind.what != "name" or not kind.name.startswith("torch.") or not isinstance(node, ast.Name | ast.Attribute):
            continue
        parent = source.parents.get(node)
        if isinstance(parent, ast.Attribute):
            continue  # the longer name says what it is
        if isinstance(parent, ast.Call) and parent.func is node:
            continue
        target = _target(kind.name, table, tested=_is_tested(source, node))
        if target is None:
            mark(node, kind.name, "as_value", "")
        else:
            page.change(*page.span(node), spell(target) if target.startswith("mindspore.") else target)


def _target(name: str, table: Table, *, tested: bool) -> str | None:
    if name in VALUES:
        return VALUES[name]
    entry = table.entries.get(name)
    if entry is None or not entry.ways:
        return None
    best = entry.ways[0].rewrite
    plain = best.verbatim or set(best.names) <= set(best.order)
    return (
        best.target
        if best.target and ((plain and not best.add and not best.turn and not best.fill) or tested)
        else None
    )


def _is_tested(source: Source, node: ast.AST) -> bool:
    """`isinstance(layer, nn.Conv2d)`: what matters is the class, not how it is constructed."""
    for one in source.ancestors(node):
        if isinstance(one, ast.Call):
            return isinstance(one.func, ast.Name) and one.func.id in ("isinstance", "issubclass")
        if isinstance(one, ast.stmt):
            return False
    return False


def edit_classes(source: Source, reading: Reading, page: Page) -> None:
    """`forward` is `construct`, where it is defined and where it is called by name."""
    for network in source.networks.values():
        method = network.methods.get("forward")
        if method is not None:
            start = page.data.index(b"forward", page.lines[method.lineno - 1] + method.col_offset)
            page.change(start, start + len("forward"), "construct")
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "forward":
            base = reading.kind(node.value)
            if base.what in ("layer", "network") or base.name in ("self", "super"):
                end = page.span(node)[1]
                page.change(end - len("forward"), end, "construct")
