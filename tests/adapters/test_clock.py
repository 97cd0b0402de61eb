"""The clock of a step: every moment belongs to one segment, and what misstep does itself to none of the user's."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from misstep.adapters.timing import clock as module
from misstep.adapters.timing.batches import BatchClock, Timed
from misstep.adapters.timing.lanes import SLOTS, Lane, Lanes
from misstep.adapters.timing.stages import Stages, merged
from misstep.core.segments import BACKWARD, DATA, EPOCH, FIRST, FORWARD, GAP, GRADIENTS, OPTIMIZER, SEGMENTS, TRANSFER
from misstep.store.tracefile import BATCH_RECORD, RECORD_BYTES, STEP, STEP_RECORD


class Owner:
    cost_ns = 0


Made = Callable[[Owner], module.Clock]


class Time:
    now = 1_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture(params=sorted({module.Clock, module.PlainClock}, key=lambda kind: kind.__name__))
def made(request: pytest.FixtureRequest, time: Time) -> Made:
    """Both clocks, the native one and its twin, on a time of the test's own."""
    return lambda owner: request.param(owner, time)


def spent(clock: module.Clock) -> dict[str, int]:
    return {name: ns for name, ns in zip(SEGMENTS, clock.take().spent) if ns}


def test_the_time_since_the_last_word_goes_to_what_was_under_way(time: Time, made: Made) -> None:
    clock = made(Owner())
    for segment, ns in ((DATA, 40), (TRANSFER, 3), (FORWARD, 20), (BACKWARD, 30), (GRADIENTS, 2), (OPTIMIZER, 5)):
        clock.switch(segment)
        time.now += ns
    clock.own()
    clock.settle()
    assert spent(clock) == {
        "data": 40, "transfer": 3, "forward": 20, "backward": 30, "gradients": 2, "optimizer": 5
    }  # fmt: skip


def test_what_follows_the_last_update_belongs_to_the_next_step(time: Time, made: Made) -> None:
    clock = made(Owner())
    clock.switch(OPTIMIZER)
    time.now += 5
    clock.own()
    clock.settle()
    clock.back(GAP)
    time.now += 7
    clock.switch(DATA)
    time.now += 11
    clock.switch(FORWARD)
    assert spent(clock) == {"optimizer": 5}
    assert spent(clock) == {"gap": 7, "data": 11}


def test_nothing_of_a_replay_counts_as_training(time: Time, made: Made) -> None:
    clock = made(Owner())
    clock.switch(GRADIENTS)
    assert clock.own() == GRADIENTS
    clock.switch(FORWARD)
    time.now += 100
    assert clock.own() == -1
    clock.back(-1)
    clock.switch(BACKWARD)
    clock.back(OPTIMIZER)
    time.now += 5
    clock.switch(GAP)
    assert spent(clock) == {"misstep": 100, "optimizer": 5}


def test_our_own_cost_inside_a_segment_is_taken_out_of_it(time: Time, made: Made) -> None:
    owner = Owner()
    clock = made(owner)
    clock.switch(FORWARD)
    time.now += 50
    owner.cost_ns += 20
    clock.switch(BACKWARD)
    assert spent(clock) == {"forward": 30, "misstep": 20}


def test_waiting_for_a_framework_that_runs_behind_is_its_time(time: Time, made: Made) -> None:
    clock = made(Owner())
    waited = [0]
    clock.waits = lambda: waited[0]
    clock.switch(BACKWARD)
    time.now += 10
    clock.switch(GRADIENTS)
    clock.own()
    time.now += 30
    waited[0] += 25
    clock.back(OPTIMIZER)
    clock.switch(GAP)
    assert spent(clock) == {"backward": 35, "misstep": 5}


def test_a_record_of_the_trace_says_what_was_taken(time: Time, made: Made) -> None:
    clock = made(Owner())
    clock.switch(FORWARD)
    clock.ask(3)
    clock.ask(2)
    clock.epoch = True
    time.now += 5_000
    clock.switch(GAP)
    (record,) = np.frombuffer(clock.record(FIRST, 7), STEP_RECORD)
    assert (record["kind"], record["flags"], record["number"]) == (STEP, FIRST | EPOCH, 7)
    assert (record["queue"], record["asks"]) == (3, 2)
    assert dict(zip(SEGMENTS, record["spent"].tolist()))["forward"] == 5.0
    assert record["began"] > 1_600_000_000 * 10**9
    assert clock.asks == 0
    assert not clock.epoch


def test_a_clock_and_its_owner_go_together_when_nobody_holds_them(made: Made) -> None:
    class Holder(Owner):
        clock: Any = None

    gone = []
    for number in range(200):
        holder = Holder()
        holder.clock = made(holder)
        holder.clock.waits = lambda held=holder: held.cost_ns
        holder.clock.switch(FORWARD)
        holder.clock.own()
        holder.clock.back(GAP)
        holder.clock.record(0, number)
        gone.append(weakref.ref(holder))
    del holder
    gc.collect()
    assert [ref for ref in gone if ref() is not None] == []


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def unpacked(record: bytes) -> Any:
    return np.frombuffer(record, BATCH_RECORD)[0]


def test_a_batch_names_its_slowest_sample() -> None:
    records: list[bytes] = []
    clock = BatchClock(3, records.append, lambda stages: None)
    clock._made = 100  # beyond the samples that are profiled for a start
    clock._next_profile = 1 << 62

    class Squares:
        def __getitem__(self, index: int) -> int:
            return sum(range(200_000 if index == 7 else 10))

    data = Timed(Squares(), clock)
    clock.begin()
    made = [data[index] for index in (5, 7, 9)]
    clock.end(made, 0)
    record = unpacked(records[0])
    assert made[0] == sum(range(10))
    assert (record["worker"], record["samples"], record["slowest_index"]) == (3, 3, 7)
    assert record["fetch"] >= record["slowest"] > 0


def test_lanes_hand_over_every_record_in_order_and_count_what_they_lost() -> None:
    lanes = Lanes(2)
    lane = Lane(lanes.memory, 1)
    lane.put(b"a" * RECORD_BYTES)
    lane.put(b"b" * RECORD_BYTES)
    assert [record[:1] for record in lanes.drain()] == [b"a", b"b"]
    assert list(lanes.drain()) == []
    for number in range(SLOTS + 10):
        lane.put(bytes([number % 256]) * RECORD_BYTES)
    kept = list(lanes.drain())
    assert kept[-1][0] == (SLOTS + 9) % 256
    assert lanes.lost == SLOTS + 10 - len(kept)
    lane.say(b"{}")
    assert list(lanes.texts()) == [b"{}"]
    assert list(lanes.texts()) == []


def test_a_stage_is_named_by_the_class_that_is_there_for_it() -> None:
    class Crop:
        def __call__(this, value: int) -> int:
            return value + len(sorted(range(50)))

    class Both:
        def __init__(self) -> None:
            self.parts = (Crop(), Crop())

        def __call__(self, value: int) -> int:
            for part in self.parts:
                value = part(value)
            return value

    stages = Stages()
    assert stages.run(Both(), 1) == 101
    paths = {tuple(path) for path, _ in stages.plain()["paths"]}
    assert {("Both",), ("Both", "Crop"), ("Both", "Crop", "sorted")} <= paths
    assert stages.plain()["where"]["Crop"].endswith(f"test_clock.py:{Crop.__call__.__code__.co_firstlineno}")
    twice = merged([stages.plain(), stages.plain()])
    assert twice["samples"] == 2
