"""The two networks of models.py in MindSpore, smaller: an eager step on a CPU takes its time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops


class Basic(nn.Cell):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, "pad", 1)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, "pad", 1)
        self.bn2 = nn.BatchNorm2d(outside)
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()
        self.short = nn.Conv2d(inside, outside, 1, stride, "valid")

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        y = self.relu1(self.bn1(self.conv1(x)))
        return self.relu2(self.bn2(self.conv2(y)) + self.short(x))


class Cnn(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.SequentialCell(nn.Conv2d(3, 32, 3, 1, "pad", 1), nn.BatchNorm2d(32), nn.ReLU())
        self.layers = nn.SequentialCell(Basic(32, 64, 2), Basic(64, 128, 2), Basic(128, 256, 2))
        self.fc = nn.Dense(256, 10)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.fc(self.layers(self.stem(x)).mean((2, 3)))


class Layer(nn.Cell):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, d // heads
        self.norm1, self.norm2 = nn.LayerNorm((d,)), nn.LayerNorm((d,))
        self.q, self.k, self.v, self.proj = (nn.Dense(d, d) for _ in range(4))
        self.up, self.act, self.down = nn.Dense(d, 4 * d), nn.GELU(), nn.Dense(4 * d, d)

    def split(self, x: ms.Tensor) -> ms.Tensor:
        return x.reshape(x.shape[0], x.shape[1], self.heads, self.size).swapaxes(1, 2)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        y = self.norm1(x)
        scores = ops.matmul(self.split(self.q(y)), self.split(self.k(y)).swapaxes(2, 3)) / self.size**0.5
        mixed = ops.matmul(ops.softmax(scores, -1), self.split(self.v(y))).swapaxes(1, 2).reshape(x.shape)
        x = x + self.proj(mixed)
        return x + self.down(self.act(self.up(self.norm2(x))))


class Transformer(nn.Cell):
    def __init__(self, *, layers: int = 4, d: int = 128, words: int = 256) -> None:
        super().__init__()
        self.words = nn.Embedding(words, d)
        self.blocks = nn.SequentialCell(*[Layer(d, 4) for _ in range(layers)])
        self.norm = nn.LayerNorm((d,))
        self.head = nn.Dense(d, words)

    def construct(self, tokens: ms.Tensor) -> ms.Tensor:
        return self.head(self.norm(self.blocks(self.words(tokens))))


def training(case: str, *, graph: bool = False) -> Callable[[], Any]:
    """A function that trains one step of `cnn` or `gpt`, in PyNative or in graph mode, and waits for it."""
    ms.set_context(mode=ms.GRAPH_MODE if graph else ms.PYNATIVE_MODE)
    ms.set_seed(0)
    rng = np.random.default_rng(0)
    if case == "cnn":
        net: nn.Cell = Cnn()
        batch = ms.Tensor(rng.standard_normal((8, 3, 32, 32)).astype(np.float32))
        target = ms.Tensor(rng.integers(0, 10, 8).astype(np.int32))
    else:
        net = Transformer()
        tokens = rng.integers(0, 256, (8, 64)).astype(np.int32)
        batch, target = ms.Tensor(tokens), ms.Tensor(np.roll(tokens, -1, 1))
    net.set_train()
    optimizer = nn.Adam(net.trainable_params(), 1e-4)

    def forward(batch: ms.Tensor, target: ms.Tensor) -> ms.Tensor:
        out = net(batch)
        return ops.cross_entropy(out.reshape(-1, out.shape[-1]), target.reshape(-1))

    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)

    def step() -> None:
        loss, gradients = differentiate(batch, target)
        optimizer(gradients)
        loss.asnumpy()
        optimizer.parameters[0].asnumpy()  # MindSpore runs ahead of Python

    return step
