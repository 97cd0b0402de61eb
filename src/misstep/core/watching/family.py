"""Watchpoints that ask the same thing with other thresholds, evaluated as one.

A family shares a condition, the parameters that are set and everything the measure depends on (a range, a tolerance);
or the skeleton of an expression. Its thresholds stand in a column, one row per watchpoint, against the statistics in
a row: numpy compares them all at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from misstep.core.stats import TensorStats
from misstep.core.watching.asking import compare, marks_of, missing
from misstep.core.watching.columns import Column, Columns, Need
from misstep.core.watching.conditions import CONDITIONS, Condition, Parameter, checked
from misstep.core.watching.expressions import NONFINITE_NAMES, Expression, parse_expression
from misstep.core.watching.reasons import why_expression, why_marked, why_overflow, why_threshold
from misstep.core.watching.selection import Selection, TensorTable, Truths
from misstep.core.watching.watch import ErrorMark, Reading, Severity, Watchpoint

_REMEMBERED = 8
"""Sets of rows a family remembers its watchpoints' tensors for: a step has one, or a few when it is asked in parts."""


class Member:
    """A watchpoint, ready to be asked: its question parsed, its tensors chosen, its hits counted."""

    def __init__(self, watch: Watchpoint, *, selections: dict[Any, Selection] | None = None) -> None:
        self.watch = watch
        self.condition: Condition | None = CONDITIONS.get(watch.condition)
        self.expression: Expression | None = None
        self.given: dict[str, float | bool] = {}
        if self.condition is None:
            self.expression = parse_expression(watch.condition)
        else:
            self.given = checked(self.condition, watch.parameters)
        category = "tensor" if self.condition is None else self.condition.category
        # Watchpoints on the same tensors share the work of finding them.
        place = (category, watch.on, watch.but, watch.types, watch.nodes)
        known = {} if selections is None else selections
        self.selection = known.setdefault(place, Selection(watch, category))
        self.hits = 0
        self.told: Truths = np.zeros(0, dtype=bool)
        """Tensors of which was said already that nothing can be said."""

    @property
    def awake(self) -> bool:
        return self.watch.enabled and (self.watch.limit is None or self.hits < self.watch.limit)

    @property
    def needs(self) -> frozenset[Need]:
        if self.expression is not None:
            return self.expression.needs
        return self.condition.needs if self.condition is not None else frozenset()

    @property
    def range(self) -> tuple[float, float] | None:
        """Where elements are counted; None when only the spread is asked for."""
        if not any(name.startswith("range_percentage") for name in self.given):
            return None
        return float(self.given["range_start_inclusive"]), float(self.given["range_end_inclusive"])

    @property
    def family_key(self) -> tuple[Any, ...]:
        if self.expression is not None:
            return ("expression", self.expression.skeleton)
        free, fixed = self.free, self.given.items()
        return (self.watch.condition, free, tuple(sorted(item for item in fixed if item[0] not in free)))

    @property
    def free(self) -> tuple[str, ...]:
        """Thresholds that only meet the measure in a comparison. A tolerance enters the measure itself."""
        thresholds = () if self.condition is None else self.condition.thresholds
        return tuple(p.name for p in thresholds if p.name in self.given and p.measure != "unchanged")


@dataclass(frozen=True, slots=True)
class Asked:
    """The answers of a family for the rows it looks at."""

    family: Family
    columns: Columns
    """Only the rows looked at; `columns.rows` are their positions in the step."""
    truth: Truths
    """(watchpoints × rows): a hit, or marked."""
    marked: Truths
    """(rows): the question could not be evaluated."""
    compared: Sequence[tuple[Parameter, Column, Column]] = ()

    def readings(self, number: int, position: int) -> tuple[Reading, ...]:
        """The thresholds of a watchpoint against a row; none when the row is marked."""
        if self.marked[position]:
            return ()
        member = self.family.members[number]
        if member.expression is not None:
            return self._compared_terms(member.expression, position)
        return tuple(
            Reading(
                parameter.name,
                member.given[parameter.name],
                float(actual[position]),
                bool(np.broadcast_to(hit, self.truth.shape)[number, position]),
            )
            for parameter, actual, hit in self.compared
        )

    def marks(self, number: int, position: int) -> tuple[ErrorMark, ...]:
        if not self.marked[position]:
            return ()
        member = self.family.members[number]
        if member.condition is None:
            return ("no_previous",)
        return marks_of(member.condition, member.given, self.columns, position)

    def reason(
        self, number: int, readings: Sequence[Reading], marks: Sequence[ErrorMark], position: int, stats: TensorStats
    ) -> str:
        member = self.family.members[number]
        if marks:
            return why_marked(marks, stats)
        if member.expression is not None:
            return why_expression(member.expression.text, self.values(number, position))
        if member.condition is None or member.condition.overflow:
            return why_overflow(stats)
        return why_threshold(member.condition, readings, member.given)

    def severity(self, number: int, marks: Sequence[ErrorMark], stats: TensorStats) -> Severity:
        member = self.family.members[number]
        if marks:
            return "info" if stats.finite else "warning"
        if member.condition is not None:
            return member.condition.severity
        asks_for_bad = member.expression is not None and not NONFINITE_NAMES.isdisjoint(member.expression.names)
        return "error" if asks_for_bad and not stats.finite else "warning"

    def values(self, number: int, position: int) -> dict[str, float]:
        """What an expression mentions, with its value on a row."""
        expression = self.family.members[number].expression
        return {} if expression is None else {name: float(self.columns[name][position]) for name in expression.names}

    def _compared_terms(self, expression: Expression, position: int) -> tuple[Reading, ...]:
        def at(value: Any) -> float:
            return float(np.broadcast_to(value, (len(self.columns),))[position])

        with np.errstate(all="ignore"):
            return tuple(
                Reading(
                    f"{term.left} {term.relation}",
                    at(term.right_value(self.columns, expression.constants)),
                    at(term.left_value(self.columns, expression.constants)),
                    bool(at(term.truth(self.columns, expression.constants))),
                )
                for term in expression.comparisons
            )


