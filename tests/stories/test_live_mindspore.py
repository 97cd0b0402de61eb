"""A MindSpore training under the live debugger: cell by cell in PyNative mode, step by step where it is compiled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from livestory import Live

from misstep.cli.prompt import Prompt
from misstep.client import events_of
from misstep.errors import ControlError
from misstep.protocol.messages import LogLine
from misstep.store.reading.reader import open_run

pytestmark = pytest.mark.story
pytest.importorskip("mindspore")

TRAINING = """
import mindspore as ms
import numpy as np
from mindspore import nn, ops

ms.set_context(mode=ms.{mode})
ms.set_seed(0)

class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.encoder = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh())
        self.decoder = nn.Dense(16, 1)

    def construct(self, x):
        return self.decoder(self.encoder(x))

model = Network()
optimizer = nn.SGD(model.trainable_params(), 0.01)
random = np.random.default_rng(0)

def forward(x):
    return model(x).pow(2).mean()

gradient = ms.value_and_grad(forward, None, optimizer.parameters)
{compiled}
def step(x):
    loss, gradients = gradient(x)
    optimizer(gradients)
    return loss

try:
    while True:
        step(ms.Tensor(random.standard_normal((4, 8)), ms.float32))
finally:
    print("cleaned up", flush=True)
"""
PYNATIVE = TRAINING.format(mode="PYNATIVE_MODE", compiled="")
GRAPH = TRAINING.format(mode="GRAPH_MODE", compiled="@ms.jit")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    started = Live(tmp_path)
    yield started
    started.end()


def test_an_eager_training_is_walked_through_looked_at_and_ended(live: Live):
    run = live.train(PYNATIVE, pause_at_start=1)
    debug = live.debugger()
    state = debug.wait("paused")
    assert (state.step, state.reason and state.reason.kind) == (0, "start")
    assert debug.tensor("encoder.0.weight:param@0").shape == (16, 8)

    debug.step(2)
    assert debug.wait("paused").step == 2
    weight = debug.tensor("decoder.weight:param")

    places = []
    debug.next()
    while (place := debug.wait("paused").place) is not None:
        places.append((place.node, place.phase))
        if place.phase == "forward":
            assert np.isfinite(debug.tensor(f"{place.node}:output")).all()
        debug.next()
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
    assert debug.state.step == 3
    found = debug.compare("decoder.weight:param", "prev")
    assert (found.a, found.b) == ("decoder.weight:param@3#0", "decoder.weight:param@2#0")
    moved = np.abs(debug.tensor("decoder.weight:param").astype(np.float64) - weight).max()
    assert found.differences.max_absolute == pytest.approx(moved)

    for node, phase, when in (
        ("encoder.1", "forward", "after"),
        ("decoder:grad_input", "backward", "after"),
        ("encoder.0:grad_output", "backward", "before"),
        ("optimizer:grad", "optimizer", "before"),
    ):
        debug.run_to(node)
        place = debug.wait("paused").place
        assert place is not None
        assert (place.node, place.phase, place.when) == (node.partition(":")[0], phase, when)
        assert debug.state.step == 3

    with pytest.raises(ControlError, match="already trains in PyNative"):
        debug.pynative()
    debug.go()
    watch = debug.watch("abs_mean >= 0", on="decoder.weight:grad", then="pause")
    debug.wait_hit()
    state = debug.wait("paused")
    assert state.reason is not None
    assert (state.reason.kind, state.reason.watchpoint) == ("watchpoint", watch.id)
    debug.unwatch(watch.id)
    debug.go()
    debug.wait_step(state.step + 2)
    debug.pause()
    debug.wait("paused")
    debug.stop()
    debug.wait("ended")
    assert live.exit() == 130
    assert "cleaned up" in live.output()
    assert open_run(run).state == "stopped"


@pytest.mark.parametrize("place", ["encoder.1", "encoder.1:grad_output"])
def test_an_eager_training_ended_inside_a_step_ends_cleanly(live: Live, place: str):
    run = live.train(PYNATIVE, pause_at_start=1)
    debug = live.debugger()
    debug.wait("paused")
    debug.run_to(place)
    state = debug.wait("paused")
    assert state.place is not None
    assert state.place.node == "encoder.1"
    debug.stop()
    debug.wait("ended")
    assert live.exit() == 130
    output = live.output()
    assert "cleaned up" in output
    assert "Traceback" not in output
    assert open_run(run).state == "stopped"


def test_a_compiled_training_is_controlled_step_by_step(live: Live):
    run = live.train(GRAPH, pause_at_start=1)
    debug = live.debugger()
    debug.wait("paused")
    debug.step(2)
    assert debug.wait("paused").step == 2
    weight = debug.tensor("decoder.weight:param")
    debug.step()
    assert debug.wait("paused").step == 3
    assert not np.array_equal(debug.tensor("decoder.weight:param"), weight)
    debug.until("step >= 6")
    assert debug.wait("paused").step == 6
    debug.go()
    assert debug.pause()["text"] == "pausing at the end of the step"
    state = debug.wait("paused")
    assert (state.place, state.reason and state.reason.text) == (None, "paused on request")
    said: list[str] = []
    assert not Prompt(debug, said.append).do("p encoder.0:output")
    assert said[1].endswith("pynative walks through the next step and shows them")
    debug.watch("abs_mean >= 0", on="decoder.weight:param", then="pause")
    debug.go()
    (hit, *_) = debug.wait_hit()
    assert hit.node == "decoder.weight"
    debug.wait("paused")
    debug.stop()
    debug.wait("ended")
    assert live.exit() == 130
    assert "cleaned up" in live.output()
    assert open_run(run).state == "stopped"


def test_a_compiled_step_is_walked_through_in_pynative_on_request(live: Live):
    run = live.train(GRAPH, pause_at_start=1)
    debug = live.debugger()
    assert debug.wait("paused").compiled
    debug.step(2)
    debug.wait("paused")

    debug.pynative()
    place = debug.wait("paused").place
    assert place is not None
    assert (place.node, place.phase, place.when) == ("encoder.0", "forward", "after")
    assert debug.tensor("encoder.0:output").shape == (4, 16)
    with pytest.raises(ControlError, match="step 3 is running in PyNative now"):
        debug.pynative()
    debug.run_to("decoder:grad_input")
    place = debug.wait("paused").place
    assert place is not None
    assert (place.node, place.phase) == ("decoder", "backward")
    debug.step()
    assert (debug.wait("paused").step, notes(debug)) == (3, ["step 3 ran in PyNative too: the loss agrees"])

    with pytest.raises(
        ControlError, match=r"step 1:2 is over, 3 have ended; name steps to come, for example pynative 4:6"
    ):
        debug.pynative("1:2")
    with pytest.raises(ControlError, match="cannot read the steps 'five'"):
        debug.pynative("five")
    said: list[str] = []
    prompt = Prompt(debug, said.append)
    prompt.do("pynative 5")
    prompt.do("s 3")
    assert said[0] == "these steps will also run in PyNative: 5"
    assert said[-2].startswith("  step 5 ran in PyNative too: the loss agrees with graph mode")
    assert said[-1] == "paused at step 6: step 6 ended"
    debug.stop()
    debug.wait("ended")
    assert live.exit() == 130
    assert [event.facts["step"] for event in open_run(run).events("modes")] == [3, 5]


def test_before_the_first_step_of_a_compiled_gradient_nothing_has_run(live: Live):
    live.train(TRAINING.format(mode="GRAPH_MODE", compiled=""), pause_at_start=1)
    debug = live.debugger()
    assert debug.wait("paused").compiled
    assert debug.tensor("encoder.0.weight:param@0").shape == (16, 8)
    debug.pynative()
    place = debug.wait("paused").place
    assert place is not None
    assert (place.node, place.phase) == ("encoder.0", "forward")
    debug.step()
    assert (debug.wait("paused").step, notes(debug)) == (
        1,
        ["step 1 ran in PyNative too: loss and gradients agree"],
    )
    debug.stop()
    debug.wait("ended")


def notes(debug: Any) -> list[str]:
    return [line.text.partition(" with graph mode")[0] for line in events_of(debug, LogLine)]
