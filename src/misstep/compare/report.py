"""A comparison for the terminal (a table that opens at the first difference) and for programs (JSON).

JSON never contains bare NaN or Infinity: they are the strings "NaN", "Infinity", "-Infinity".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from misstep.compare.result import Comparison, Row
from misstep.compare.sentences import describe, summary_of

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLOURS = {
    "identical": "dim",
    "noise": "green",
    "different": "red",
    "shape": "magenta",
    "dtype": "yellow",
    "missing": "cyan",
}
_BEFORE, _AFTER = 3, 12
"""Rows shown around the first difference."""


def render(found: Comparison, *, every: bool = False) -> RenderableType:
    """The story, then the rows around the first difference; with `every` all of them."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    for title, where in (
        ("", "left"),
        ("step", "right"),
        ("tensor", "left"),
        ("verdict", "left"),
        ("relative", "right"),
        ("expected ≤", "right"),
        ("max abs", "right"),
        ("cosine", "right"),
        ("matched by", "left"),
        ("note", "left"),
    ):
        table.add_column(title, justify=where, overflow="fold")  # type: ignore[arg-type]
    shown, hidden = _window(found, every=every)
    for row in shown:
        colour = _COLOURS[row.verdict]
        mark = {"cause": "►", "consequence": "·"}.get(row.part, "")
        table.add_row(
            mark,
            "" if row.entry.step is None else str(row.entry.step),
            row.name,
            *_numbers(row),
            row.how,
            row.note,
            style="bold red" if row.part == "cause" else colour,
        )
    parts: list[Any] = [Text(summary_of(found)), Text("")]
    if shown:
        parts.append(table)
    if hidden:
        parts.append(Text(f"… {hidden} more rows; --all shows every one", style="dim"))
    return Group(*parts)


def as_json(found: Comparison) -> dict[str, Any]:
    """Everything a comparison knows, in plain values."""
    said = {
        "left": found.left,
        "right": found.right,
        "close": bool(found),
        "summary": summary_of(found),
        "counts": found.counts,
        "dtypes": list(found.dtypes) if found.dtypes is not None else None,
        "facts": list(found.facts),
        "settings": [asdict(one) for one in found.settings],
        "first_difference": row_as_json(found.first_difference),
        "cause": row_as_json(found.cause),
        "rows": [row_as_json(row) for row in found.rows],
        "only_left": [str(entry) for entry in found.only_left],
        "only_right": [str(entry) for entry in found.only_right],
        "notes": list(found.notes),
        "seconds": found.seconds,
    }
    plain = sayable(said)
    assert isinstance(plain, dict)
    return plain


def row_as_json(row: Row | None) -> dict[str, Any] | None:
    """One row in plain values; None stays None."""
    if row is None:
        return None
    entry = row.entry
    said: dict[str, Any] = {
        "name": row.name,
        "left": str(row.left) if row.left is not None else None,
        "right": str(row.right) if row.right is not None else None,
        "role": entry.role,
        "type": entry.node_type,
        "shape": [list(one.shape) if one is not None else None for one in (row.left, row.right)],
        "dtype": [one.dtype if one is not None else None for one in (row.left, row.right)],
        "step": entry.step,
        "order": entry.order,
        "source": entry.source_line,
        "verdict": row.verdict,
        "part": row.part,
        "matched_by": row.how,
        "layout": row.layout,
        "note": row.note,
        "said": describe(row),
        "expected": row.expected,
    }
    if row.measures is not None:
        index = row.measures.first_index(entry.shape)
        said |= asdict(row.measures) | {
            "relative": row.relative,
            "first_index": list(index) if index is not None else None,
        }
    plain = sayable(said)
    assert isinstance(plain, dict)
    return plain


def sayable(thing: Any) -> Any:
    """The same value with every NaN and infinity as a word, ready for any JSON writer."""
    if isinstance(thing, float):
        if math.isnan(thing):
            return "NaN"
        return thing if math.isfinite(thing) else "Infinity" if thing > 0 else "-Infinity"
    if isinstance(thing, Mapping):
        return {str(key): sayable(value) for key, value in thing.items()}
    if isinstance(thing, str | bytes) or not isinstance(thing, Sequence):
        return thing
    return [sayable(value) for value in thing]


def _window(found: Comparison, *, every: bool) -> tuple[Sequence[Row], int]:
    rows = found.rows
    if every or len(rows) <= _BEFORE + _AFTER + 5:
        return rows, 0
    first = next((at for at, row in enumerate(rows) if not row.close), None)
    if first is None:
        return (), len(rows)
    start = max(0, first - _BEFORE)
    shown = rows[start : first + _AFTER]
    return shown, len(rows) - len(shown)


def _numbers(row: Row) -> tuple[str, str, str, str, str]:
    if row.measures is None:
        return row.verdict, "", "", "", ""
    found = row.measures
    return (
        row.verdict,
        _eyes(found.relative),
        _eyes(row.expected),
        _eyes(found.max_abs),
        "" if math.isnan(found.cosine) else f"{found.cosine:.6f}",
    )


def _eyes(number: float) -> str:
    return "0" if number == 0 else f"{number:.2e}"
