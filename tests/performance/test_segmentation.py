"""The cut of gradients into all-reduces is the best of all cuts, and as short as it may be."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from misstep.performance.buckets import cut
from misstep.performance.segmentation import (
    MB,
    Wire,
    best_plan,
    bucket_caps_mb,
    end_of,
    fewest_within,
    fit_wire,
    framework_cuts,
    fusion_config,
)


def problem(seed: int, count: int = 9) -> tuple[list[float], list[int], Wire]:
    random = np.random.default_rng(seed)
    ready = np.cumsum(random.exponential(5, count)).tolist()
    sizes = random.integers(1, 8 * MB, count).tolist()
    return ready, sizes, Wire(float(random.uniform(0.1, 8)), float(random.uniform(1, 20)) / (10 * MB))


@pytest.mark.parametrize("seed", range(20))
def test_no_other_cut_ends_sooner(seed: int) -> None:
    ready, sizes, wire = problem(seed)
    plan = best_plan(ready, sizes, wire)
    every = [
        (*inner, len(sizes))
        for count in range(len(sizes))
        for inner in itertools.combinations(range(1, len(sizes)), count)
    ]
    assert plan.end == pytest.approx(min(end_of(ready, sizes, wire, cuts) for cuts in every))
    assert plan.end == pytest.approx(end_of(ready, sizes, wire, plan.cuts))
    short = fewest_within(ready, sizes, wire)
    assert short.end <= 1.01 * plan.end + 1e-9
    assert len(short.cuts) <= len(plan.cuts)
    assert short.end <= end_of(ready, sizes, wire, framework_cuts(sizes)) * 1.01


def test_latency_and_bandwidth_are_found_again() -> None:
    sizes = [4096, MB, 4 * MB, 16 * MB] * 5
    wire = fit_wire(sizes, [3.0 + size / (500 * MB) * 1e3 for size in sizes])
    assert (wire.latency, 1e3 / wire.per_byte / MB) == (pytest.approx(3.0), pytest.approx(500))


def test_without_a_wire_to_speak_of_one_segment_is_enough() -> None:
    assert fewest_within([1.0, 2.0, 3.0], [10, 10, 10], Wire(5.0, 0.0)).cuts == (3,)


def test_a_plan_is_written_as_both_frameworks_want_it() -> None:
    sizes = [MB, MB, 2 * MB]
    assert bucket_caps_mb(sizes, (2, 3)) == [pytest.approx(2, abs=1e-3), pytest.approx(2, abs=1e-3)]
    assert fusion_config((2, 3)) == [1, 2]
    assert framework_cuts([MB // 2, MB, 30 * MB, MB]) == (2, 3, 4)


def told(ready: list[float]) -> dict[str, Any]:
    wire = [[float(size), 0.1 + size / MB] for size in (4096, MB, 8 * MB)]
    return {"ready": ready, "sizes": [8 * MB] * 4, "wire": wire}


def test_a_gradient_is_ready_when_its_slowest_rank_has_it() -> None:
    found = cut([told([1, 20, 30, 40]), told([10, 2, 3, 4])], step=100.0)
    assert found.backward == 40
    assert found.best.end == pytest.approx(40 + 0.1 + 8, rel=0.02)


def test_where_the_framework_cuts_as_well_the_buckets_are_left_alone() -> None:
    facts = {"ready": [1.0, 2.0], "sizes": [26 * MB, 26 * MB], "wire": [[4096.0, 0.1], [8.0 * MB, 8.1]]}
    found = cut([facts, facts], step=500.0)
    assert found.change is None
    assert "leave the buckets alone" in found.said


def test_a_cut_that_promises_something_is_tried() -> None:
    ready = [float(at) for at in range(0, 80, 2)]
    facts = {"ready": ready, "sizes": [MB // 2] * 40, "wire": [[4096.0, 0.1], [8.0 * MB, 16.1]]}
    found = cut([facts, facts], step=120.0)
    assert found.change is not None
    assert found.predicted < 120
    assert len(found.caps_mb) == len(found.best.cuts)
