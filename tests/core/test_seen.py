"""When a run may be called free of NaN and Inf: only when nothing whatever speaks against it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from misstep.core.run import Step
from misstep.core.seen import Seen


def seen(*steps: Step) -> Seen:
    found = Seen()
    for step in steps:
        found.add(step)
    return found


def test_watched_steps_with_finite_losses_are_clean():
    assert seen(Step(0), Step(1, loss=1.0), Step(2, loss=0.5)) == Seen(steps=2, level="guard")
    assert seen(Step(1, loss=1.0)).clean


def test_a_run_without_a_step_is_not_called_clean():
    assert not seen().clean
    assert not seen(Step(0)).clean


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_bad_loss_is_counted_with_its_first_step(loss: float):
    found = seen(Step(1, loss=1.0), Step(2, loss=loss), Step(3, loss=loss))
    assert (found.bad_losses, found.first_bad_loss, found.clean) == (2, 2, False)


def test_one_bad_loss_among_several_of_a_step_counts():
    assert not seen(Step(1, loss=1.0, losses=(math.nan, 1.0))).clean


def test_a_step_at_level_off_was_not_watched():
    found = seen(Step(1, captured="off"), Step(2, captured="guard"))
    assert (found.unwatched, found.clean) == (1, False)


@pytest.mark.parametrize("what", ["hits", "skipped", "lost", "unwatched", "bad_losses"])
def test_anything_that_speaks_against_it_is_enough(what: str):
    assert not replace(Seen(steps=3), **{what: 1}).clean


def test_steps_that_all_ranks_take_together_are_counted_once():
    found = Seen()
    for rank in (0, 1):
        for number in (1, 2, 3):
            found.add(Step(number, captured="off", loss=math.nan if number == 3 else 1.0), rank)
        found.skip(rank)
    assert (found.steps, found.unwatched, found.bad_losses, found.skipped) == (3, 3, 1, 1)
