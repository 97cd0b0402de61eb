"""What a function of the user's finds outside of itself: values it closes over, and globals it names."""

from __future__ import annotations

from collections.abc import Iterator
from types import CellType
from typing import Any


def closed_over(function: Any) -> Iterator[tuple[str, CellType, Any]]:
    """(name, cell, value) of the variables of outer functions; those not bound yet are left out."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None) or ()
    for name, cell in zip(getattr(code, "co_freevars", ()), cells):
        try:
            yield name, cell, cell.cell_contents
        except ValueError:  # not bound yet
            continue


def named_globals(function: Any) -> Iterator[tuple[str, Any]]:
    """(name, value) of the globals its code names."""
    code, space = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    for name in getattr(code, "co_names", ()):
        if name in space:
            yield name, space[name]


def held_by(function: Any) -> list[Any]:
    """Everything a function finds outside of itself."""
    return [value for _, value in named_globals(function)] + [value for _, _, value in closed_over(function)]
