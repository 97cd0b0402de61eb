"""A step that no update ends: the script goes on to another batch, or ends. What was seen is judged all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.capture.fakes import Net

from misstep.capture.session import Session
from misstep.settings import Settings
from misstep.store.reading.reader import Run, open_run
from misstep.testing import fake_framework as fake
from misstep.testing.fake import FakeAdapter
from misstep.testing.fake_framework import Descent, FakeTensor


def left(folder: Path, *, steps: int, updates: set[int], fails_at: int = 0, error: bool = False, **given: Any) -> Run:
    """A training in which only some steps are updated; the last may end with an exception."""
    session = Session(Settings({"dir": str(folder), "strict": True, **given}))
    session.use(FakeAdapter())
    net = Net()
    net.body.fails_at = fails_at
    optimizer = Descent(net.named_parameters(), 0.01)

    def train() -> None:
        random = np.random.default_rng(1)
        for step in range(1, steps + 1):
            x = FakeTensor(random.standard_normal((4, 3)).astype(np.float32))
            loss = fake.mean_square(net(x), FakeTensor(np.zeros((4, 2), np.float32)))
            optimizer.clear()
            loss.backward()
            if step in updates:
                optimizer.update()
            elif error and step == steps:
                raise RuntimeError("the loss is NaN")

    if error:
        with pytest.raises(RuntimeError), session:
            train()
    else:
        with session:
            train()
    assert session.run_directory is not None
    return open_run(session.run_directory)


def facts(run: Run) -> list[tuple[int, bool]]:
    return [(step.number, step.left) for step in run.steps() if step.number]


@pytest.mark.parametrize("level", ["guard", "module", "op"])
def test_a_bad_step_that_the_script_skips_is_a_step_with_a_verdict(tmp_path: Path, level: str):
    run = left(tmp_path, steps=4, updates={1, 3, 4}, fails_at=2, level=level)
    assert facts(run) == [(1, False), (2, True), (3, False), (4, False)]
    assert run.verdict is not None
    assert run.verdict.step == 2
    assert np.isnan([step.loss for step in run.steps() if step.left]).all()


@pytest.mark.parametrize("level", ["guard", "module", "op"])
@pytest.mark.parametrize("error", [False, True])
def test_the_step_under_way_when_the_program_ends_is_judged(tmp_path: Path, level: str, error: bool):
    run = left(tmp_path, steps=3, updates={1, 2}, fails_at=3, error=error, level=level)
    assert facts(run) == [(1, False), (2, False), (3, True)]
    assert run.verdict is not None
    assert (run.verdict.step, run.state) == (3, "failed" if error else "finished")


def test_a_finite_step_without_an_update_is_recorded_at_the_end_and_blamed_for_nothing(tmp_path: Path):
    run = left(tmp_path, steps=3, updates={1, 2})
    assert facts(run) == [(1, False), (2, False), (3, True)]
    assert (run.verdict, run.hits()) == (None, [])


def test_forwards_that_share_an_update_stay_one_step(tmp_path: Path):
    run = left(tmp_path, steps=4, updates={2, 4})
    assert facts(run) == [(1, False), (2, False)]


def test_a_step_that_ended_is_not_judged_again_at_the_end(tmp_path: Path):
    run = left(tmp_path, steps=3, updates={1, 2, 3}, fails_at=3)
    assert facts(run) == [(1, False), (2, False), (3, False)]


def test_a_stop_in_the_last_step_ends_the_run_as_stopped(tmp_path: Path):
    run = left(tmp_path, steps=2, updates={1}, fails_at=2, on_nan="stop")
    assert (facts(run), run.state) == ([(1, False), (2, True)], "stopped")


def test_a_detached_session_says_so_and_judges_nothing_more(tmp_path: Path):
    session = Session(Settings({"dir": str(tmp_path), "strict": True}))
    session.use(FakeAdapter())
    net = Net()
    loss = fake.mean_square(net(FakeTensor(np.ones((4, 3), np.float32))), FakeTensor(np.zeros((4, 2), np.float32)))
    loss.backward()
    session.detach()
    assert session.run_directory is not None
    run = open_run(session.run_directory)
    assert (facts(run), run.events("end")[0].facts["reason"]) == ([], "detached")
