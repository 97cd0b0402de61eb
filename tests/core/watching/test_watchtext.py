"""Watchpoints as people write them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from misstep.core.address import Pattern
from misstep.core.watching.conditions import CONDITIONS
from misstep.core.watching.recommend import recommended
from misstep.core.watching.watch import Watchpoint
from misstep.core.watching.watchtext import describe, parse_watch, watchpoint
from misstep.errors import AddressError, ConditionError, MisstepError


def test_a_short_name_is_a_whole_watchpoint() -> None:
    assert parse_watch("overflow") == Watchpoint(id=0, condition="tensor_overflow")


def test_a_condition_has_parameters_places_an_action_and_a_limit() -> None:
    assert parse_watch("gradient_vanishing(abs_mean_lt=1e-9) on encoder.*:grad then pause") == Watchpoint(
        id=0,
        condition="gradient_vanishing",
        parameters={"abs_mean_lt": 1e-9},
        on=(Pattern.parse("encoder.*:grad"),),
        then="pause",
    )
    assert parse_watch("max > 6e4 on *:output then dump limit 5") == Watchpoint(
        id=0, condition="max > 6e4", on=(Pattern.parse("*:output"),), then="dump", limit=5
    )


def test_text_and_call_make_the_same_watchpoint() -> None:
    text = "activation_range(range_start_inclusive=-1, range_end_inclusive=0, range_percentage_gt=99.9%)"

    assert parse_watch(f"{text} of ReLU,ReLUV2 on enc.*, dec.* but *.head limit 3 then stop") == watchpoint(
        "activation_range",
        range_start_inclusive=-1,
        range_end_inclusive=0,
        range_percentage_gt=99.9,
        types=("ReLU", "ReLUV2"),
        on=["enc.*", Pattern.parse("dec.*")],
        but="*.head",
        limit=3,
        then="stop",
    )


@pytest.mark.parametrize(
    ("text", "condition", "parameters"),
    [
        ("nan", "nan > 0", {}),
        ("inf", "inf > 0", {}),
        ("vanishing", "gradient_vanishing", {"abs_mean_lt": 1e-9}),
        ("vanishing(max_lt=1)", "gradient_vanishing", {"max_lt": 1.0}),
        ("GE", "gradient_exploding", {}),
        ("all-zero", "tensor_all_zero", {"zero_percentage_ge": 100.0}),
        ("overflow()", "tensor_overflow", {}),
        ("unchanged(equal_nan=true)", "weight_not_changed", {"rtol": 1e-5, "atol": 1e-8, "equal_nan": True}),
        ("abs(mean) > log10(max)", "abs(mean) > log10(max)", {}),
        ("isfinite(max)", "isfinite(max)", {}),
        ("(max > 3)", "(max > 3)", {}),
    ],
)
def test_names_and_expressions_are_told_apart(text: str, condition: str, parameters: dict[str, Any]) -> None:
    watch = parse_watch(text)

    assert (watch.condition, watch.parameters) == (condition, parameters)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "needs a condition"),
        ("overfow", "did you mean overflow"),
        ("overfow(max_gt=1)", "no condition is called 'overfow'"),
        ("too_large", "needs a threshold"),
        ("too_large(max_gt)", "write name=value"),
        ("too_large(max_gt=big)", "'big' in .* is no number"),
        ("too_large(max_tg=1)", "did you mean max_gt"),
        ("overflow then explode", "cannot 'explode'; it can note, pause, dump, stop"),
        ("overflow then", "nothing follows 'then'"),
        ("overflow limit many", "'many', not a number"),
        ("overflow limit 0", "1 or more"),
        ("overflow on a on b", "said twice"),
        ("max > on a", "ends too early"),
        ("weight_overflow on *:grad", r"weight_overflow looks at param, so '\*:grad' names nothing"),
    ],
)
def test_what_cannot_be_read_is_explained(text: str, words: str) -> None:
    with pytest.raises(ConditionError, match=words):
        parse_watch(text)


def test_a_wrong_pattern_is_an_address_error() -> None:
    with pytest.raises(AddressError, match="unknown role 'outptu'"):
        parse_watch("overflow on a:outptu")


def test_an_expression_takes_no_parameters() -> None:
    with pytest.raises(ConditionError, match="takes no parameters; max_gt was given"):
        watchpoint("max > 3", max_gt=4)


def test_a_described_watchpoint_can_be_read_again() -> None:
    for watch in (*recommended(), parse_watch("max > 6e4 on *:output but a.*~2@3:5#1 then dump limit 5")):
        again = parse_watch(describe(watch))
        assert (again.condition, again.parameters, again.on, again.but, again.types, again.then, again.limit) == (
            watch.condition,
            watch.parameters,
            watch.on,
            watch.but,
            watch.types,
            watch.then,
            watch.limit,
        )
    assert describe(parse_watch("unchanged")) == "weight_not_changed(rtol=1e-05)"


words = st.sampled_from(
    [*CONDITIONS, "on", "then", "limit", "of", "but", "pause", "3", "a.*:grad", "(", ")", "max", ">", "=", ",", "%"]
)


@given(st.one_of(st.text(max_size=40), st.lists(words, max_size=8).map(" ".join)))
@settings(max_examples=400, deadline=None)
def test_any_text_is_a_watchpoint_or_an_explained_error(text: str) -> None:
    try:
        watch = parse_watch(text)
    except MisstepError:
        return
    assert parse_watch(describe(watch)).condition == watch.condition
