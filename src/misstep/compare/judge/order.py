"""The order in which rows are told: by step, then as they ran, a parameter where its module begins, an update last."""

from __future__ import annotations

import math
from collections.abc import Iterable

from misstep.compare.names import owner
from misstep.store.foreign.source import Entry

AT_REST = ("param", "buffer")
_RANK = {"input": 0, "param": 1, "buffer": 1, "output": 2, "loss": 3, "grad_output": 4, "grad_input": 5, "grad": 6}

Place = tuple[int, float, int, int]


def first_places(entries: Iterable[Entry]) -> dict[str, tuple[int, int]]:
    """Where each scope begins to run, as (step, order): its parameters are told there."""
    start: dict[str, tuple[int, int]] = {}
    for entry in entries:
        if entry.role in ("input", "output", "loss"):
            here = (entry.step or 0, entry.order)
            scope = entry.name
            while True:
                if scope not in start or here < start[scope]:
                    start[scope] = here
                if not scope:
                    break
                scope = owner(scope)
    return start


def place_of(entry: Entry, start: dict[str, tuple[int, int]], number: int) -> Place:
    """What rows are sorted by; `number` keeps the order of what stands in one place."""
    step = entry.step or 0
    if entry.updated:
        return step, math.inf, _RANK[entry.role], number
    if entry.role in AT_REST:
        scope = entry.name if entry.name in start else owner(entry.name)
        step, order = start.get(scope, (step, entry.order)) if scope else (step, entry.order)
        return step, order, _RANK[entry.role], number
    return step, entry.order, _RANK[entry.role], number


def moved(pairs: Iterable[tuple[Entry, Entry]]) -> list[tuple[str, str]]:
    """Nodes that run in another order on the right: (node, the one it now comes after), in the left side's order."""
    places: dict[int, list[tuple[int, int, str]]] = {}
    for left, right in pairs:
        if left.role == "output" and left.call == right.call == 1:
            places.setdefault(left.step or 0, []).append((left.order, right.order, left.name))
    if not places:
        return []
    found: list[tuple[str, str]] = []
    furthest, name_there = -1, ""
    for _, theirs, name in sorted(places[min(places)]):
        if theirs < furthest:
            found.append((name_there, name))
        else:
            furthest, name_there = theirs, name
    return found
