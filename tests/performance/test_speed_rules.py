"""What the time of steps says: verdicts and advice by figures alone, and nothing where nothing is to be gained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from traces import batches, load, loader, steps, trace

from misstep.core.segments import COMPILE, EPOCH, GAP
from misstep.performance.loader_model import loader_model
from misstep.performance.pipeline import load_of, pipeline_of
from misstep.performance.rules import Advice, Facts, all_advice
from misstep.performance.steps import step_times
from misstep.performance.verdict import best_workers, data_verdict
from misstep.store.tracefile import Trace


def facts(made: Trace, told: dict[str, Any] | None = None, **more: Any) -> Facts:
    times = step_times(made.steps)
    assert times is not None
    pipeline = pipeline_of(made, [told] if told else [], None)
    busy = load_of(made.loads)
    model = loader_model(times, pipeline, busy) if pipeline else None
    best = best_workers(model, busy.allowed if busy else 4) if model else None
    verdict = data_verdict(times, pipeline, busy, best)
    return Facts(times, (times,), made, told, pipeline, busy, model, best, verdict, **more)


def advice(*given: Any, **more: Any) -> dict[str, Advice]:
    return {one.rule: one for one in all_advice(facts(*given, **more))}


def test_a_training_that_computes_gets_no_advice() -> None:
    made = trace(steps(data=0.2, forward=4, backward=8, optimizer=1, queue=2), batches(make=6))
    assert facts(made, loader(1)).verdict.bound == "fine"
    assert advice(made, loader(1)) == {}


def test_an_empty_queue_and_a_wait_are_input_bound_and_workers_are_predicted() -> None:
    made = trace(steps(data=11, forward=2, backward=3, queue=0), batches(make=16))
    found = facts(made, loader(1))
    assert found.verdict.bound == "input"
    (wanted,) = [one for one in all_advice(found) if one.rule == "workers"]
    assert wanted.change is not None
    assert wanted.change.values == {"num_workers": 4}
    assert wanted.predicted == pytest.approx(5.1, rel=0.05)
    assert wanted.low is not None
    assert wanted.high is not None
    assert wanted.low < wanted.predicted < wanted.high


def test_a_wait_while_batches_lie_ready_is_the_handing_over_and_never_more_workers() -> None:
    made = trace(steps(data=3, forward=1, backward=1, queue=3), batches(make=0.3, workers=2))
    assert facts(made, loader(2)).verdict.bound == "transfer"
    found = advice(made, loader(2))
    assert found["workers"].change is not None
    assert found["workers"].change.values == {"num_workers": 0}


def test_waiting_for_a_core_is_no_slow_handing_over() -> None:
    crowded = load(cores=2, machine=2.0, own=0.3, delay=0.3)
    made = trace(steps(data=4, loss=20, queue=2), batches(make=2), crowded)
    assert facts(made, loader(1)).verdict.bound == "fine"


def test_without_a_free_core_no_workers_are_advised() -> None:
    busy = load(cores=2, machine=2.0, own=2.0, delay=0.0)
    made = trace(steps(data=10, forward=5, backward=5, queue=0, cpu=20), batches(make=20, cpu=20), busy)
    found = facts(made, loader(1))
    assert found.verdict.bound == "saturated"
    assert "workers" not in {one.rule for one in all_advice(found)}


def test_batches_made_on_the_training_thread_are_input_bound() -> None:
    made = trace(steps(data=16, forward=5), batches(make=16, workers=0))
    found = advice(made, loader(0))
    assert found["workers"].predicted == pytest.approx(5.6, rel=0.2)


def test_what_others_load_costs_is_not_the_loaders_fault() -> None:
    made = batches(make=4.5, cpu=1.5, workers=0)
    made["delay"] = 5e3
    crowded = load(cores=2, machine=2.0, own=0.3, delay=0.5)
    assert facts(trace(steps(data=4.5, loss=21.5), made, crowded), loader(0)).verdict.bound == "fine"
    sleeping = batches(make=16, cpu=0.5, workers=0)
    sleeping["delay"] = 5e3
    assert facts(trace(steps(data=16, loss=4), sleeping, crowded), loader(0)).verdict.bound == "input"


def test_a_model_that_does_not_explain_the_measured_step_predicts_nothing() -> None:
    made = trace(steps(data=40, forward=2, queue=0), batches(make=4))
    assert facts(made, loader(1)).model is None
    assert "workers" not in advice(made, loader(1))


def test_first_step_epochs_and_compiling_stand_apart() -> None:
    records = steps(forward=2, backward=3)
    records["spent"][0, COMPILE] = 4e6
    records["spent"][30, GAP] = 50e3
    records["flags"][30] |= EPOCH
    records["spent"][40, COMPILE] = 1e6
    times = step_times(records)
    assert times is not None
    assert times.mean == pytest.approx(5)
    assert (times.first_ms, times.compiled_later, times.epochs) == (pytest.approx(4005), (41,), 2)
    assert times.epoch_ms == pytest.approx(50)
    assert set(advice(trace(records))) == {"first_step"}


def test_slow_steps_at_equal_distances_are_told_with_their_period() -> None:
    records = steps(200, forward=5)
    records["spent"][10::20, GAP] = 30e3
    found = advice(trace(records))
    assert found["periodic"].why.arguments["every"] == 20


def test_slow_steps_at_any_distance_are_outliers_and_no_period() -> None:
    records = steps(200, forward=5)
    random = np.random.default_rng(0)
    records["spent"][random.choice(np.arange(5, 200), 6, replace=False), GAP] = 30e3
    times = step_times(records)
    assert times is not None
    assert times.period is None
    assert {one.segment for one in times.outliers} == {"gap"}


def test_our_own_work_is_no_part_of_the_users_step() -> None:
    times = step_times(steps(forward=4, misstep=4))
    assert times is not None
    assert (times.bare, times.share("forward")) == (pytest.approx(4), pytest.approx(1))


def test_the_slow_rank_is_named_by_its_own_segments() -> None:
    made = trace(steps(forward=5, backward=25))
    quick, slow = step_times(made.steps, 0), step_times(steps(forward=15, backward=15), 1)
    assert quick is not None
    assert slow is not None
    found = facts(made)
    told = all_advice(Facts(slow, (quick, slow), made, None, None, None, None, None, found.verdict))
    assert [(one.rule, one.what.arguments["rank"]) for one in told] == [("straggler", 1)]


def test_accumulated_gradients_ask_for_several_batches_a_step() -> None:
    made = trace(steps(data=36, forward=4, asks=4, queue=0), batches(240, make=10))
    found = facts(made, loader(1))
    assert found.model is not None
    assert found.model.predict(1).ms == pytest.approx(40, rel=0.05)


@pytest.mark.parametrize("count", [0, 3])
def test_a_handful_of_steps_is_too_few(count: int) -> None:
    assert step_times(steps(8, forward=1)[:count]) is None
