"""Expressions: read as Python reads them, never crash, and answer for one row as for many."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.tensors import Tensor, summary_of
from misstep.core.stats import SUMMARY
from misstep.core.watching.columns import NAMES, Columns
from misstep.core.watching.expressions import parse_expression
from misstep.errors import ConditionError

FIELDS = SUMMARY.names or ()


def asked(text: str, values: object, *, before: object = None, step: int = 5) -> bool:
    return bool(parse_expression(text)(Columns.of(Tensor(values, before, step=step)))[0])


@pytest.mark.parametrize(
    ("text", "values", "truth"),
    [
        ("abs_mean > 1e3 and nan == 0", [-2000.0, 2000.0], True),
        ("abs_mean > 1e3 and nan == 0", [2000.0, math.nan], False),
        ("max - min < 1e-6", [1.0, 1.0], True),
        ("max - min < 1e-6", [1.0, 1.1], False),
        ("zeros / count >= 0.99", [0.0, 0.0], True),
        ("zeros / count >= 0.99", [0.0, 1.0], False),
        ("not (l2 < 1) or step > 100", [0.6, 0.9], True),
        ("not (l2 < 1) or step > 100", [0.1], False),
        ("not l2 < 1 and not step > 100", [2.0], True),
        ("nonfinite > 0", [math.inf, 1.0], True),
        ("inf == 2 and pos_inf == 1", [math.inf, -math.inf], True),
        ("isfinite(max)", [math.nan], False),
        ("log10(abs(min)) == 2", [-100.0, 3.0], True),
        ("sqrt(l2 * l2) == 5", [3.0, 4.0], True),
        ("0 < max < 3", [2.0], True),
        ("0 < max < 3", [3.0], False),
        ("-max + 1 == -(max - 1)", [7.0], True),
        ("1 + 2 * 3 == 7", [0.0], True),
        ("(1 + 2) * 3 == 9", [0.0], True),
        ("8 / 4 / 2 == 1", [0.0], True),
        ("10 - 4 - 3 == 3", [0.0], True),
        ("1 == 2 or 1 == 1 and 2 == 2", [0.0], True),
        ("abs_max >= 1_000", [-1000.0, 3.0], True),
        ("zero_percentage == 50", [0.0, 1.0], True),
        ("spread > .5", [0.0, 1.0], True),
    ],
)
def test_an_expression_answers_as_it_reads(text: str, values: list[float], truth: bool) -> None:
    assert asked(text, values) is truth


def test_division_by_zero_and_roots_of_negatives_are_no_error() -> None:
    assert asked("max / min > 1e300", [0.0, 1.0])
    assert not asked("sqrt(min) > 0", [-1.0])
    assert not asked("zeros / count >= 0", np.zeros(0))


def test_a_change_is_asked_of_the_previous_value() -> None:
    text = "previous.mean_abs_change / previous.abs_mean > 0.1"

    assert parse_expression(text).needs == {"stats", "previous"}
    assert asked(text, [1.2], before=[1.0])
    assert not asked(text, [1.05], before=[1.0])
    assert asked("previous.unchanged_percentage == 50 and previous.max_abs_change == 1", [1.0, 3.0], before=[1.0, 2.0])
    assert parse_expression("max > 3").needs == {"stats"}


@pytest.mark.parametrize(
    ("text", "why", "caret"),
    [
        ("", "ends too early", 0),
        ("max >", "ends too early", 5),
        ("maxx > 3", "nothing is called 'maxx'; did you mean max", 0),
        ("mean > 1 and previous.mean > 2", "nothing is called 'previous.mean'; did you mean previous", 13),
        ("max = 3", "'=' is written '=='", 4),
        ("max > 3 && min < 2", "'&&' is written 'and'", 8),
        ("!(max > 3)", "'!' is written 'not'", 0),
        ("max ** 2 > 4", "'**' is not known", 4),
        ("max", "a number, not a question", 0),
        ("max and 3", "'and' needs a comparison", 0),
        ("(max > 3) + 1 > 2", "'+' needs a number", 0),
        ("not max", "'not' needs a comparison", 4),
        ("max > 3 > (min < 2)", "'>' needs a number", 10),
        ("(max > 3", "never closed", 0),
        ("max > 3)", "')' is not expected", 7),
        ("max > 3 min", "'min' is not expected", 8),
        ("max > $", "'$' cannot be read", 6),
        ("abs > 3", "abs is a function", 0),
        ("exp(max) > 3", "no function is called 'exp'", 0),
        ("abs(max, 2) > 3", "',' is not known", 7),
        ("max > 1e999", "larger than any number", 6),
        ("__import__('os')", "cannot be read", 11),
        ("count.__class__ > 1", "nothing is called 'count.__class__'", 0),
        ("max > 3\n", "", -1),
    ],
)
def test_an_error_points_at_the_place(text: str, why: str, caret: int) -> None:
    if caret < 0:
        assert parse_expression(text).text == "max > 3"
        return
    with pytest.raises(ConditionError) as caught:
        parse_expression(text)

    lines = str(caught.value).split("\n")
    assert why in lines[0]
    assert lines[1:] == [f"  {text}", f"  {' ' * caret}^"]


@pytest.mark.parametrize(
    "text", ["(" * 500 + "max", "-" * 500 + "max > 1", "not " * 200 + "max > 1", "max > 1" + " or max > 1" * 90]
)
def test_endless_expressions_are_refused_and_do_not_exhaust_the_stack(text: str) -> None:
    with pytest.raises(ConditionError, match=r"nested more than|more than 300 words"):
        parse_expression(text)


def test_the_longest_allowed_expression_can_be_evaluated() -> None:
    assert asked("0 " + "+ max " * 148 + "> 1", [1.0])


words = st.sampled_from(
    [
        *NAMES,
        "and",
        "or",
        "not",
        "abs",
        "sqrt",
        "isfinite",
        "(",
        ")",
        "<",
        ">=",
        "==",
        "+",
        "-",
        "*",
        "/",
        "1",
        "2.5e3",
        "&",
        "=",
        "é",
        ".",
    ]
)


@given(
    st.one_of(
        st.text(max_size=60), st.lists(words, max_size=15).map(" ".join), st.lists(words, max_size=15).map("".join)
    )
)
@example("1e")
@example("٣ < max")
@settings(max_examples=600, deadline=None)
def test_any_text_is_an_expression_or_a_condition_error(text: str) -> None:
    try:
        expression = parse_expression(text)
    except ConditionError:
        return
    assert expression.rows(summary_of([1.0, 2.0])).shape == (1,)


numbers = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: repr(round(x, 3)))
arithmetic = st.recursive(
    st.one_of(
        numbers.map(lambda text: f"({text})" if text.startswith("-") else text), st.sampled_from(["max", "min", "mean"])
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(" ".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"-{text}"),
        inner.map(lambda text: f"abs({text})"),
    ),
    max_leaves=8,
)
comparisons = st.tuples(arithmetic, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), arithmetic).map(" ".join)
questions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
        inner.map(lambda text: f"not {text}"),
        inner.map(lambda text: f"({text})"),
    ),
    max_leaves=4,
)


@given(questions, st.lists(st.floats(-100, 100).map(lambda x: round(x, 2)), min_size=1, max_size=5))
@settings(max_examples=400, deadline=None)
def test_generated_questions_mean_what_they_mean_in_python(text: str, values: list[float]) -> None:
    array = np.array(values)
    names = {"max": float(array.max()), "min": float(array.min()), "mean": float(array.mean()), "abs": abs}
    try:
        expected = eval(text, {"__builtins__": {}}, names)  # our own generated text: Python is the judge here
    except (ZeroDivisionError, OverflowError):
        assert asked(text, values) in (True, False)
        return
    assert asked(text, values) is bool(expected)


@given(questions, st.lists(st.lists(st.floats(-100, 100), min_size=1, max_size=4), min_size=1, max_size=6))
@settings(max_examples=150, deadline=None)
def test_many_rows_at_once_are_answered_like_one_at_a_time(text: str, tensors: list[list[float]]) -> None:
    expression = parse_expression(text)
    summary = np.concatenate([summary_of(values) for values in tensors])

    assert expression.rows(summary).tolist() == [asked(text, values) for values in tensors]


def test_constants_stand_apart_so_that_thresholds_share_a_skeleton() -> None:
    one, other = parse_expression("max > 1 and nan == 0"), parse_expression("max>2.5  and nan==0")

    assert one.skeleton == other.skeleton
    constants = [np.array([[1.0], [2.5]]), np.array([[0.0], [0.0]])]
    columns = Columns(np.concatenate([summary_of([2.0]), summary_of([3.0])]))
    assert one(columns, constants).tolist() == [[True, True], [False, True]]


def test_every_statistic_can_be_named() -> None:
    for name in NAMES:
        assert name in parse_expression(f"{name} >= 0 or {name} < 0").names
    assert set(FIELDS) <= set(NAMES)
