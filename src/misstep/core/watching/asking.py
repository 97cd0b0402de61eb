"""Asking a condition: the measure of each threshold, the comparison, and the marks when it cannot be evaluated.

A tensor with NaN or Inf has no meaningful mean or maximum, and a change needs a previous value. Then the thresholds
are not evaluated and the answer carries marks instead ("nan", "inf", "no_previous"). Only the overflow conditions,
whose question *is* the NaN, are never marked. Everything works on columns: one tensor is a column of one row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from misstep.core.watching.columns import Column, Columns, Evidence, Need, percentage
from misstep.core.watching.conditions import BOUNDS, Condition, Parameter, Relation, checked
from misstep.core.watching.watch import ErrorMark, Reading

Given = Mapping[str, Any]
"""Parameters in force: numbers, or for many watchpoints at once a column of thresholds, one row each."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a condition says about one tensor."""

    hit: bool
    readings: tuple[Reading, ...] = ()
    errors: tuple[ErrorMark, ...] = ()
    """When set the thresholds were not evaluated; the hit reports that."""


def answer(condition: Condition, evidence: Evidence, *, flags: int = 0, **parameters: float | bool) -> Answer:
    """One condition asked of one tensor.

    >>> answer(CONDITIONS["tensor_all_zero"], evidence).readings
    (Reading(parameter='zero_percentage_ge', threshold=100.0, actual=100.0, hit=True),)
    """
    given = checked(condition, parameters)
    columns = Columns.of(evidence, flags=flags)
    if not asked_at(condition.needs, columns.step):
        return Answer(False)
    if condition.check is not None:
        return Answer(bool(condition.check(columns)[0]))
    marks = marks_of(condition, given, columns, 0)
    if marks:
        return Answer(True, errors=marks)
    readings = tuple(
        Reading(parameter.name, given[parameter.name], float(actual[0]), bool(hit[0]))
        for parameter, actual, hit in compare(condition, given, columns)
    )
    return Answer(any(reading.hit for reading in readings), readings)


def asked_at(needs: frozenset[Need], step: int) -> bool:
    """Initial values are asked for before training only; a change cannot be asked for then."""
    return step == 0 if "initial" in needs else not (step == 0 and "previous" in needs)


def compare(condition: Condition, given: Given, columns: Columns) -> list[tuple[Parameter, Column, Column]]:
    """For each threshold in force: the parameter, the actual values, and where they trip it.

    With thresholds of shape (watchpoints, 1) the last has the shape (watchpoints, rows).
    """
    found = []
    for parameter in condition.thresholds:
        if parameter.name in given:
            actual = measured(parameter, given, columns)
            limit = 100.0 if parameter.measure == "unchanged" else given[parameter.name]
            found.append((parameter, actual, _RELATIONS[parameter.relation or "gt"](actual, limit)))
    return found


def measured(parameter: Parameter, given: Given, columns: Columns) -> Column:
    """The number a threshold is compared with; NaN where it does not exist."""
    if parameter.measure == "range_percentage":
        return columns.share_within(given[BOUNDS[0]], given[BOUNDS[1]])
    if parameter.measure == "unchanged":
        tolerance = {"rtol": given["rtol"], "atol": given["atol"]}
        return percentage(columns.change("within", **tolerance), columns.change("count", **tolerance))
    if parameter.measure == "update_ratio":
        with np.errstate(all="ignore"):
            ratio: Column = columns.change("mean_abs") / (columns.change("mean_abs_before") + given["epsilon"])
            return np.where(columns["count"] > 0, ratio, np.nan)
    return columns[parameter.measure]


def missing(condition: Condition, given: Given, columns: Columns) -> tuple[ErrorMark, Column] | None:
    """Which rows lack what the condition needs beyond statistics, and the mark that says so; None for none."""
    if "previous" in condition.needs:
        tolerance = {"rtol": given["rtol"], "atol": given["atol"]} if "rtol" in given else {}
        return "no_previous", ~columns.has_previous(**tolerance)
    if any(parameter.measure == "range_percentage" and parameter.name in given for parameter in condition.thresholds):
        return "no_value", ~columns.has_values(given[BOUNDS[0]], given[BOUNDS[1]])
    return None


def marks_of(condition: Condition, given: Given, columns: Columns, position: int) -> tuple[ErrorMark, ...]:
    """Why the thresholds cannot be evaluated on a row; empty when they can."""
    marks: list[ErrorMark] = []
    if columns["nan"][position]:
        marks.append("nan")
    if columns["inf"][position]:
        marks.append("inf")
    lacking = missing(condition, given, columns)
    if lacking is not None and lacking[1][position]:
        marks.append(lacking[0])
    return tuple(marks)


_RELATIONS: dict[Relation, Callable[[Any, Any], Column]] = {
    "gt": lambda actual, limit: actual > limit,
    "lt": lambda actual, limit: actual < limit,
    "ge": lambda actual, limit: actual >= limit,
}
