"""MindSpore in graph mode: what compiled code lets out, told step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn
from tests.adapters.mindspore.trainings import INPUTS, STYLES, TARGETS, Plain, Result, Style, settle, train, watch

from misstep.adapters.mindspore import tensors
from misstep.adapters.registry import adapter_named
from misstep.core.levels import Level
from misstep.testing.contract.recording import Recording

GRAPH: dict[str, Any] = {"mode": ms.GRAPH_MODE, "model_of": lambda fault: Plain()}
WEIGHTS = ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]


@pytest.mark.parametrize("style", STYLES)
def test_a_compiled_loop_tells_steps_weights_and_loss(style: Style) -> None:
    recording, result = watch(style, **GRAPH)
    assert recording.events == ["going_live", *["before_update", "after_update", "step_done"] * 3]
    assert recording.addresses(0) == [f"{name}:param" for name in WEIGHTS]
    for step in (1, 2, 3):
        assert recording.addresses(step, "param") == [f"{name}:param" for name in WEIGHTS]
        assert recording.addresses(step, "loss") == ["loss:loss"]
    assert [update.loss for update in recording.updates] == result.losses
    last = np.frombuffer(result.weights["fc1.weight"], np.float32)
    assert recording.stats("fc1.weight:param@3").max == last.max()


def test_gradients_are_seen_where_the_optimizer_is_called_by_itself() -> None:
    recording, _ = watch("functional", **GRAPH)
    eager, _ = watch("functional", model_of=lambda fault: Plain())
    for name in WEIGHTS:
        compiled, seen = recording.stats(f"{name}:grad@1"), eager.stats(f"{name}:grad@1")
        # The compiler fuses and reorders: equal to rounding, not to the bit.
        assert (compiled.l2, compiled.shape) == (pytest.approx(seen.l2, rel=1e-4), seen.shape)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("level", ["off", "guard", "module", "op"])
def test_training_is_bit_identical_in_graph_mode(style: Style, level: Level) -> None:
    assert watch(style, level=level, **GRAPH)[1] == train(style, **GRAPH)


def test_a_graph_that_runs_is_not_waited_for_before_its_gradients_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """To wait for a loss is to spin: it doubled the CPU time of a step."""
    looked: list[Any] = []
    for name in ("memory_of", "glance_at", "number"):
        original = getattr(tensors, name)
        monkeypatch.setattr(
            tensors, name, lambda tensor, original=original: (looked.append(tensor), original(tensor))[1]
        )
    recording, adapter = Recording(), adapter_named("mindspore")
    adapter.attach(recording)
    try:
        adapter.set_level("guard")
        ms.set_context(mode=ms.GRAPH_MODE)
        model, loss_of = settle(Plain()), nn.MSELoss()
        optimizer = nn.Momentum(model.trainable_params(), 0.1, 0.9)

        def forward(x: ms.Tensor, target: ms.Tensor) -> ms.Tensor:
            return loss_of(model(x), target)

        differentiate = ms.value_and_grad(forward, None, optimizer.parameters)
        loss, gradients = differentiate(ms.Tensor(INPUTS), ms.Tensor(TARGETS))
        assert looked == []
        optimizer(gradients)
        assert [update.loss for update in recording.updates] == [float(loss.asnumpy())]
    finally:
        adapter.detach()
        ms.set_context(mode=ms.PYNATIVE_MODE)


def jit_training(steps: int = 3, *, poison_at: int = 0) -> Result:
    """A whole training step in one compiled function."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    model, loss_of = settle(Plain()), nn.MSELoss()
    optimizer = nn.Momentum(model.trainable_params(), 0.1, 0.9)

    def forward(x: ms.Tensor, target: ms.Tensor) -> ms.Tensor:
        return loss_of(model(x), target)

    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)

    @ms.jit
    def train_step(x: ms.Tensor, target: ms.Tensor) -> ms.Tensor:
        loss, gradients = differentiate(x, target)
        optimizer(gradients)
        return loss

    losses = []
    for step in range(1, steps + 1):
        inputs = INPUTS * np.float32(np.nan) if step == poison_at else INPUTS
        losses.append(float(train_step(ms.Tensor(inputs), ms.Tensor(TARGETS)).asnumpy()))
    return Result(losses, {p.name: p.asnumpy().tobytes() for p in model.trainable_params()})


def watch_jit(**options: Any) -> tuple[Recording, Result]:
    recording, adapter = Recording(), adapter_named("mindspore")
    adapter.attach(recording)
    try:
        adapter.set_level("module")
        result = jit_training(**options)
    finally:
        adapter.detach()
    assert recording.troubles == []
    return recording, result


def test_a_compiled_training_step_is_one_step() -> None:
    recording, result = watch_jit()
    assert recording.events == ["going_live", *["before_update", "after_update", "step_done"] * 3]
    assert [update.loss for update in recording.updates] == result.losses
    assert recording.addresses(2, "param") == [f"{name}:param" for name in WEIGHTS]
    assert result == jit_training()


def test_weights_that_turn_bad_in_compiled_code_are_seen_in_that_step() -> None:
    recording, _ = watch_jit(poison_at=2)
    assert all(row.stats.finite for row in recording.rows if row.address.step != 2 and row.address.step != 3)
    assert recording.verdict().step == 2
    assert not recording.stats("fc1.weight:param@2").finite


def test_a_compile_error_passes_unchanged_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MS_OM_PATH", str(tmp_path))  # where MindSpore leaves analyze_fail.ir

    class Broken(nn.Cell):
        def construct(self, x: ms.Tensor) -> ms.Tensor:
            return x + undefined_name  # type: ignore[name-defined]  # noqa: F821

    recording, adapter = Recording(), adapter_named("mindspore")
    adapter.attach(recording)
    try:
        ms.set_context(mode=ms.GRAPH_MODE)
        with pytest.raises(NameError) as raised:
            Broken()(ms.Tensor(INPUTS))
    finally:
        adapter.detach()
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert [error for error, _ in recording.exceptions] == [raised.value]
