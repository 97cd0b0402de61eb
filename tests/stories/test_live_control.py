"""A user steps through a live training: every verb, at modules and operators, forward, backward and optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from livestory import FOREVER, NETWORK, Live

from misstep.core import messages as m
from misstep.errors import StaleCommand, TensorUnavailable
from misstep.store.reader import open_run

pytestmark = pytest.mark.story


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    started = Live(tmp_path)
    yield started
    started.end()


def test_a_session_from_the_initial_weights_to_a_clean_end(live: Live):
    run = live.train(FOREVER + "\n", pause_at_start=1)
    debug = live.debugger()

    state = debug.wait("paused")
    assert (state.step, state.reason and state.reason.kind) == (0, "start")
    initial = debug.tensor("encoder.0.weight:param@0")
    assert initial.shape == (16, 8)

    debug.step(3)
    assert debug.wait("paused").step == 3
    assert not np.array_equal(debug.tensor("encoder.0.weight:param"), initial)
    np.testing.assert_array_equal(debug.tensor("encoder.0:output", "0,:5"), debug.tensor("encoder.0:output")[0, :5])

    places = []
    for _ in range(4):
        debug.next()
        place = debug.wait("paused").place
        places.append((place.node, place.when, place.phase) if place else None)
    assert places == [
        ("encoder.0", "after", "forward"),
        ("encoder.1", "after", "forward"),
        ("encoder", "after", "forward"),
        ("decoder", "after", "forward"),
    ]

    for node, phase, when in (
        ("decoder:grad_output", "backward", "before"),
        ("encoder.0:grad_output", "backward", "before"),
        ("optimizer:grad", "optimizer", "before"),
    ):
        debug.run_to(node)
        place = debug.wait("paused").place
        assert place is not None
        assert (place.phase, place.when) == (phase, when)
        assert debug.state.step == 3

    debug.run_to("no.such.node")
    state = debug.wait("paused")
    assert state.step == 4
    assert state.reason is not None
    assert state.reason.text == "no.such.node was not met in step 4; paused at its end"

    debug.until("step >= 9")
    assert debug.wait("paused").step == 9
    debug.until("loss < 1e9")
    assert debug.wait("paused").step == 10

    debug.stop()
    debug.wait("ended")
    assert live.exit() == 130
    assert open_run(run).state == "stopped"


def test_next_stops_at_operators_when_asked(live: Live):
    live.train(FOREVER, pause_at_start=1, level="op")
    debug = live.debugger()
    debug.wait("paused")
    debug.step()
    debug.wait("paused")
    debug.granularity("operator")
    kinds = []
    for _ in range(6):
        debug.next()
        place = debug.wait("paused").place
        kinds.append(place.kind if place else "")
    assert "operator" in kinds
    debug.stop()
    debug.wait("ended")


def test_a_paused_tensor_can_be_compared_with_the_step_before(live: Live):
    live.train(FOREVER)
    debug = live.debugger()
    debug.wait_step(3)
    debug.pause()
    state = debug.wait("paused")
    assert state.reason is not None
    assert state.reason.kind == "user"
    debug.step()
    before = debug.wait("paused").step
    weight = debug.tensor("decoder.weight:param")
    debug.step()
    assert debug.wait("paused").step == before + 1
    found = debug.compare("decoder.weight:param", "prev")
    assert (found.a, found.b) == (f"decoder.weight:param@{before + 1}#0", f"decoder.weight:param@{before}#0")
    moved = np.abs(debug.tensor("decoder.weight:param").astype(np.float64) - weight).max()
    assert found.differences.max_absolute == pytest.approx(moved)
    with pytest.raises(TensorUnavailable, match="rank 5 is not connected; there are 0") as told:
        debug.tensor("decoder.weight:param#5")
    assert told.value.reason == "other_rank"


def test_two_clients_see_the_same_and_cannot_race_each_other(live: Live):
    live.train(FOREVER, pause_at_start=1)
    first, second = live.debugger(), live.debugger()
    seen = first.wait("paused").rev
    second.wait("paused")
    first.command("step", rev=seen)
    with pytest.raises(StaleCommand, match="the run moved since you looked"):
        second.command("step", rev=seen)
    assert first.wait("paused").step == 1
    second.wait_step(1)
    assert second.wait("paused").step == 1


def test_detach_takes_the_hooks_out_and_training_goes_on(live: Live):
    script = NETWORK + "\nfor _ in range(400):\n    step(torch.randn(4, 8))\nprint('trained to the end')\n"
    live.train(script, pause_at_start=1)
    debug = live.debugger()
    debug.wait("paused")
    debug.step(2)
    debug.wait("paused")
    debug.detach()
    assert live.exit() == 0
    assert "trained to the end" in live.output()


def test_terminate_lets_the_trainings_own_clean_up_run(live: Live):
    script = NETWORK + (
        "\ntry:\n    while True:\n        step(torch.randn(4, 8))\nfinally:\n    print('cleaned up', flush=True)\n"
    )
    live.train(script)
    debug = live.debugger()
    debug.wait_step(2)
    debug.stop()
    assert live.exit() == 130
    assert "cleaned up" in live.output()


def test_everything_a_client_was_told_came_in_order(live: Live):
    live.train(FOREVER, pause_at_start=1)
    debug = live.debugger()
    debug.wait("paused")
    watch = debug.watch("step >= 3", on="decoder.weight:grad")
    debug.go()
    debug.wait_hit()
    debug.wait("paused")
    debug.unwatch(watch.id)
    debug.step()
    debug.wait("paused")
    told = [event for event in debug.events if isinstance(event, m.State | m.HitNews | m.WatchNews)]
    numbers = [event.seq for event in told if event.seq]
    assert numbers == sorted(numbers)
    words = [
        event.op if isinstance(event, m.WatchNews) else "hit" if isinstance(event, m.HitNews) else event.phase
        for event in told
    ]
    added = words.index("add")
    running = words.index("running", added)
    assert added < running < words.index("hit") < words.index("remove")
