"""A storage that fails at its n-th call, for every n: the study comes out the same, whoever was at work.

A call fails before it did anything, or after: the server has it, the answer is lost. Then the worker that made it goes
on (the connection broke) or is never heard of again (kill -9), and another comes. Nothing here depends on timing.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest
from test_shared import dead_worker

from misstep.tuning import worker as working
from misstep.tuning.storage import connect, shared
from misstep.tuning.storage.connect import Connection
from misstep.tuning.storage.places import Place
from misstep.tuning.storage.shared import SharedStudy, open_study
from misstep.tuning.studyfile import parse_study
from misstep.tuning.trial.run import Outcome
from misstep.tuning.worker import Worker

WANTED = 3
START = ({"x": 0.5},)


class Killed(BaseException):
    """The process is no more."""


class Faulty:
    """A storage whose n-th call fails; after a kill all calls do, for there is nobody left to make them."""

    def __init__(self, inner: Any, at: int, *, when: str, kill: bool) -> None:
        self._inner, self._at, self._when, self._kill = inner, at, when, kill
        self.calls = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls == self._at or (self._kill and self.calls > self._at):
                if self._when == "after" and self.calls == self._at:
                    getattr(self._inner, name)(*args, **kwargs)
                raise Killed if self._kill else ConnectionResetError(errno.ECONNRESET, "the server is gone")
            return getattr(self._inner, name)(*args, **kwargs)

        return call


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing to wait for: the storage is back when it is called again."""
    monkeypatch.setattr(connect, "FIRST_WAIT", 0.0)


@pytest.fixture(params=["journal", "memory"])
def reached(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[int], Connection]:
    """A connection to the n-th storage: a journal, or Optuna's own in memory, whose rules are those of a database."""
    memories: dict[int, Any] = {}

    def reach(at: int) -> Connection:
        connection = Connection(Place(str(tmp_path / f"{at}.journal"), "s"), patience=60)
        if request.param == "memory":
            memories.setdefault(at, optuna.storages.InMemoryStorage())
            connection.storage._inner = memories[at]
            connection.place = replace(connection.place, storage="sqlite://")  # it is looked at as a database is
        return connection

    return reach


def opened(connection: Connection) -> SharedStudy:
    study = SharedStudy(connection, open_study(connection, "s", directions=["minimize"], sampler=sampler()))
    study.set_up({"wanted": WANTED}, START)
    return study


def sampler() -> Any:
    return optuna.samplers.RandomSampler(seed=0)


def work(study: SharedStudy) -> None:
    """A worker's life: trials until there are enough; each third time one fails, and is tried again."""
    while True:
        trial = study.ask(WANTED)
        if trial is None:
            if not study.sweep(grace=1000) and study.budget().counted >= WANTED and not study.budget().waiting:
                return
            continue
        x = trial.suggest_float("x", 0, 1)
        trial.suggest_categorical("kind", ["a", "b"])
        trial.report(x, 1)
        trial.should_prune()
        study.mark(trial.number, run=f"s-{trial.number}")
        if trial.user_attrs.get("attempt", 1) == 1 and x < 0.5:
            study.tell(trial.number, "FAIL", retry_after=0.0, ended="failed")
        else:
            study.tell(trial.number, "COMPLETE", [x], ended="complete")


