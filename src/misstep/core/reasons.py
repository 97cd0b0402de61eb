"""Why a watchpoint hit, for people: '1,204 NaN of 65,536', 'mean of |gradient| is 3.1e-12, below 1e-9'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from misstep.core.conditions import Condition, Parameter
from misstep.core.stats import TensorStats
from misstep.core.watch import ErrorMark, Reading

_NOUN = {"weight": "weight", "gradient": "gradient", "activation": "output", "tensor": "value"}
_SIDE = {"gt": "above", "lt": "below", "ge": "at least"}
_MISSING: dict[ErrorMark, str] = {
    "no_previous": "there is no previous value yet",
    "out_of_memory": "the previous value did not fit into the memory budget",
    "no_value": "its values are not kept",
}


def why_overflow(stats: TensorStats) -> str:
    """'1,204 NaN, 3 +Inf of 65,536'."""
    kinds = ((stats.nan, "NaN"), (stats.pos_inf, "+Inf"), (stats.neg_inf, "-Inf"))
    return f"{', '.join(f'{number:,} {word}' for number, word in kinds if number)} of {stats.count:,}"


def why_marked(marks: Sequence[ErrorMark], stats: TensorStats) -> str:
    """'not evaluated: 12 NaN of 40'."""
    why = [why_overflow(stats)] if "nan" in marks or "inf" in marks else []
    why += [_MISSING[mark] for mark in marks if mark in _MISSING]
    return f"not evaluated: {'; '.join(why)}"


def why_threshold(condition: Condition, readings: Sequence[Reading], given: Mapping[str, float | bool]) -> str:
    """One clause for each threshold that tripped."""
    noun = _NOUN[condition.category]
    tripped = [reading for reading in readings if reading.hit]
    return "; ".join(_clause(condition.parameter(reading.parameter), reading, noun, given) for reading in tripped)


def why_expression(text: str, values: Mapping[str, float]) -> str:
    """'abs_mean is 1234, nan is 0: abs_mean > 1e3 and nan == 0'."""
    return f"{', '.join(f'{name} is {value:.4g}' for name, value in values.items())}: {text}" if values else text


def _clause(parameter: Parameter, reading: Reading, noun: str, given: Mapping[str, float | bool]) -> str:
    actual = float("nan") if reading.actual is None else reading.actual
    limit = f"{_SIDE[parameter.relation or 'gt']} {reading.threshold:g}"
    match parameter.measure:
        case "abs_mean":
            return f"mean of |{noun}| is {actual:.4g}, {limit}"
        case "mean":
            return f"mean {noun} is {actual:.4g}, {limit}"
        case "max":
            return f"largest {noun} is {actual:.4g}, {limit}"
        case "min":
            return f"smallest {noun} is {actual:.4g}, {limit}"
        case "spread":
            return f"largest minus smallest {noun} is {actual:.4g}, {limit}"
        case "zero_percentage":
            return "all elements are zero" if actual == 100 else f"{actual:.4g}% of the elements are zero, {limit}%"
        case "range_percentage":
            start, end = given["range_start_inclusive"], given["range_end_inclusive"]
            return f"{actual:.4g}% of the elements lie in [{start:g}, {end:g}], {limit}%"
        case "update_ratio":
            return f"mean |change| is {actual:.4g} of mean |{noun}|, {limit}"
        case "unchanged":
            return f"no element changed by more than rtol {reading.threshold:g}, atol {given['atol']:g}"
    return f"{parameter.name}: {actual:.4g}, {limit}"
