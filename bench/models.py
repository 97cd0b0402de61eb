"""The networks the benchmarks train: a ResNet-18-like CNN, a small GPT, and a tiny MLP whose step takes a fifth of a
millisecond, where every microsecond of ours shows. Each comes with data and a training step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


class Basic(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.short: nn.Module = nn.Identity()
        if stride != 1 or inside != outside:
            self.short = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.short(x))


class ResNet18(nn.Module):
    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
        widths = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        self.layers = nn.Sequential(*[nn.Sequential(Basic(a, b, s), Basic(b, b, 1)) for a, b, s in widths])
        self.fc = nn.Linear(512, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.layers(self.stem(x)).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.drop(self.proj(y.transpose(1, 2).reshape(b, t, d)))


class Layer(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = Attention(d, heads)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, *, layers: int = 6, d: int = 256, heads: int = 8, words: int = 512, length: int = 128) -> None:
        super().__init__()
        self.words = nn.Embedding(words, d)
        self.places = nn.Embedding(length, d)
        self.blocks = nn.ModuleList(Layer(d, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, words, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def training(case: str, *, seed: int = 0) -> Callable[[], Any]:
    """A function that trains one step of the named case: `cnn`, `gpt`, or two hundred steps of `tiny`."""
    torch.manual_seed(seed)
    if case == "tiny":
        return _tiny_steps(200)
    if case == "cnn":
        model: nn.Module = ResNet18()
        batch, target = torch.randn(8, 3, 64, 64), torch.randint(0, 10, (8,))
    else:
        model = GPT()
        batch = torch.randint(0, 512, (8, 128))
        target = batch.roll(-1, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> Any:
        optimizer.zero_grad()
        out = model(batch)
        loss = F.cross_entropy(out.flatten(0, -2), target.flatten())
        loss.backward()
        optimizer.step()
        return loss

    step.model, step.optimizer = model, optimizer  # type: ignore[attr-defined]
    return step


def _tiny_steps(count: int) -> Callable[[], Any]:
    """So many steps of a 16-32-1 MLP as a loop over a simulator has them: draw a batch, train, read the loss."""
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def steps() -> Any:
        total = 0.0
        for _ in range(count):
            batch, target = torch.randn(32, 16), torch.randn(32, 1)
            optimizer.zero_grad()
            loss = F.mse_loss(model(batch), target)
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total

    steps.model, steps.optimizer = model, optimizer  # type: ignore[attr-defined]
    return steps
