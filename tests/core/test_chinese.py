"""Every sentence of the English side has a Chinese one."""

from __future__ import annotations

import re

import numpy as np
import pytest

from misstep.capture.replay.samples import Guilty
from misstep.core.watching.conditions import CONDITIONS
from misstep.core.watching.reasons import why_expression, why_marked, why_overflow, why_threshold
from misstep.core.watching.watch import Reading
from misstep.protocol.tiles import statistics
from misstep.sentences.recorded_before import in_chinese

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


EVENTS = (
    "first bad value: step 24, forward, blocks.2",
    "failed, exit code 1",
    "finished",
    "the step was run again (exact): step 24, forward, blocks.2: output has 3 NaN of 2,048; the rest -2.8 … 3.0;"
    " inputs were finite",
    "the step was run again (not exact: the update was run again from what it left, not from the weights before it):"
    " step 4, optimizer, fc: output has 3 NaN of 9; inputs were finite",
    "no capsule of step 2: compiled code cannot be stopped to be given other weights; to look into the step:"
    "  MISSTEP_PYNATIVE=2 misstep run <command>",
    "the step was not run again: the compiled step has moved its weights, and to keep 32 MB of weights before every one"
    " would take 18% of its time; to look into it:  MISSTEP_PYNATIVE=2 misstep run <command>",
    "paused at step 7",
    "the update of step 9 was skipped; loss scale 65536; it overflowed first at fc",
    "12 tensors could not be kept at step 3",
    "looking closely at one step in 8: op level costs 41.2% of a step, the budget is 3.0%",
    "misstep itself failed 2 times (…)",
    "MindSpore had compiled something before misstep could ask for its graphs; there are none",
    "rank 1 is fed the same batch as rank 0: a DistributedSampler or a shard is missing",
    "2 of 8 weights of rank 1 differ from rank 0; they were equal before",
    "the loss of rank 1 is nan, others have 0.7",
)
NAMES = {
    "MISSTEP",
    "PYNATIVE",
    "MB",
    "run",
    "command",
    "op",
    "fc",
    "blocks",
    "output",
    "misstep",
    "MindSpore",
    "DistributedSampler",
    "nan",
}


@pytest.mark.parametrize("line", EVENTS)
def test_a_line_of_the_journal(line: str) -> None:
    assert set(english_in(in_chinese(line))) <= NAMES


def test_a_hit_in_the_journal_keeps_its_names_and_says_why_in_chinese() -> None:
    said = in_chinese("tensor_overflow blocks.2/log:output@24: 3 NaN of 2,048; the rest -2.831 … 3.009")
    assert said == "tensor_overflow blocks.2/log:output@24：2,048 个元素中有 3 个 NaN；其余 -2.831 … 3.009"


def test_a_quoted_line_of_code_is_left_alone() -> None:
    said = in_chinese("inputs were finite; train.py:3 `y = log(x); z = y`")
    assert said == "输入都是有限值；train.py:3 `y = log(x); z = y`"
