"""What is kept of a change is decided by what was measured, never by what was predicted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from misstep.performance.changes import Change, as_environment, as_setting
from misstep.performance.trial import Attempt, Trial, judge

CHANGE = Change(
    "loader", {"num_workers": 3}, {"num_workers": 1}, {"file": "train.py", "line": 7, "code": "DataLoader(data)"}
)


def attempt(ms: float, *, spread: float = 0.05, seed: int = 0, **more: Any) -> Attempt:
    times = np.random.default_rng(seed).normal(ms, spread * ms, 48)
    facts = {"exit_code": 0, "timed_out": False, "carried_out": True} | more
    return Attempt(Path(), facts.pop("times", times), **facts)


def tried(without: list[Attempt], with_it: list[Attempt]) -> Trial:
    return judge(CHANGE, without, with_it, predicted=1.0, steps=60, seconds=60)


def test_what_measures_faster_is_kept_with_its_line() -> None:
    found = tried([attempt(20), attempt(20, seed=1)], [attempt(7, seed=2), attempt(7, seed=3)])
    assert found.kept
    assert found.line == "train.py:7: num_workers=3 in `DataLoader(data)`"


@pytest.mark.parametrize("after", [20.0, 19.9, 30.0])
def test_what_does_not_measure_faster_is_rolled_back_whatever_was_predicted(after: float) -> None:
    found = tried([attempt(20), attempt(20, seed=1)], [attempt(after, seed=2), attempt(after, seed=3)])
    assert not found.kept
    assert found.line is None


def test_a_gain_within_the_spread_of_the_runs_is_no_gain() -> None:
    found = tried([attempt(20), attempt(28, seed=1)], [attempt(21, seed=2), attempt(23, seed=3)])
    assert not found.kept


def test_one_pair_alone_keeps_nothing_below_a_tenth() -> None:
    assert not tried([attempt(20, spread=0.01)], [attempt(18.5, spread=0.01, seed=1)]).kept
    assert tried([attempt(20, spread=0.01)], [attempt(16, spread=0.01, seed=1)]).kept


def test_a_change_that_kills_the_training_is_never_kept() -> None:
    found = tried([attempt(20)], [attempt(5, exit_code=-4)])
    assert not found.kept
    assert "SIGILL" in found.outcome


def test_a_training_that_fails_by_itself_is_not_blamed_on_the_change() -> None:
    found = tried([attempt(20, exit_code=1)], [attempt(5, exit_code=1)])
    assert not found.kept
    assert "without the change as well" in found.outcome


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"carried_out": False}, "found nothing to change"),
        ({"timed_out": True, "exit_code": -15, "times": np.ones(2)}, "did not reach"),
        ({"times": np.ones(3)}, "only 3 steps"),
    ],
)
def test_what_was_not_measured_is_not_decided(facts: dict[str, Any], said: str) -> None:
    found = tried([attempt(20)], [attempt(5, **facts)])
    assert not found.kept
    assert said in found.outcome


def test_a_change_reaches_the_process_as_setting_or_as_variable() -> None:
    assert as_setting([CHANGE]).startswith('{"loaders": [{"at": {"file": "train.py"')
    threads = Change("environment", {"OMP_NUM_THREADS": "1"})
    assert as_setting([threads]) == ""
    assert as_environment([CHANGE, threads]) == {"OMP_NUM_THREADS": "1"}
