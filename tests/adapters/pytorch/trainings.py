"""Small trainings of every kind a replay has to repeat: each returns a function that trains one step."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

Step = Callable[[], None]
Make = Callable[[], tuple[Step, list[nn.Module]]]


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return self.head(F.relu(self.bn2(self.conv2(x))).mean((2, 3)))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, 2, d // 2).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(x)


class Gpt(nn.Module):
    def __init__(self, *, checkpointing: str = "") -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(32, 16), nn.Embedding(8, 16)
        self.blocks = nn.ModuleList(Block(16) for _ in range(2))
        self.head = nn.Linear(16, 32)
        self.checkpointing = checkpointing

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            if self.checkpointing:
                x = checkpoint(block, x, use_reentrant=self.checkpointing == "reentrant")
            else:
                x = block(x)
        return self.head(x)


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(4, 8, num_layers=2, dropout=0.2, batch_first=True), nn.Linear(8, 1)

    def forward(self, x: torch.Tensor, state: object = None) -> tuple[torch.Tensor, object]:
        y, state = self.lstm(x, state)
        return self.head(y[:, -1]), state


class Counting(nn.Module):
    """Draws from numpy and Python, counts its calls, and keeps the last output."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.calls = 0
        self._seen: list[int] = []
        self.last = torch.zeros(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self._seen.append(self.calls)
        y = self.fc(x) * (1 + 0.1 * self.calls) + float(np.random.randn()) + random.random() + 0.1 * self.last
        self.last = y.detach().mean(0)
        return y


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 2


def cnn() -> tuple[Step, list[nn.Module]]:
    model = Cnn()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step() -> None:
        x, y = torch.randn(8, 3, 8, 8), torch.randint(0, 4, (8,))
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()

    return step, [model]


def gpt(checkpointing: str = "", autocast: bool = False) -> tuple[Step, list[nn.Module]]:
    model = Gpt(checkpointing=checkpointing)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> None:
        tokens = torch.randint(0, 32, (4, 8))
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            out = model(tokens)
            loss = F.cross_entropy(out.flatten(0, 1), tokens.roll(-1, 1).flatten())
        loss.backward()
        optimizer.step()

    return step, [model]


def lstm(carried: bool = False) -> tuple[Step, list[nn.Module]]:
    model = Lstm()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    state = None

    def step() -> None:
        nonlocal state
        x, y = torch.randn(6, 5, 4), torch.randn(6, 1)
        out, after = model(x, state)
        loss = (out - y).square().mean()
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        if carried:
            state = tuple(part.detach() for part in after)

    return step, [model]


def gan() -> tuple[Step, list[nn.Module]]:
    generator = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    critic = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.2), nn.LeakyReLU(), nn.Linear(8, 1))
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
    optimizer_d = torch.optim.Adam(critic.parameters(), lr=1e-3)

    def step() -> None:
        real, fake = torch.randn(8, 2), generator(torch.randn(8, 4))
        optimizer_d.zero_grad()
        F.binary_cross_entropy_with_logits(critic(real), torch.ones(8, 1)).backward()
        F.binary_cross_entropy_with_logits(critic(fake.detach()), torch.zeros(8, 1)).backward()
        optimizer_d.step()
        optimizer_g.zero_grad()
        F.binary_cross_entropy_with_logits(critic(fake), torch.ones(8, 1)).backward()
        optimizer_g.step()

    return step, [generator, critic]


def accumulation() -> tuple[Step, list[nn.Module]]:
    model = Cnn()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        for _ in range(3):
            x, y = torch.randn(4, 3, 8, 8), torch.randint(0, 4, (4,))
            (F.cross_entropy(model(x), y) / 3).backward()
        optimizer.step()

    return step, [model]


def tail() -> tuple[Step, list[nn.Module]]:
    """Everything a loop may do between network and backward."""
    model, other = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    optimizer = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.01)
    criterion = nn.MSELoss()
    total = torch.zeros(())

    def step() -> None:
        x, y = torch.randn(8, 4), torch.randn(8, 4)
        a, b = model(x), other(x)
        a = a.clone()
        a[0].mul_(2)  # a write through a view
        a[1, :2] = b[1, :2]
        parts = list(a.unbind(0))
        first, *rest = a
        loss = criterion(torch.stack(parts), y) + Double.apply(b).pow(2).mean() + first.sum() + sum(rest).mean()
        if loss.item() > 0:
            loss = loss * 0.5
        loss = loss + 0.01 * sum(weight.square().sum() for weight in model.parameters())
        loss = loss + F.dropout(b, 0.3).mean() + (a * torch.randn_like(a)).mean()
        total.add_(loss.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step, [model, other]


def counting() -> tuple[Step, list[nn.Module]]:
    model = Counting()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        loss = model(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step, [model]


def penalty() -> tuple[Step, list[nn.Module]]:
    """A gradient penalty: autograd.grad inside the loss."""
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        x = torch.randn(8, 4, requires_grad=True)
        out = model(x)
        (gradient,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        loss = out.mean() + (gradient.norm(dim=1) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step, [model]


def spectral() -> tuple[Step, list[nn.Module]]:
    model = nn.Sequential(
        torch.nn.utils.spectral_norm(nn.Linear(4, 8)),
        nn.ReLU(),
        torch.nn.utils.parametrizations.spectral_norm(nn.Linear(8, 1)),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        loss = model(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step, [model]


def lbfgs() -> tuple[Step, list[nn.Module]]:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def step() -> None:
        x = torch.randn(8, 4)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss

        optimizer.step(closure)

    return step, [model]


def functional() -> tuple[Step, list[nn.Module]]:
    """No module at all."""
    weights = nn.ParameterList([nn.Parameter(torch.randn(4, 8) * 0.3), nn.Parameter(torch.randn(8, 1) * 0.3)])
    optimizer = torch.optim.SGD(weights.parameters(), lr=0.01)

    def step() -> None:
        x = torch.randn(8, 4)
        loss = F.dropout(torch.tanh(x @ weights[0]), 0.2).matmul(weights[1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step, [weights]


def fused_backward() -> tuple[Step, list[nn.Module]]:
    """A hook of the user moves the weights as soon as their gradients are there; another optimizer steps as usual."""
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model[0].parameters(), lr=0.01)

    def move(weight: torch.Tensor) -> None:
        with torch.no_grad():
            weight.sub_(weight.grad, alpha=0.01)

    for weight in model[2].parameters():
        weight.register_post_accumulate_grad_hook(move)

    def step() -> None:
        model.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()

    return step, [model]


EXACT: dict[str, Make] = {
    "cnn with batch norm and clipping": cnn,
    "gpt with dropout": gpt,
    "gpt in bfloat16": lambda: gpt(autocast=True),
    "gpt with checkpointing": lambda: gpt("plain"),
    "gpt with reentrant checkpointing": lambda: gpt("reentrant"),
    "lstm": lstm,
    "lstm with carried state": lambda: lstm(carried=True),
    "gan": gan,
    "gradient accumulation": accumulation,
    "a busy loop": tail,
    "numpy, random and attributes in forward": counting,
    "gradient penalty": penalty,
    "spectral norm": spectral,
    "lbfgs": lbfgs,
}
