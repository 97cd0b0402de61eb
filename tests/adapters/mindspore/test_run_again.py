"""A step of MindSpore in PyNative, run again from what the guard held: exact, precise, and unnoticed."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops
from tests.adapters.mindspore.trainings import INPUTS, STYLES, TARGETS, Fault, Result, Style, settle, train

from misstep.adapters.base import Adapter
from misstep.adapters.registry import adapter_named
from misstep.adapters.replaying.protocol import Replayer
from misstep.testing.contract.recording import Replaying


class Repeating(Replaying):
    """Runs every step again before its update."""

    def __init__(self) -> None:
        super().__init__()
        self.guilty: list[list[bool]] = []

    def before_update(self, adapter: Adapter) -> None:
        super().before_update(adapter)
        assert isinstance(adapter, Replayer)
        self.keep(adapter.replay())
        batch = adapter.batch()
        if batch is not None:
            self.guilty.append([adapter.bad_with([one], []) for one in range(batch.size)])


def watched(run: Any) -> tuple[Repeating, Result]:
    recording, adapter = Repeating(), adapter_named("mindspore")
    adapter.attach(recording)
    try:
        adapter.set_level("guard")
        adapter.arm_replay(True)  # type: ignore[attr-defined]
        result = run()
    finally:
        adapter.detach()
    assert [f"{where}: {error!r}" for where, error in recording.troubles] == []
    return recording, result


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("fault", "phase", "node"),
    [("log", "forward", "bad/Log"), ("sqrt", "backward", "bad/SqrtGrad"), ("exp", "forward", "bad/Exp")],
)
def test_a_fault_the_guard_met_is_named_by_operator_and_line(style: Style, fault: Fault, phase: str, node: str) -> None:
    recording, result = watched(lambda: train(style, fault))
    assert [replayed.exact for replayed in recording.replays] == ["exact"] * 3
    assert recording.found[0] is None
    verdict = recording.found[1]
    assert verdict is not None
    assert (verdict.step, verdict.phase, verdict.node, verdict.precision) == (2, phase, node, "operator")
    assert verdict.source is not None
    assert verdict.source.code.endswith("# planted")
    # The network counts its calls, and is faulty from the second on: a replay must not count.
    assert result.losses == pytest.approx(train(style, fault).losses, abs=0.0, nan_ok=True)
    assert result.weights == train(style, fault).weights


class Drawing(nn.Cell):
    """Everything a forward can leave behind: masks, moving means, a counter, numbers of numpy."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.norm, self.drop = nn.Dense(3, 5), nn.BatchNorm1d(5), nn.Dropout(p=0.4)
        self.fc2, self.calls = nn.Dense(5, 2), 0

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        self.calls += 1
        y = ops.dropout(self.drop(self.norm(self.fc1(x))), p=0.2)
        return self.fc2(y) * float(np.random.rand()) + self.calls


def drawing(steps: int = 5) -> Result:
    ms.set_seed(3)
    np.random.seed(3)
    model = settle(Drawing())
    optimizer = nn.Adam(model.trainable_params(), 0.05)

    def forward(x: ms.Tensor, target: ms.Tensor) -> ms.Tensor:
        return ((model(x) - target) ** 2).mean()

    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)
    losses = []
    for _ in range(steps):
        loss, gradients = differentiate(ms.Tensor(INPUTS), ms.Tensor(TARGETS))
        optimizer(gradients)
        losses.append(float(loss.asnumpy()))
    return Result(losses, {p.name: p.asnumpy().tobytes() for p in model.get_parameters()})


def test_random_numbers_moving_means_and_counters_are_put_back() -> None:
    bare = drawing()
    recording, result = watched(drawing)
    assert [replayed.exact for replayed in recording.replays] == ["exact"] * 5
    assert result == bare


def test_the_guilty_samples_of_a_batch_are_found_by_running_parts_of_it() -> None:
    def poisoned() -> Result:
        model = settle(nn.Dense(3, 2))
        optimizer = nn.SGD(model.trainable_params(), 0.1)
        inputs = INPUTS.copy()
        inputs[2, 1] = np.nan

        def forward(x: ms.Tensor, target: ms.Tensor) -> ms.Tensor:
            return ((model(x) - target) ** 2).mean()

        _, gradients = ms.value_and_grad(forward, None, optimizer.parameters)(ms.Tensor(inputs), ms.Tensor(TARGETS))
        optimizer(gradients)
        return Result([], {})

    recording, _ = watched(poisoned)
    assert recording.guilty == [[False, False, True, False]]


def test_a_batch_written_to_before_the_check_is_not_called_exact() -> None:
    def careless() -> Result:
        model = settle(nn.Dense(3, 2))
        optimizer = nn.SGD(model.trainable_params(), 0.1)
        batch = ms.Tensor(INPUTS)

        def forward(x: ms.Tensor) -> ms.Tensor:
            return model(x).sum()

        _, gradients = ms.value_and_grad(forward, None, optimizer.parameters)(batch)
        batch[0] = 9.0
        optimizer(gradients)
        return Result([], {})

    recording, _ = watched(careless)
    assert recording.replays[0].exact.startswith("not exact")
    assert "overwritten in place" in recording.replays[0].exact
