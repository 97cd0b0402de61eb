"""One small vocabulary for both frameworks: a `kit` makes the same network, loss and optimizer in either."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from numpy.typing import NDArray

Array = NDArray[Any]

WEIGHT: Array = np.array([[0.5, -0.25, 0.125, 1.0]], np.float32)
BIAS: Array = np.array([0.1], np.float32)


class Kit(Protocol):
    name: str
    suffix: str

    def linear(self, weight: Array = ..., bias: Array = ...) -> Any: ...
    def dropout_net(self) -> Any: ...
    def mse(self) -> Any: ...
    def cross_entropy(self) -> Any: ...
    def sgd(self, network: Any, rate: float = ...) -> Any: ...
    def momentum(self, network: Any, rate: float = ...) -> Any: ...
    def tensor(self, value: Any) -> Any: ...
    def weight(self, network: Any) -> Array: ...
    def rate(self, optimizer: Any) -> float: ...


class TorchKit:
    name = "torch"
    suffix = ".pt"

    def linear(self, weight: Array = WEIGHT, bias: Array = BIAS) -> Any:
        import torch

        network = torch.nn.Linear(weight.shape[1], weight.shape[0])
        network.load_state_dict({"weight": torch.tensor(weight), "bias": torch.tensor(bias)})
        return network

    def dropout_net(self) -> Any:
        import torch

        return torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Dropout(0.5))

    def mse(self) -> Any:
        import torch

        return torch.nn.MSELoss()

    def cross_entropy(self) -> Any:
        import torch

        return torch.nn.CrossEntropyLoss()

    def sgd(self, network: Any, rate: float = 0.1) -> Any:
        import torch

        return torch.optim.SGD(network.parameters(), rate)

    def momentum(self, network: Any, rate: float = 0.1) -> Any:
        import torch

        return torch.optim.SGD(network.parameters(), rate, momentum=0.9)

    def tensor(self, value: Any) -> Any:
        import torch

        return torch.as_tensor(np.asarray(value))

    def weight(self, network: Any) -> Array:
        return np.array(network.weight.detach().numpy())

    def rate(self, optimizer: Any) -> float:
        return float(optimizer.param_groups[0]["lr"])


class MindSporeKit:
    name = "mindspore"
    suffix = ".ckpt"

    def linear(self, weight: Array = WEIGHT, bias: Array = BIAS) -> Any:
        import mindspore as ms

        return ms.nn.Dense(weight.shape[1], weight.shape[0], weight_init=ms.Tensor(weight), bias_init=ms.Tensor(bias))

    def dropout_net(self) -> Any:
        import mindspore as ms

        return ms.nn.SequentialCell(ms.nn.Dense(4, 1), ms.nn.Dropout(p=0.5))

    def mse(self) -> Any:
        import mindspore as ms

        return ms.nn.MSELoss()

    def cross_entropy(self) -> Any:
        import mindspore as ms

        return ms.nn.CrossEntropyLoss()

    def sgd(self, network: Any, rate: float = 0.1) -> Any:
        import mindspore as ms

        return ms.nn.SGD(network.trainable_params(), rate)

    def momentum(self, network: Any, rate: float = 0.1) -> Any:
        import mindspore as ms

        return ms.nn.Momentum(network.trainable_params(), rate, 0.9)

    def tensor(self, value: Any) -> Any:
        import mindspore as ms

        return ms.Tensor(np.asarray(value))

    def weight(self, network: Any) -> Array:
        return np.array(network.weight.asnumpy())

    def rate(self, optimizer: Any) -> float:
        return float(optimizer.learning_rate.asnumpy())


KITS: dict[str, Kit] = {"torch": TorchKit(), "mindspore": MindSporeKit()}


@pytest.fixture(params=["torch", pytest.param("mindspore", marks=pytest.mark.mindspore)])
def kit(request: pytest.FixtureRequest) -> Kit:
    """The same network, loss and optimizer, in each framework in turn."""
    return KITS[request.param]


@pytest.fixture
def graph_mode() -> Iterator[None]:
    """MindSpore compiles whole graphs inside."""
    import mindspore as ms

    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=before)


def regression(batches: int = 5, *, seed: int = 0, size: int = 8) -> list[tuple[Array, Array]]:
    """Batches of a line through four dimensions."""
    rng = np.random.default_rng(seed)
    slope = rng.normal(size=(4, 1)).astype(np.float32)
    data = [rng.normal(size=(size, 4)).astype(np.float32) for _ in range(batches)]
    return [(x, x @ slope) for x in data]


def losses_by_hand(batches: Sequence[tuple[Array, Array]], *, rate: float = 0.1, epochs: int = 1) -> list[float]:
    """What gradient descent on the mean squared error gives, in plain numpy."""
    weight, bias = WEIGHT.astype(np.float64).copy(), BIAS.astype(np.float64).copy()
    losses = []
    for _ in range(epochs):
        for x, y in batches:
            error = x @ weight.T + bias - y
            losses.append(float((error**2).mean()))
            weight -= rate * 2 * (error.T @ x) / len(x)
            bias -= rate * 2 * error.mean(axis=0)
    return losses