class Family:
    """Watchpoints with the same `family_key`."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = tuple(members)
        first = members[0]
        self.condition, self.expression, self.needs = first.condition, first.expression, first.needs
        self.overflow = self.condition is not None and self.condition.overflow
        self._given: Mapping[str, Any] = {
            name: np.array([[member.given[name]] for member in members]) if name in first.free else value
            for name, value in first.given.items()
        }
        self._loosest: dict[str, Any] = dict(first.given)
        if self.condition is not None:
            free = [parameter for parameter in self.condition.thresholds if parameter.name in first.free]
            self._loosest |= {parameter.name: _loosest(parameter, members) for parameter in free}
        self._constants: tuple[Column, ...] = ()
        if self.expression is not None:
            several = [member.expression.constants for member in members if member.expression is not None]
            self._constants = tuple(np.array(column)[:, None] for column in zip(*several))
        self._timed = [member for member in members if member.selection.timed]
        self._looked_at: dict[Any, tuple[Column, Truths]] = {}

    def looks_at(
        self, tensors: Column, key: bytes, table: TensorTable, *, step: int, rank: int
    ) -> tuple[Column, Truths]:
        """The rows anybody here looks at, and (watchpoints × those rows) who does."""
        active = tuple(member.selection.active(step, rank) for member in self._timed)
        known = (key, len(table), active)
        if known not in self._looked_at:
            if len(self._looked_at) >= _REMEMBERED:
                self._looked_at.clear()
            who = np.stack([member.selection.truths(table, step=step, rank=rank)[tensors] for member in self.members])
            rows = np.flatnonzero(who.any(axis=0))
            self._looked_at[known] = rows, who[:, rows]
        return self._looked_at[known]

    def ask(self, columns: Columns, rows: Column, who: Truths) -> Asked | None:
        """The answers; None when nobody hits, which is the usual case and must be quick."""
        if not len(rows):
            return None
        if self.overflow and columns.all_finite:
            return None
        part = columns if len(rows) == len(columns) else columns.take(rows)
        marked = self._unanswerable(part)
        compared: Sequence[tuple[Parameter, Column, Column]] = ()
        if self.expression is not None:
            truth = self.expression(part, self._constants)
        elif self.condition is None or self.condition.check is not None:
            truth = self.condition.check(part) if self.condition and self.condition.check else marked
        else:
            if not marked.any() and not any(hit.any() for _, _, hit in compare(self.condition, self._loosest, part)):
                return None
            compared = compare(self.condition, self._given, part)
            truth = np.logical_or.reduce([np.broadcast_to(hit, who.shape) for _, _, hit in compared])
        truth = (truth | marked) & who
        return Asked(self, part, truth, marked, compared) if truth.any() else None

    def _unanswerable(self, part: Columns) -> Truths:
        """Rows with bad values or without what the question needs."""
        marked: Truths = np.zeros(len(part), dtype=bool)
        if self.overflow:
            return marked
        if self.condition is None:
            return ~part.has_previous() if "previous" in self.needs else marked
        lacking = missing(self.condition, self._given, part)
        if not part.all_finite:
            marked = part["nonfinite"] > 0
        return marked if lacking is None else marked | lacking[1]


def _loosest(parameter: Parameter, members: Sequence[Member]) -> float:
    """The threshold of the family that trips first: when it does not, none does."""
    values = [float(member.given[parameter.name]) for member in members]
    return max(values) if parameter.relation == "lt" else min(values)
