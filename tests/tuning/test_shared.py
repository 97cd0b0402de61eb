"""Several workers share a study: nobody's trial is lost, doubled or taken twice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from misstep.errors import TuneError
from misstep.tuning.storage import shared as sharing
from misstep.tuning.storage.connect import Connection
from misstep.tuning.storage.places import Place, find, place_for, remember, shown
from misstep.tuning.storage.shared import SharedStudy, open_study, this_worker


@pytest.fixture(params=["journal", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    where = tmp_path / "s.journal" if request.param == "journal" else f"sqlite:///{tmp_path / 's.db'}"
    return Place(str(where), "s")


def opened(place: Place) -> SharedStudy:
    connection = Connection(place)
    return SharedStudy(connection, open_study(connection, "s", directions=["minimize"]))


def begin(study: SharedStudy, x: float = 0.5, *, worker: dict[str, Any] | None = None) -> int:
    trial = study.ask(100)
    assert trial is not None
    trial.suggest_float("x", 0, 1)
    if worker is not None:
        trial.set_user_attr("worker", worker)
    return int(trial.number)


def dead_worker() -> dict[str, Any]:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    worker = {**this_worker(), "pid": child.pid, "birth": sharing.birth_of(child.pid)}
    child.kill()
    child.wait()
    return worker


def test_no_more_trials_are_begun_than_wanted(place: Place) -> None:
    study = opened(place)
    assert [study.ask(2) is not None for _ in range(3)] == [True, True, False]


def test_a_trial_of_a_dead_process_is_stale_at_once_and_its_values_are_run_again(place: Place) -> None:
    study = opened(place)
    number = begin(study, worker=dead_worker())
    values = study.trial(number).params
    other = opened(place)
    assert other.sweep(grace=1000) == [0]
    assert other.sweep(grace=1000) == []
    stale, again = other.trials()
    assert (stale.state.name, stale.user_attrs["ended"]) == ("FAIL", "stale")
    assert again.state.name == "WAITING"
    assert other.budget().counted == 1
    trial = other.ask(1)
    assert trial is not None
    assert trial.suggest_float("x", 0, 1) == values["x"]
    assert trial.user_attrs["attempt"] == 2


def test_a_live_trial_of_this_machine_is_never_swept(place: Place) -> None:
    begin(opened(place))
    assert opened(place).sweep(grace=1000) == []


def test_a_silent_trial_of_another_machine_is_stale_after_the_grace(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = opened(place)
    number = begin(study, worker={"host": "elsewhere", "pid": 1, "birth": "x:1"})
    now = [1000.0]
    monkeypatch.setattr(sharing.time, "monotonic", lambda: now[0])
    watcher = opened(place)
    assert watcher.sweep(grace=60) == []
    now[0] += 59
    study.mark(number, beat=1)
    assert watcher.sweep(grace=60) == []
    now[0] += 59
    assert watcher.sweep(grace=60) == []
    now[0] += 2
    assert watcher.sweep(grace=60) == [number]


def test_what_a_killed_sweeper_left_is_queued_by_the_next(place: Place) -> None:
    study = opened(place)
    number = begin(study, worker=dead_worker())
    study.mark(number, ended="stale")
    study.study.tell(number, state=study._states.FAIL)  # and here it was killed
    other = opened(place)
    other.sweep(grace=1000)
    other.sweep(grace=1000)
    assert [trial.state.name for trial in other.trials()] == ["FAIL", "WAITING"]


def test_values_that_kill_their_worker_every_time_are_given_up(place: Place) -> None:
    study = opened(place)
    worker = dead_worker()
    for _ in range(10):
        trial = study.ask(1)
        if trial is None:
            break
        trial.suggest_float("x", 0, 1)
        trial.set_user_attr("worker", worker)
        study.sweep(grace=1000)
    assert len(study.trials()) == 1 + sharing.MOST_STALE


def test_a_result_of_a_trial_that_was_taken_for_stale_is_dropped(place: Place) -> None:
    study = opened(place)
    number = begin(study)
    assert study.tell(number, "FAIL", ended="stale")
    assert study.tell(number, "COMPLETE", [1.0]) is False


def test_a_study_keeps_its_goal(place: Place) -> None:
    opened(place)
    with pytest.raises(TuneError, match="was begun with minimize"):
        open_study(Connection(place), "s", directions=["maximize"])


def test_a_study_in_a_database_is_found_by_its_name_and_its_password_stays_private(tmp_path: Path) -> None:
    url = "postgresql://tuner:secret@db/studies"
    remember(place_for("mlp", url, tmp_path))
    note = tmp_path / "studies" / "mlp.json"
    assert find("mlp", tmp_path) == Place(url, "mlp")
    assert find("mlp.yaml", tmp_path) == Place(url, "mlp")
    assert os.stat(note).st_mode & 0o077 == 0
    assert "secret" not in shown(url)
