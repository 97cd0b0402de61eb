"""A user steps through a live training: every verb, at modules and operators, forward, backward and optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from livestory import FOREVER, NETWORK, Live

from misstep.client import Debugger
from misstep.errors import ControlError, StaleCommand, TensorUnavailable
from misstep.protocol import messages as m
from misstep.store.reading.reader import open_run

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
    with pytest.raises(ControlError, match="pynative runs compiled MindSpore code, and this run has none"):
        debug.pynative()
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
        ("decoder:grad_input", "backward", "after"),
        ("encoder.0:grad_output", "backward", "before"),
        ("encoder:grad_input", "backward", "after"),
        ("optimizer:grad", "optimizer", "before"),
        ("optimizer:param", "optimizer", "after"),
    ):
        debug.run_to(node)
        place = debug.wait("paused").place
        assert place is not None
        assert (f"{place.node}", place.phase, place.when) == (node.partition(":")[0], phase, when)
        assert debug.state.step == 3
        if node == "decoder:grad_input":
            np.testing.assert_array_equal(debug.tensor(node), debug.tensor("encoder.1:grad_output"))

    debug.run_to("encodr.1")
    state = debug.wait("paused")
    assert state.step == 4
    assert state.reason is not None
    assert state.reason.text.startswith("encodr.1 did not run in step 4; paused at its end; did you mean encoder.1")

    debug.until("step >= 9")
    assert debug.wait("paused").step == 9
    debug.until("loss < 1e9")
    assert debug.wait("paused").step == 10

    debug.stop()
    debug.wait("ended")
    assert live.exit() == 130
    assert open_run(run).state == "stopped"


def test_next_goes_module_by_module_through_forward_backward_and_optimizer(live: Live):
    live.train(FOREVER, pause_at_start=1)
    debug = live.debugger()
    debug.wait("paused")
    places = []
    while (state := walk(debug)).place is not None:
        places.append((state.place.node, state.place.phase))
    assert places == [
        ("encoder.0", "forward"),
        ("encoder.1", "forward"),
        ("encoder", "forward"),
        ("decoder", "forward"),
        ("Network", "forward"),
        ("loss", "loss"),
        ("decoder", "backward"),
        ("encoder.1", "backward"),
        ("encoder.0", "backward"),
        ("encoder", "backward"),
        ("Network", "backward"),
        ("optimizer", "optimizer"),
    ]
    assert (state.step, state.reason and state.reason.text) == (1, "step 1 ended")


def test_next_goes_operator_by_operator_when_asked(live: Live):
    """The training is watched module by module; only the steps somebody walks through are seen operator by operator."""
    live.train(FOREVER, pause_at_start=1)
    debug = live.debugger()
    debug.wait("paused")
    debug.granularity("operator")
    debug.step()
    debug.wait("paused")
    places = []
    while (state := walk(debug)).place is not None:
        if state.place.kind == "operator":
            places.append((state.place.phase, state.place.node, state.place.type))
            values = debug.tensor(f"{state.place.node}~{state.place.call}:output")
            assert np.isfinite(values).all()
            line = state.place.source
            assert line is not None
            assert line.file.endswith("train.py")
    assert state.step == 2
    forward = [(node, type) for phase, node, type in places if phase in ("forward", "loss")]
    assert forward == [
        ("script/randn", "aten.randn"),
        ("encoder.0/addmm", "aten.addmm"),
        ("encoder.1/tanh", "aten.tanh"),
        ("decoder/addmm", "aten.addmm"),
        ("script/pow", "aten.pow"),
        ("script/mean", "aten.mean"),
    ]
    backward = [node for phase, node, _ in places if phase == "backward"]
    scopes = [node.partition("/")[0] for node in backward]
    assert list(dict.fromkeys(scopes))[-3:] == ["decoder", "encoder.1", "encoder.0"]
    assert "encoder.1/TanhBackward0/tanh_backward" in backward
    updates = [type for phase, _, type in places if phase == "optimizer"]
    assert updates
    assert set(updates) <= {"aten.add_", "aten._foreach_add_"}
    debug.run_to("encoder.1/tanh")
    place = debug.wait("paused").place
    assert place is None or place.node == "encoder.1/tanh"


def walk(debug: Debugger) -> m.State:
    """To the next node."""
    debug.next()
    return debug.wait("paused")


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
    for address, reason, how in (
        ("decoder.weight:param@99999999", "no_such_step", "Go there:  step "),
        ("encoder.0:output@1", "not_captured", "misstep dump last 'encoder.0:output'"),
        ("encoder.0/addmm:output", "not_captured", "ops, then s 1"),
    ):
        with pytest.raises(TensorUnavailable) as told:
            debug.tensor(address)
        assert (told.value.reason, how in str(told.value)) == (reason, True), str(told.value)


def test_two_clients_see_the_same_and_cannot_race_each_other(live: Live):
    live.train(FOREVER, pause_at_start=1)
    first, second = live.debugger(), live.debugger()
    seen = first.wait("paused").rev
    second.wait("paused")
    first.command("step", rev=seen)
    with pytest.raises(StaleCommand, match="the run has moved since you looked"):
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
