"""Each of the seventeen conditions hits and does not hit, at the boundary."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from core.tensors import Tensor
from misstep.core.stats import ALIAS, INPUTS_BAD, INPUTS_SEEN
from misstep.core.watching.asking import Answer, answer
from misstep.core.watching.conditions import ALIASES, CONDITIONS, checked, condition_named
from misstep.core.watching.watch import Reading
from misstep.errors import ConditionError

NAN, INF = math.nan, math.inf

LARGE = [
    ({"abs_mean_gt": 2.0}, [-2.1, 2.1], [-2.0, 2.0]),
    ({"max_gt": 3.0}, [0.0, 3.001], [0.0, 3.0]),
    ({"min_gt": -1.0}, [-0.9, 5.0], [-1.0, 5.0]),
    ({"mean_gt": 1.0}, [0.0, 2.1], [0.0, 2.0]),
]
SMALL = [
    ({"abs_mean_lt": 2.0}, [-1.9, 1.9], [-2.0, 2.0]),
    ({"max_lt": 3.0}, [0.0, 2.999], [0.0, 3.0]),
    ({"min_lt": -1.0}, [-1.1, 5.0], [-1.0, 5.0]),
    ({"mean_lt": 1.0}, [0.0, 1.9], [0.0, 2.0]),
]
RANGE = [
    ({"range_start_inclusive": 0, "range_end_inclusive": 1, "range_percentage_lt": 50}, [0, 2, 3], [0.0, 1.0, 2, -1]),
    ({"range_start_inclusive": 0, "range_end_inclusive": 1, "range_percentage_gt": 50}, [0, 1, 3], [0.0, 1.0, 2, -1]),
    ({"max_min_lt": 2.0}, [1.0, 2.9], [1.0, 3.0]),
    ({"max_min_gt": 2.0}, [1.0, 3.1], [1.0, 3.0]),
]
ZERO = [
    ({}, [0.0, 0.0], [0.0, 1e-30]),
    ({"zero_percentage_ge": 50}, [0.0, 1.0], [0.0, 1.0, 1.0]),
]
OVERFLOW = [({}, [1.0, NAN], [1.0, 2.0]), ({}, [INF], [3e38]), ({}, [-INF, 0], [0.0])]
UNCHANGED = [
    ({}, ([1.0, 2.0], [1.0, 2.0]), ([1.0, 2.001], [1.0, 2.0])),
    # |now - before| <= atol + rtol * |before|, of every element: 0.5 is on the boundary.
    ({"rtol": 0.25, "atol": 0.0}, ([2.5, 1.0], [2.0, 1.0]), ([2.5001, 1.0], [2.0, 1.0])),
    # The tolerance follows the previous value: rtol alone forgives nothing at zero.
    ({"rtol": 0.5, "atol": 0.0}, ([0.0], [0.0]), ([1e-30], [0.0])),
]
CHANGE_LARGE = [
    ({}, ([1.2, 1.2], [1.0, 1.0]), ([1.05, 1.05], [1.0, 1.0])),
    ({"abs_mean_update_ratio_gt": 0.5, "epsilon": 0.0}, ([3.1], [2.0]), ([3.0], [2.0])),
]
CHANGE_SMALL = [
    ({}, ([1.00001], [1.0]), ([1.01], [1.0])),
    ({"abs_mean_update_ratio_lt": 0.5, "epsilon": 0.0}, ([2.9], [2.0]), ([3.0], [2.0])),
]
CASES: dict[str, list[tuple[dict[str, Any], Any, Any]]] = {
    "weight_overflow": OVERFLOW,
    "weight_too_large": LARGE,
    "weight_too_small": SMALL,
    "weight_not_changed": UNCHANGED,
    "weight_change_too_large": CHANGE_LARGE,
    "weight_change_too_small": CHANGE_SMALL,
    "gradient_vanishing": SMALL,
    "gradient_too_large": LARGE,
    "gradient_exploding": OVERFLOW,
    "tensor_overflow": OVERFLOW,
    "tensor_too_large": LARGE,
    "tensor_too_small": SMALL,
    "tensor_all_zero": ZERO,
    "activation_range": RANGE,
    "tensor_range": RANGE,
}
FLAT = [(name, *case) for name, cases in CASES.items() for case in cases]


def tensor(values: Any, *, step: int = 5) -> Tensor:
    return Tensor(*values, step=step) if isinstance(values, tuple) else Tensor(values, step=step)


@pytest.mark.parametrize(("name", "parameters", "bad", "good"), FLAT)
def test_a_condition_hits_beyond_its_threshold_and_not_at_it(
    name: str, parameters: dict[str, Any], bad: Any, good: Any
) -> None:
    condition = CONDITIONS[name]

    assert answer(condition, tensor(bad), **parameters).hit
    assert answer(condition, tensor(good), **parameters).hit is False


INITIAL = [
    ({}, [0.0, 0.0], [0.0, 0.1]),
    ({"zero_percentage_ge": 50}, [0.0, 1.0], [0.0, 1.0, 1.0]),
    ({"max_gt": 1.0}, [1.1], [1.0]),
    ({"min_lt": -1.0}, [-1.1], [-1.0]),
]


@pytest.mark.parametrize(("parameters", "bad", "good"), INITIAL)
def test_weight_initialization_is_asked_before_the_first_step_only(parameters: Any, bad: Any, good: Any) -> None:
    condition = CONDITIONS["weight_initialization"]

    assert answer(condition, tensor(bad, step=0), **parameters).hit
    assert answer(condition, tensor(good, step=0), **parameters).hit is False
    assert answer(condition, tensor(bad, step=1), **parameters) == Answer(False)


def test_operator_overflow_needs_finite_inputs_that_were_seen() -> None:
    condition, bad = CONDITIONS["operator_overflow"], Tensor([1.0, INF])

    assert answer(condition, bad, flags=INPUTS_SEEN).hit
    assert not answer(condition, Tensor([1.0]), flags=INPUTS_SEEN).hit
    assert not answer(condition, bad, flags=INPUTS_SEEN | INPUTS_BAD).hit
    assert not answer(condition, bad, flags=INPUTS_SEEN | ALIAS).hit
    assert not answer(condition, bad, flags=0).hit


def test_every_condition_has_a_test_of_its_own() -> None:
    assert {*CASES, "weight_initialization", "operator_overflow"} == set(CONDITIONS)
    assert len(CONDITIONS) == 17


def test_several_thresholds_hit_when_any_of_them_does_and_each_is_read() -> None:
    found = answer(CONDITIONS["tensor_too_large"], Tensor([1.0, 3.0]), max_gt=2.0, mean_gt=5.0)

    assert found == Answer(True, (Reading("max_gt", 2.0, 3.0, True), Reading("mean_gt", 5.0, 2.0, False)))


def test_a_set_threshold_switches_the_usual_one_off() -> None:
    zeros = Tensor([0.0], step=0)

    assert answer(CONDITIONS["weight_initialization"], zeros).hit
    assert not answer(CONDITIONS["weight_initialization"], zeros, max_gt=1.0).hit


NOT_OVERFLOW = sorted(name for name, condition in CONDITIONS.items() if not condition.overflow)


@pytest.mark.parametrize("name", NOT_OVERFLOW)
def test_bad_values_are_marked_and_nothing_is_evaluated(name: str) -> None:
    condition = CONDITIONS[name]
    step = 0 if "initial" in condition.needs else 5
    parameters = CASES.get(name, INITIAL)[0][0]
    before = [1.0, 1.0, 1.0]

    def marks(values: list[float]) -> Answer:
        return answer(condition, Tensor(values, before, step=step), **parameters)

    assert marks([1.0, 2.0, NAN]) == Answer(True, errors=("nan",))
    assert marks([1.0, -INF, 2.0]) == Answer(True, errors=("inf",))
    assert marks([NAN, INF, 2.0]) == Answer(True, errors=("nan", "inf"))


@pytest.mark.parametrize("name", ["weight_not_changed", "weight_change_too_large", "weight_change_too_small"])
def test_a_change_without_a_previous_value_is_marked(name: str) -> None:
    assert answer(CONDITIONS[name], Tensor([1.0])) == Answer(True, errors=("no_previous",))
    assert answer(CONDITIONS[name], Tensor([NAN])) == Answer(True, errors=("nan", "no_previous"))


def test_a_change_is_not_asked_for_before_training() -> None:
    assert answer(CONDITIONS["weight_not_changed"], Tensor([1.0], step=0)) == Answer(False)


def test_a_range_over_values_that_are_gone_is_marked_but_a_spread_is_known() -> None:
    gone = Tensor([1.0, 9.0], kept=False)
    bounds = {"range_start_inclusive": 0, "range_end_inclusive": 1}

    assert answer(CONDITIONS["tensor_range"], gone, **bounds, range_percentage_lt=10).errors == ("no_value",)
    assert answer(CONDITIONS["tensor_range"], gone, max_min_gt=7).readings == (Reading("max_min_gt", 7.0, 8.0, True),)


@pytest.mark.parametrize("name", NOT_OVERFLOW)
def test_an_empty_tensor_trips_nothing(name: str) -> None:
    condition = CONDITIONS[name]
    step = 0 if "initial" in condition.needs else 5
    empty = Tensor(np.zeros(0), np.zeros(0), step=step)

    assert not answer(condition, empty, **CASES.get(name, INITIAL)[0][0]).hit


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("tensor_all_zero", {"zero_percentage_ge": 100.5}, "between 0 and 100"),
        ("tensor_all_zero", {"zero_percentage_ge": -1}, "between 0 and 100"),
        ("tensor_range", {"range_percentage_lt": 5}, "needs range_start_inclusive and range_end_inclusive"),
        ("tensor_range", {"range_start_inclusive": 0, "range_percentage_lt": 5}, "needs range_end_inclusive too"),
        (
            "activation_range",
            {"range_start_inclusive": 2, "range_end_inclusive": 1, "range_percentage_gt": 5},
            "starts at 2, above its end 1",
        ),
        ("activation_range", {"range_start_inclusive": 0, "range_end_inclusive": 1}, "needs a threshold"),
        ("tensor_range", {"max_min_lt": 0}, "above 0"),
        ("tensor_range", {"max_min_gt": -1}, "0 or more"),
        ("weight_too_large", {"abs_mean_gt": -0.1}, "0 or more"),
        ("gradient_vanishing", {"abs_mean_lt": -1}, "0 or more"),
        ("weight_too_large", {"max_gt": INF}, "finite"),
        ("weight_too_large", {"max_gt": NAN}, "finite"),
        ("weight_too_large", {"max_gt": "3"}, "no number"),
        ("weight_too_large", {"max_gt": True}, "no number"),
        ("weight_too_large", {}, "needs a threshold: one or more of abs_mean_gt, max_gt, min_gt, mean_gt"),
        ("weight_too_large", {"max_lt": 1}, "did you mean max_gt"),
        ("weight_not_changed", {"equal_nan": 1}, "true or false"),
        ("weight_not_changed", {"rtol": -1}, "0 or more"),
        ("tensor_overflow", {"max_gt": 1}, "it takes none"),
    ],
)
def test_parameters_that_do_not_fit_are_explained(name: str, parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(ConditionError, match=words):
        checked(CONDITIONS[name], parameters)


def test_boundaries_of_parameters_are_allowed() -> None:
    assert checked(CONDITIONS["tensor_all_zero"], {"zero_percentage_ge": 0}) == {"zero_percentage_ge": 0.0}
    assert checked(CONDITIONS["tensor_range"], {"max_min_gt": 0}) == {"max_min_gt": 0.0}
    assert checked(CONDITIONS["gradient_too_large"], {"abs_mean_gt": 0, "min_gt": -5, "max_gt": None}) == {
        "abs_mean_gt": 0.0,
        "min_gt": -5.0,
    }


def test_usual_parameters_are_those_of_the_table() -> None:
    usual = {name: checked(CONDITIONS[name], {}) for name in CONDITIONS if not _needs_a_threshold(name)}

    assert {name: parameters for name, parameters in usual.items() if parameters} == {
        "weight_initialization": {"zero_percentage_ge": 100.0},
        "weight_not_changed": {"rtol": 1e-5, "atol": 1e-8, "equal_nan": False},
        "weight_change_too_large": {"abs_mean_update_ratio_gt": 0.1, "epsilon": 1e-9},
        "weight_change_too_small": {"abs_mean_update_ratio_lt": 1e-4, "epsilon": 1e-9},
        "tensor_all_zero": {"zero_percentage_ge": 100.0},
    }


def test_conditions_answer_to_short_names_and_abbreviations() -> None:
    assert condition_named("overflow").name == "tensor_overflow"
    assert condition_named("GV").name == condition_named("gradient-vanishing").name == "gradient_vanishing"
    assert {ALIASES[c.abbreviation.lower()] for c in CONDITIONS.values()} == set(CONDITIONS)
    with pytest.raises(ConditionError, match=r"no condition is called 'overfow'; did you mean overflow"):
        condition_named("overfow")


@pytest.mark.parametrize("name", CONDITIONS)
def test_every_condition_is_summarised_in_english_and_chinese(name: str) -> None:
    condition = CONDITIONS[name]

    assert condition.summary.endswith(".")
    assert condition.summary_zh.endswith("。")
    assert any("\u4e00" <= letter <= "\u9fff" for letter in condition.summary_zh)


def test_overflow_is_an_error_and_a_threshold_a_warning() -> None:
    assert {name for name, condition in CONDITIONS.items() if condition.severity == "error"} == {
        "weight_overflow",
        "gradient_exploding",
        "tensor_overflow",
        "operator_overflow",
    }


def _needs_a_threshold(name: str) -> bool:
    thresholds = CONDITIONS[name].thresholds
    return bool(thresholds) and all(parameter.default is None for parameter in thresholds)
