"""Every sentence of the English side has a Chinese one."""

from __future__ import annotations

import re

import numpy as np
import pytest

from misstep.capture.samples import Guilty
from misstep.core.chinese import in_chinese
from misstep.core.conditions import CONDITIONS
from misstep.core.reasons import why_expression, why_marked, why_overflow, why_threshold
from misstep.core.tiles import statistics
from misstep.core.watch import Reading

GIVEN = {"range_start_inclusive": -1.0, "range_end_inclusive": 1.0, "atol": 1e-8}
BAD = statistics(np.array([1.0, np.nan, np.inf, -np.inf, -3.0], np.float32))
THRESHOLDS = [
    (condition.name, parameter.name)
    for condition in CONDITIONS.values()
    for parameter in condition.parameters
    if parameter.measure and parameter.relation is not None
]


def english_in(text: str) -> list[str]:
    return [word for word in re.findall(r"[A-Za-z]{2,}", text) if word not in ("NaN", "Inf", "rtol", "atol")]


@pytest.mark.parametrize(("name", "parameter"), THRESHOLDS)
@pytest.mark.parametrize("actual", [12.5, 3.1e-12])
def test_why_a_threshold_tripped(name: str, parameter: str, actual: float) -> None:
    said = why_threshold(CONDITIONS[name], [Reading(parameter, 1e-9, actual, hit=True)], GIVEN)
    assert english_in(said)
    assert english_in(in_chinese(said)) == []


def test_what_is_in_a_tensor() -> None:
    assert in_chinese(BAD.describe()) == "5 个元素中有 1 个 NaN、1 个 +Inf、1 个 -Inf；其余 -3 … 1"
    assert in_chinese(statistics(np.array([1.0, 3.0], np.float32)).describe()) == "1 … 3，均值 2"
    assert english_in(in_chinese(why_overflow(BAD))) == []
    assert english_in(in_chinese(why_marked(["nan", "no_previous"], BAD))) == []
    assert english_in(in_chinese(why_marked(["out_of_memory", "no_value"], BAD))) == []


@pytest.mark.parametrize("complete", [True, False])
def test_which_samples_cause_it(complete: bool) -> None:
    told = Guilty((17, 20), of=64, runs=9, complete=complete)
    assert english_in(in_chinese(told.sentence())) == []
    assert english_in(in_chinese(told.sentence(list(range(100, 164))))) == []
    assert "cats/17.png" in in_chinese(told.sentence(list(range(64)), [f"cats/{one}.png" for one in range(64)]))
    assert english_in(in_chinese(Guilty((3,), of=8, runs=5).sentence())) == []


def test_an_expression_keeps_its_own_words() -> None:
    said = why_expression("abs_mean > 1e3 and nan == 0", {"abs_mean": 1234.0, "nan": 0.0})
    assert in_chinese(said) == "abs_mean 为 1234，nan 为 0：abs_mean > 1e3 and nan == 0"


def test_an_unknown_sentence_stays_as_it_is() -> None:
    assert in_chinese("weights of rank 1 differ") == "weights of rank 1 differ"
