"""Maximize maximizes and minimize minimizes, for every kind of parameter; and conditions hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from misstep.tuning import Tuner
from misstep.tuning.storage.table import Table, TrialRow, differing
from misstep.tuning.studyfile.study import exists

SPACE: dict[str, dict[str, Any]] = {
    "rate": {"low": 1e-5, "high": 1.0, "log": True},
    "share": {"low": 0.0, "high": 1.0},
    "layers": {"low": 1, "high": 12},
    "kind": {"choice": ["a", "b", "c"]},
    "extra": {"low": 0.0, "high": 1.0, "when": 'kind == "b"'},
}


def distance(params: dict[str, Any]) -> float:
    """0 at rate 1e-2, share 0.7, layers 9, kind b, extra 0.3, and larger everywhere else."""
    import math

    away = (math.log10(params["rate"]) + 2) ** 2 / 4 + (params["share"] - 0.7) ** 2 + (params["layers"] - 9) ** 2 / 50
    return away + ((params["extra"] - 0.3) ** 2 if params["kind"] == "b" else 1.0)


@pytest.mark.parametrize("tuner", ["tpe", "random"])
@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_the_goal_is_the_direction_of_the_search(goal: str, tuner: str, tmp_path: Path) -> None:
    sign = -1.0 if goal == "maximize" else 1.0
    with Tuner("s", SPACE, goal=goal, tuner=tuner, seed=3, base=str(tmp_path)) as tuning:
        for trial in tuning.trials(80):
            trial.tell(sign * distance(trial.params))
        best = tuning.result.best
        worst = max(distance(one.params) for one in tuning.result.trials)
    assert best.params["kind"] == "b"
    assert distance(best.params) == min(distance(one.params) for one in tuning.result.trials)
    assert distance(best.params) < (0.08 if tuner == "tpe" else 0.5) < worst


@pytest.mark.parametrize("name", sorted(SPACE))
def test_each_kind_of_parameter_is_searched_towards_its_optimum(name: str, tmp_path: Path) -> None:
    """With the others at their best, so that only this one decides."""
    at_best: dict[str, Any] = {"rate": 1e-2, "share": 0.7, "layers": 9, "kind": "b", "extra": 0.3}
    space = {name: {key: value for key, value in SPACE[name].items() if key != "when"}}
    with Tuner("s", space, goal="maximize", seed=1, base=str(tmp_path)) as tuning:
        for trial in tuning.trials(30):
            trial.tell(-distance({**at_best, **trial.params}))
        assert distance({**at_best, **tuning.result.best.params}) < 0.01


def test_a_parameter_exists_only_when_its_condition_holds(tmp_path: Path) -> None:
    with Tuner("s", SPACE, seed=0, base=str(tmp_path)) as tuning:
        for trial in tuning.trials(20):
            assert ("extra" in trial.params) == (trial.params["kind"] == "b")
            trial.tell(0.0)
        assert not exists(tuning.study.parameters[4], {})


def test_a_trial_without_a_word_has_failed(tmp_path: Path) -> None:
    with Tuner("s", SPACE, base=str(tmp_path)) as tuning:
        assert len(list(tuning.trials(2))) == 2
        assert [row.state for row in tuning.result.trials] == ["failed", "failed"]


def test_of_several_targets_those_are_best_that_no_other_beats() -> None:
    rows = [TrialRow(at, "complete", values) for at, values in enumerate([[1.0, 1.0], [2.0, 3.0], [0.5, 0.5]])]
    table = Table("s", ["minimize", "maximize"], {}, rows)
    assert {row.number for row in table.best()} == {0, 1, 2}
    rows[0].values = [2.0, 2.0]
    assert {row.number for row in table.best()} == {1, 2}


def test_what_differs_between_trials_is_what_is_not_the_same_in_all() -> None:
    rows = [TrialRow(0, "complete", None, {"a": 1, "b": 2}), TrialRow(1, "complete", None, {"a": 1, "b": 3})]
    assert differing(rows, ["a", "b"]) == {"b": [2, 3]}
