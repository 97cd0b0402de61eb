"""One small network with a cell that can go wrong, trained in every way MindSpore knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import mindspore as ms
import numpy as np
from mindspore import dataset, nn, ops

from misstep.adapters.registry import adapter_named
from misstep.core.levels import Level
from misstep.testing.contract.recording import Recording

Style = Literal["functional", "one_step", "model"]
STYLES: tuple[Style, ...] = ("functional", "one_step", "model")

Fault = Literal["", "log", "sqrt", "exp", "log_relu", "optimizer"]

INPUTS = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
TARGETS = np.random.default_rng(1).standard_normal((4, 2)).astype(np.float32)
FIRST_BAD_STEP = 2


class Bad(nn.Cell):
    """Healthy in its first call, faulty from the second on."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.fault = fault
        self.calls = 0

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        self.calls += 1
        if self.calls >= FIRST_BAD_STEP:
            if self.fault in ("log", "log_relu"):
                return ops.log(x * 0 - 1)  # planted
            if self.fault == "sqrt":
                return ops.sqrt(x * 0)  # planted
            if self.fault == "exp":
                return ops.exp(x * 0 + 100)  # planted
        return ops.tanh(x)


class Net(nn.Cell):
    def __init__(self, fault: Fault = "") -> None:
        super().__init__()
        self.fc1, self.bad = nn.Dense(3, 5), Bad(fault)
        self.act = nn.ReLU() if fault == "log_relu" else nn.Tanh()
        self.fc2 = nn.Dense(5, 2)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.fc2(self.act(self.bad(self.fc1(x))))


class Plain(nn.Cell):
    """Without a counter, so that it can be compiled."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Dense(3, 5), nn.Tanh(), nn.Dense(5, 2)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.fc2(self.act(self.fc1(x)))


@dataclass
class Result:
    losses: list[float]
    weights: dict[str, bytes]


def settle(model: nn.Cell) -> nn.Cell:
    """The same weights in every process and every training."""
    random = np.random.default_rng(5)
    for parameter in model.trainable_params():
        parameter.asnumpy()[...] = random.standard_normal(parameter.shape) * 0.5
    return model.set_train()


def train(
    style: Style,
    fault: Fault = "",
    *,
    steps: int = 3,
    mode: int = ms.PYNATIVE_MODE,
    optimizer_of: Callable[[Any], nn.Cell] = lambda parameters: nn.Momentum(parameters, 0.1, 0.9),
    model_of: Callable[[Fault], nn.Cell] = Net,
) -> Result:
    """The user's program: it knows nothing of misstep."""
    ms.set_context(mode=mode)
    model = settle(model_of(fault))
    optimizer = optimizer_of(model.trainable_params())
    x, target = ms.Tensor(INPUTS), ms.Tensor(TARGETS)
    losses: list[float] = []

    def plant(step: int) -> None:
        if fault == "optimizer" and step == FIRST_BAD_STEP:
            optimizer.learning_rate.asnumpy()[...] = np.nan

    if style == "functional":
        loss_of = nn.MSELoss()

        def forward(x: ms.Tensor, target: ms.Tensor) -> ms.Tensor:
            return loss_of(model(x), target)

        differentiate = ms.value_and_grad(forward, None, optimizer.parameters)
        for step in range(1, steps + 1):
            plant(step)
            loss, gradients = differentiate(x, target)
            optimizer(gradients)
            losses.append(float(loss.asnumpy()))
    elif style == "one_step":
        network = nn.TrainOneStepCell(nn.WithLossCell(model, nn.MSELoss()), optimizer)
        for step in range(1, steps + 1):
            plant(step)
            losses.append(float(network(x, target).asnumpy()))
    else:

        class Note(ms.train.Callback):
            def on_train_step_begin(self, run_context: Any) -> None:
                plant(run_context.original_args().cur_step_num)

            def on_train_step_end(self, run_context: Any) -> None:
                losses.append(float(run_context.original_args().net_outputs.asnumpy()))

        rows = [(INPUTS, TARGETS)] * steps
        data = dataset.GeneratorDataset(rows, ["x", "target"], shuffle=False, num_parallel_workers=1)
        ms.Model(model, nn.MSELoss(), optimizer).train(1, data, callbacks=[Note()], dataset_sink_mode=False)
    return Result(losses, {p.name: p.asnumpy().tobytes() for p in model.trainable_params()})


def watch(*args: Any, level: Level = "module", **options: Any) -> tuple[Recording, Result]:
    """The same program, with misstep in the process."""
    recording, adapter = Recording(), adapter_named("mindspore")
    adapter.attach(recording)
    try:
        adapter.set_level(level)
        result = train(*args, **options)
    finally:
        adapter.detach()
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert [f"{where}: {error!r}" for where, error in recording.troubles] == []
    return recording, result
