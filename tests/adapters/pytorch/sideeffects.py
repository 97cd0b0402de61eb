"""Trainings whose forwards leave traces beside tensors: generators, counters everywhere, a scripted network."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from tests.adapters.pytorch.trainings import Make, Step
from torch import nn
from torch.nn import functional as F

TOLD: list[float] = []
TOTAL = 0


class Noisy(nn.Module):
    """Draws from generators it made itself."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.own = torch.Generator().manual_seed(1)
        self.numbers, self.old_numbers = np.random.default_rng(1), np.random.RandomState(1)
        self.dice = random.Random(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        noise = float(self.numbers.normal()) + float(self.old_numbers.normal()) + self.dice.random()
        return self.fc(x + torch.randn(x.shape, generator=self.own) + noise)

    @property
    def calls(self) -> Any:
        """For the fingerprint."""
        states = self.numbers.bit_generator.state, self.old_numbers.get_state()[1].tolist(), self.dice.getstate()
        return states, self.own.get_state().tolist()


class Meter:
    def __init__(self) -> None:
        self.count, self.kept = 0, {"sums": [0]}

    def __call__(self, module: nn.Module, given: Any, out: torch.Tensor) -> None:
        self.count += 1
        self.kept["sums"][0] += 1


class Through(torch.autograd.Function):
    """Passes on what it gets, and keeps books about it."""

    times = 0

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        Through.times += 1
        TOLD.append(1.0)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        count()
        return gradient


def count() -> None:
    global TOTAL
    TOTAL += 1


class Busy(nn.Module):
    """Counts in its class, in globals, in objects and in hooks."""

    met = 0

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.meter, self.gradients = nn.Linear(4, 2), Meter(), []
        self.fc.register_forward_hook(Meter())

    def note(self) -> None:
        Busy.met += 1
        self.meter.count += 1
        count()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.note()
        out = Through.apply(self.fc(x))
        out.register_hook(lambda gradient: self.gradients.append(TOLD.append(2.0)))
        return out

    @property
    def calls(self) -> Any:
        """For the fingerprint."""
        (hook,) = self.fc._forward_hooks.values()
        meters = [(meter.count, meter.kept) for meter in (self.meter, hook)]
        return Busy.met, meters, len(self.gradients), list(TOLD), TOTAL, Through.times


def noisy() -> tuple[Step, list[nn.Module]]:
    return _trained(Noisy())


def busy() -> tuple[Step, list[nn.Module]]:
    global TOTAL
    TOTAL = Busy.met = Through.times = 0
    TOLD.clear()
    return _trained(Busy())


def scripted() -> tuple[Step, list[nn.Module]]:
    return _trained(torch.jit.script(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))))


def _trained(model: Any) -> tuple[Step, list[nn.Module]]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        out = Through.apply(model(torch.randn(8, 4)))
        loss = F.mse_loss(out, torch.zeros(8, 2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step, [model]


WITH_TRACES: dict[str, Make] = {
    "generators of the network's own": noisy,
    "counters in classes, globals, objects and hooks": busy,
    "a scripted network": scripted,
}