def check(study: SharedStudy, *, stale: int) -> None:
    trials = study.trials()
    kept = [one for one in trials if one.user_attrs.get("ended") != shared.SURPLUS]
    assert study.budget() == shared.Budget(0, 0, WANTED), [(one.state.name, one.user_attrs) for one in trials]
    complete = [one for one in kept if one.state.name == "COMPLETE"]
    assert len(complete) == WANTED
    assert len({one.params["x"] for one in complete}) == WANTED, "the same values were run twice"
    assert all(one.value == one.params["x"] for one in complete)
    assert 0.5 in {one.params["x"] for one in complete}, "the values to begin with were lost"
    again = [one.user_attrs["retry_of"] for one in kept if "retry_of" in one.user_attrs]
    assert len(again) == len(set(again)), "a trial was queued twice"
    lost = [one for one in kept if one.user_attrs.get("ended") == "stale"]
    assert len(lost) <= stale
    assert {one.number for one in lost if one.params} <= set(again), "a stale trial was not run again"
    failed = {one.number for one in kept if one.user_attrs.get("ended") == "failed"}
    assert failed <= set(again), "a failed trial was not tried again"
    for one in kept:
        if "retry_of" in one.user_attrs:
            before = trials[one.user_attrs["retry_of"]]
            assert before.params.items() <= one.params.items()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_worker_whose_connection_breaks_at_any_call_goes_on(when: str, reached: Callable[[int], Connection]) -> None:
    at = 0
    while True:
        at += 1
        connection = reached(at)
        faulty = connection.storage._inner = Faulty(connection.storage._inner, at, when=when, kill=False)
        study = opened(connection)
        work(study)
        check(study, stale=0)
        if faulty.calls < at:
            break
    assert at > 40


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_a_worker_killed_at_any_call_leaves_is_finished_by_the_next(
    when: str, reached: Callable[[int], Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    living, gone = shared.this_worker(), dead_worker()
    at = 0
    while True:
        at += 1
        connection = reached(at)
        faulty = connection.storage._inner = Faulty(connection.storage._inner, at, when=when, kill=True)
        monkeypatch.setattr(shared, "this_worker", lambda: gone)
        try:
            work(opened(connection))
        except Killed:
            pass
        monkeypatch.setattr(shared, "this_worker", lambda: living)
        next_one = opened(reached(at))
        work(next_one)
        check(next_one, stale=1)
        if faulty.calls < at:
            break
    assert at > 40


@pytest.mark.parametrize("reached", ["memory"], indirect=True)  # a journal never makes one twice
def test_a_trial_that_a_database_made_twice_counts_once(reached: Callable[[int], Connection]) -> None:
    """Optuna's databases try again by themselves when a commit fails, though it may have arrived."""
    connection = reached(0)
    inner = connection.storage._inner

    class Twice(Faulty):
        def create_new_trial(self, *args: Any) -> int:
            inner.create_new_trial(*args)
            return int(inner.create_new_trial(*args))

    connection.storage._inner = Twice(inner, 0, when="before", kill=False)  # type: ignore[assignment]
    study = opened(connection)
    work(study)
    check(study, stale=0)
    assert sum(one.user_attrs.get("ended") == shared.SURPLUS for one in study.trials()) >= WANTED


STUDY = """
study: s
command: [sh, -c, "echo value {x}"]
parameters: {x: {low: 0.0, high: 1.0}}
target: {name: value, pattern: 'value ([0-9.e-]+)'}
tuner: {name: random, seed: 0}
trials: 3
trial: {retries: 1, backoff: 0}
"""


class InstantRun:
    """A trial without its process."""

    def __init__(self, study: Any, number: int, values: dict[str, Any], **_: Any) -> None:
        self.values, self.process, self.directory = values, None, Path(f"s-{number}")
        self.root = _["root"]

    def run(self, report: Callable[[int, float], bool], asked_to_stop: Callable[[], str]) -> Outcome:
        report(1, self.values["x"])
        if self.root < 0 and self.values["x"] < 0.7:
            return Outcome("FAIL", "failed")
        return Outcome("COMPLETE", "complete", values=[self.values["x"]])


@pytest.mark.parametrize("when", ["before", "after"])
def test_misstep_tune_survives_a_fault_at_any_call(when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From ask to tell, with the thread that beats and sweeps beside it."""
    monkeypatch.setattr(working, "TrialRun", InstantRun)
    at = 0
    while True:
        at += 1
        worker = Worker(parse_study(STUDY), base=str(tmp_path), storage=str(tmp_path / f"{at}.journal"))
        storage = worker.shared.connection.storage
        faulty = storage._inner = Faulty(storage._inner, at, when=when, kill=False)  # type: ignore[assignment]
        trials = worker.run().trials()
        states = [one.state.name for one in trials]
        assert states.count("COMPLETE") == 3, states
        assert set(states) <= {"COMPLETE", "FAIL"}
        again = [one.user_attrs.get("retry_of") for one in trials if "retry_of" in one.user_attrs]
        assert sorted(again) == [one.number for one in trials if one.state.name == "FAIL"]
        if faulty.calls < at:
            break
    assert at > 30
