"""An update of MindSpore, run again: bit for bit, operator by operator, and unnoticed by the training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import mint, nn, ops
from mindspore.experimental import optim
from tests.adapters.mindspore.trainings import INPUTS, TARGETS

from misstep.adapters.mindspore.replay.state import Copies
from misstep.adapters.registry import adapter_named
from misstep.core.levels import Level
from misstep.testing.contract.recording import Recording
from misstep.testing.contract.replay import Repeating


class Own(nn.Optimizer):
    """All that compiled optimizers cannot have: a counter, state in lists and dicts, and random numbers."""

    def __init__(self, weights: Any) -> None:
        super().__init__(0.1, weights)
        self.steps = 0
        self.kept: dict[str, list[ms.Tensor]] = {"squares": [ops.zeros_like(one) for one in self.parameters]}
        self.elsewhere = self.kept["squares"]
        self.view = ops.arange(12).reshape(3, 4).T

    def construct(self, gradients: Any) -> bool:
        self.steps += 1
        for place, (weight, gradient) in enumerate(zip(self.parameters, gradients)):
            mean = 0.9 * self.kept["squares"][place] + gradient * gradient
            self.kept["squares"][place] = mean
            noise = 1e-3 * float(np.random.standard_normal()) / self.steps
            size = ops.sqrt(mean)
            new = weight - 0.1 * (gradient + noise) / size  # planted in the update
            if place % 2:
                weight.set_data(new)
            else:
                ops.assign(weight, new)
        return True


Make = Callable[[Any], nn.Cell]

OPTIMIZERS: dict[str, Make] = {
    "nn.SGD": lambda weights: nn.SGD(weights, 0.1, momentum=0.9, weight_decay=0.01),
    "nn.Momentum": lambda weights: nn.Momentum(weights, 0.1, 0.9),
    "nn.Adam": lambda weights: nn.Adam(weights, 0.1),
    "nn.Adam, scheduled": lambda weights: nn.Adam(weights, nn.ExponentialDecayLR(0.1, 0.9, 2)),
    "nn.AdamWeightDecay": lambda weights: nn.AdamWeightDecay(weights, 0.1),
    "nn.RMSProp": lambda weights: nn.RMSProp(weights, 0.1),
    "nn.Adagrad": lambda weights: nn.Adagrad(weights, learning_rate=0.1),
    "nn.Rprop": lambda weights: nn.Rprop(weights, 0.1),
    "experimental Adam": lambda weights: optim.Adam(weights, 0.1),
    "experimental SGD": lambda weights: optim.SGD(weights, 0.1),
    "mint.optim.Adam": lambda weights: mint.optim.Adam(weights, 0.1),
    "one of one's own": Own,
}


def train(make: Make, spoil: Callable[[Any], None] | None = None, steps: int = 3) -> tuple[bytes, Any]:
    """Everything a training leaves behind: weights, state and the next random numbers."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_seed(1)
    np.random.seed(1)
    net = nn.SequentialCell(nn.Dense(3, 5), nn.Tanh(), nn.Dense(5, 2))
    optimizer = make(net.trainable_params())
    differentiate = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).mean(), None, optimizer.parameters)
    for step in range(steps):
        _, gradients = differentiate(ms.Tensor(INPUTS), ms.Tensor(TARGETS))
        if spoil is not None and step == steps - 1:
            spoil(optimizer)
            gradients = tuple(ops.zeros_like(one) for one in gradients)
        optimizer(gradients)  # planted
    parts = [one.asnumpy().tobytes() for one in (*optimizer.parameters, *optimizer.get_parameters())]
    if isinstance(optimizer, Own):
        assert optimizer.elsewhere is optimizer.kept["squares"]
        parts += [one.asnumpy().tobytes() for one in optimizer.elsewhere]
        parts.append(str(optimizer.steps).encode())
    return b"".join(parts) + np.random.standard_normal(3).tobytes(), optimizer


def watched(
    make: Make, spoil: Callable[[Any], None] | None = None, level: Level = "guard", recording: Recording | None = None
) -> tuple[Any, bytes]:
    recording, adapter = recording or Repeating(), adapter_named("mindspore")
    adapter.attach(recording)
    try:
        adapter.set_level(level)
        adapter.arm_replay(level != "op")  # type: ignore[attr-defined]
        left, _ = train(make, spoil)
    finally:
        adapter.detach()
    assert [f"{where}: {error!r}" for where, error in recording.troubles] == []
    return recording, left


@pytest.fixture(autouse=True)
def affordable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Toys take no time: whatever is held is too much for them."""
    monkeypatch.setattr("misstep.adapters.replaying.affordable.SHARE", 1.0)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_update_comes_out_bit_for_bit_and_leaves_no_trace(name: str) -> None:
    recording, left = watched(OPTIMIZERS[name])
    assert [replayed.exact for replayed in recording.replays] == ["exact"] * 3
    assert recording.found == [None] * 3
    graph = recording.catalog.graph
    operators = [node for node in graph.nodes if node.kind == "operator"]
    assert operators
    assert {node.phase for node in operators} == {"optimizer"}
    assert left == train(OPTIMIZERS[name])[0]


def test_copies_leave_views_alone() -> None:
    whole, part = ms.Tensor(np.ones((3, 4), np.float32)), ms.Tensor(np.ones((1, 1), np.float32)).broadcast_to((64, 64))
    copies = Copies([whole, whole.T, part])
    assert copies.tensors == [whole]
    whole[0] = 5
    assert copies.differing() == [whole]
    copies.put_back()
    assert copies.differing() == []
    assert float(whole.sum()) == 12.0


def no_second_moment(optimizer: Any) -> None:
    for moment in optimizer.moment2:
        moment.asnumpy()[...] = 0


def endless_rate(optimizer: Any) -> None:
    optimizer.learning_rate.asnumpy()[...] = np.inf


def forget(optimizer: Own) -> None:
    optimizer.kept["squares"][:] = [ops.zeros_like(one) for one in optimizer.parameters]


FAULTS: dict[str, tuple[Make, Callable[[Any], None], str, str]] = {
    "an Adam without epsilon": (
        lambda weights: nn.Adam(weights, 0.1, eps=1e-45), no_second_moment, "optimizer/Adam", "# planted"),
    "an endless rate": (lambda weights: nn.SGD(weights, 0.1), endless_rate, "optimizer/SGD", "# planted"),
    "one of one's own": (Own, forget, "optimizer/Div", "# planted in the update"),
}  # fmt: skip


@pytest.mark.parametrize("level", ["guard", "op"])
@pytest.mark.parametrize("name", FAULTS)
def test_a_bad_update_is_named_by_operator_and_line(name: str, level: Level) -> None:
    make, spoil, node, line = FAULTS[name]
    recording, left = watched(make, spoil, level, Recording() if level == "op" else None)
    verdict = recording.verdict() if level == "op" else recording.found[-1]
    assert verdict is not None
    assert (verdict.step, verdict.phase, verdict.node, verdict.precision) == (3, "optimizer", node, "operator")
    assert verdict.source is not None
    if level == "op" or make is Own:  # otherwise the nearest line that is not MindSpore's is where this test listens
        assert verdict.source.code.endswith(line)
    assert left == train(make, spoil)[0]
