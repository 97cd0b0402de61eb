"""A compiled step, run in PyNative: seen down to the operator, compared with graph mode, and without a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import pytest
from mindspore import nn, ops
from tests.adapters.mindspore.test_graph_mode import GRAPH, jit_training
from tests.adapters.mindspore.trainings import INPUTS, STYLES, TARGETS, Plain, Result, Style, settle, train

from misstep.adapters.base import Adapter
from misstep.adapters.mindspore.graph.compare_modes import Modes
from misstep.adapters.registry import adapter_named
from misstep.capture.step.verdict import find_verdict
from misstep.core.finding import Verdict
from misstep.core.levels import Level
from misstep.testing.contract.recording import Recording


class Walking(Recording):
    """Asks for a replay of whatever went wrong."""

    def __init__(self, *, stepping: bool = False) -> None:
        super().__init__(stepping=stepping)
        self.modes: list[Modes] = []
        self.found: list[tuple[str, Verdict | None]] = []

    def before_update(self, adapter: Adapter) -> None:
        super().before_update(adapter)
        self._again(adapter)

    def after_update(self, adapter: Adapter) -> None:
        super().after_update(adapter)
        if adapter.traits.seen_too_late:
            self._again(adapter)

    def _again(self, adapter: Any) -> None:
        if not self.found and any(self.frame.nonfinite(row) for row in range(len(self.frame))):
            replayed = adapter.replay()
            head, summary = replayed.frame.finish()
            self.found.append((replayed.exact, find_verdict(self.catalog, replayed.frame, head, summary)))
            self.frame = replayed.frame
            adapter.take_over(replayed)


@pytest.fixture
def adapter() -> Iterator[Any]:
    one: Any = adapter_named("mindspore")
    yield one
    one.eager_steps = one.on_modes = one.walks = None


def watch(
    adapter: Any,
    run: Callable[[], Result],
    *,
    eager_steps: list[tuple[int, int]] | None = None,
    stepping: bool = False,
    level: Level = "guard",
) -> tuple[Walking, Result]:
    recording = Walking(stepping=stepping)
    adapter.eager_steps, adapter.on_modes = eager_steps, recording.modes.append
    adapter.attach(recording)
    try:
        adapter.set_level(level)
        adapter.arm_replay(True)
        result = run()
    finally:
        adapter.detach()
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert [f"{where}: {error!r}" for where, error in recording.troubles] == []
    return recording, result


@pytest.mark.parametrize("style", [*STYLES, "jit"])
def test_every_step_in_both_modes_agrees_and_leaves_no_trace(style: Any, adapter: Any) -> None:
    run = jit_training if style == "jit" else lambda: train(style, **GRAPH)
    bare = run()
    recording, result = watch(adapter, run, eager_steps=[(1, 99)])
    assert [modes.agree for modes in recording.modes] == [True] * 3, recording.modes
    assert result == bare


class Failing(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Dense(3, 5), nn.Dense(5, 2)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        y = self.fc1(x)
        return self.fc2(ops.log(y * 0 - 1))  # planted


@pytest.mark.parametrize("style", STYLES)
def test_a_compiled_step_that_goes_wrong_is_named_by_operator_and_line(style: Style, adapter: Any) -> None:
    options: dict[str, Any] = {"mode": ms.GRAPH_MODE, "model_of": lambda fault: Failing(), "steps": 2}
    recording, result = watch(adapter, lambda: train(style, **options))
    ((exact, verdict),) = recording.found
    assert exact.startswith("in PyNative: ")
    assert verdict is not None
    assert (verdict.step, verdict.phase, verdict.op, verdict.precision) == (1, "forward", "Log", "operator")
    assert verdict.source is not None
    assert verdict.source.code.endswith("# planted")
    assert result.weights == train(style, **options).weights


def test_weights_that_cost_too_much_to_keep_are_not_kept_and_that_is_said(
    adapter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("misstep.adapters.mindspore.graph.pynative._ALWAYS_HELD_MB", 0)
    monkeypatch.setattr("misstep.adapters.mindspore.graph.pynative._AFFORDABLE", 0.0)
    options: dict[str, Any] = {"mode": ms.GRAPH_MODE, "model_of": lambda fault: Failing(), "steps": 1}
    with pytest.raises(AssertionError, match=r"keeping 0 MB of weights.*MISSTEP_PYNATIVE=1 misstep run"):
        watch(adapter, lambda: train("one_step", **options))


def test_whoever_walks_from_node_to_node_walks_through_a_compiled_step(adapter: Any) -> None:
    bare = train("one_step", **GRAPH)
    recording, result = watch(adapter, lambda: train("one_step", **GRAPH), stepping=True, level="module")
    names = [recording.catalog.graph.nodes[place.node].name for place in recording.places if place.when == "before"]
    assert [name for name in names[:8] if "/" not in name][:4] == ["Plain", "fc1", "act", "fc2"]
    assert result == bare


def test_a_network_that_python_changes_under_the_compiler_is_told(adapter: Any) -> None:
    class Scaled(Plain):
        scale = 1.0

        def construct(self, x: ms.Tensor) -> ms.Tensor:
            return self.fc2(self.act(self.fc1(x))) * self.scale

    def run() -> Result:
        ms.set_context(mode=ms.GRAPH_MODE)
        model, loss_of = settle(Scaled()), nn.MSELoss()
        optimizer = nn.SGD(model.trainable_params(), 0.01)
        network = nn.TrainOneStepCell(nn.WithLossCell(model, loss_of), optimizer)
        losses = []
        for scale in (1.0, 2.0):
            model.scale = scale  # compiled as a constant: graph mode goes on with the first one
            losses.append(float(network(ms.Tensor(INPUTS), ms.Tensor(TARGETS)).asnumpy()))
        return Result(losses, {})

    recording, result = watch(adapter, run, eager_steps=[(1, 9)])
    assert [modes.agree for modes in recording.modes] == [True, False]
    assert recording.modes[1].text.startswith(f"the modes differ: loss {result.losses[1]:.7g} in graph mode, ")
