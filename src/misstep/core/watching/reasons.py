"""Why a watchpoint hit, for people: '1,204 NaN of 65,536', 'mean of |gradient| is 3.1e-12, below 1e-9'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from misstep.core.stats import TensorStats
from misstep.core.watching.conditions import Condition, Parameter
from misstep.core.watching.watch import ErrorMark, Reading
from misstep.sentences import hits, words
from misstep.sentences.text import Sentence, clauses


def why_overflow(stats: TensorStats) -> Sentence:
    """'1,204 NaN, 3 +Inf of 65,536'."""
    return stats.bad()


def why_marked(marks: Sequence[ErrorMark], stats: TensorStats) -> Sentence:
    """'not evaluated: 12 NaN of 40'."""
    why = [stats.bad()] if "nan" in marks or "inf" in marks else []
    why += [hits.MISSING[mark].of() for mark in marks if mark in hits.MISSING]
    return hits.NOT_EVALUATED.of(why=clauses(why))


def why_threshold(condition: Condition, readings: Sequence[Reading], given: Mapping[str, float | bool]) -> Sentence:
    """One clause for each threshold that tripped."""
    noun = words.NOUNS[condition.category].of()
    tripped = [reading for reading in readings if reading.hit]
    parts = [_clause(condition.parameter(reading.parameter), reading, noun, given) for reading in tripped]
    return parts[0] if len(parts) == 1 else clauses(parts)


def why_expression(text: str, values: Mapping[str, float]) -> str:
    """'abs_mean is 1234, nan is 0: abs_mean > 1e3 and nan == 0'."""
    readings = [hits.READING.of(name=name, value=value) for name, value in values.items()]
    return hits.EXPRESSION.of(readings=readings, text=text) if values else text


def _clause(parameter: Parameter, reading: Reading, noun: Sentence, given: Mapping[str, float | bool]) -> Sentence:
    actual = float("nan") if reading.actual is None else reading.actual
    side, limit = words.SIDES[parameter.relation or "gt"].of(), reading.threshold
    match parameter.measure:
        case "zero_percentage" if actual == 100:
            return hits.ALL_ZERO.of()
        case "zero_percentage":
            return hits.ZEROS.of(actual=actual, side=side, limit=limit)
        case "range_percentage":
            start, end = given["range_start_inclusive"], given["range_end_inclusive"]
            return hits.IN_RANGE.of(actual=actual, start=start, end=end, side=side, limit=limit)
        case "unchanged":
            return hits.UNCHANGED.of(rtol=limit, atol=given["atol"])
        case measure if measure in hits.MEASURES:
            return hits.MEASURES[measure].of(noun=noun, actual=actual, side=side, limit=limit)
    return hits.OTHER.of(parameter=parameter.name, actual=actual, side=side, limit=limit)
