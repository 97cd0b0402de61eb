"""Training with misstep is bit-identical to training without it, and nothing of the user's is touched."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from misstep.capture.session import Session

STEPS = 4
Training = Callable[[], tuple[list[torch.Tensor], dict[str, torch.Tensor]]]
"""Runs a whole training and gives (losses, final weights)."""


def seeded() -> None:
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)


def cnn() -> Any:
    seeded()
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(288, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(STEPS):
        loss = F.cross_entropy(model(torch.randn(4, 3, 8, 8)), torch.randint(0, 4, (4,)))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return losses, model.state_dict()


def transformer() -> Any:
    seeded()
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, dropout=0.2, batch_first=True), 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(STEPS):
        loss = model(torch.randn(3, 5, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, model.state_dict()


def lstm_with_accumulation() -> Any:
    seeded()
    model = nn.LSTM(6, 8, 2, dropout=0.3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(2):
            out, _ = model(torch.randn(5, 3, 6) * np.random.rand())
            loss = out.square().mean() / 2
            loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, model.state_dict()


def gan() -> Any:
    seeded()
    maker, judge = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8), nn.LeakyReLU(), nn.Linear(8, 1))
    of_maker, of_judge = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())
    losses = []
    for _ in range(STEPS):
        real, fake = torch.randn(6, 8), maker(torch.randn(6, 4))
        of_judge.zero_grad()
        loss = F.softplus(judge(fake.detach())).mean() + F.softplus(-judge(real)).mean()
        loss.backward()
        of_judge.step()
        of_maker.zero_grad()
        F.softplus(-judge(fake)).mean().backward()
        of_maker.step()
        losses.append(loss.detach())
    return losses, {**maker.state_dict(), **judge.state_dict(prefix="judge.")}


def lbfgs() -> Any:
    seeded()
    model = nn.Linear(5, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)
    x, y = torch.randn(20, 5), torch.randn(20, 1)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).detach() for _ in range(STEPS)]
    return losses, model.state_dict()


def checkpointed() -> Any:
    from torch.utils.checkpoint import checkpoint

    seeded()
    first = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Tanh())
    last = nn.Linear(8, 2)
    optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)
    losses = []
    for _ in range(STEPS):
        loss = last(checkpoint(first, torch.randn(4, 8), use_reentrant=False)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, first.state_dict()


def half_precision() -> Any:
    seeded()
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(STEPS):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.randn(4, 8)).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, model.state_dict()


TRAININGS: dict[str, Training] = {
    training.__name__: training
    for training in (cnn, transformer, lstm_with_accumulation, gan, lbfgs, checkpointed, half_precision)
}


@pytest.mark.parametrize("level", ["off", "guard", "module", "op"])
@pytest.mark.parametrize("name", TRAININGS)
def test_training_is_bit_identical(name: str, level: str, watched: Callable[..., Session]) -> None:
    bare_losses, bare_weights = TRAININGS[name]()
    streams = torch.get_rng_state(), np.random.rand(), random.random()
    session = watched(level)
    losses, weights = TRAININGS[name]()
    after = torch.get_rng_state(), np.random.rand(), random.random()
    session.end()
    assert all(torch.equal(a, b) for a, b in zip(bare_losses, losses))
    assert list(bare_weights) == list(weights)
    assert all(torch.equal(bare_weights[key], weights[key]) for key in weights)
    assert torch.equal(streams[0], after[0])
    assert streams[1:] == after[1:]
    assert session.step >= STEPS + 1


def test_the_users_model_stays_as_it_is(watched: Callable[..., Session]) -> None:
    seeded()
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    calls: list[str] = []
    model[0].register_forward_hook(lambda *_: calls.append("forward"))
    model[2].register_full_backward_hook(lambda *_: calls.append("backward"))
    before = {name: set(vars(module)) for name, module in model.named_modules()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    session = watched("op")
    for _ in range(2):
        model(torch.randn(3, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert calls == ["forward", "backward"] * 2
    assert {name: set(vars(module)) for name, module in model.named_modules()} == before
    twin = copy.deepcopy(model[0].weight)
    assert torch.equal(twin, model[0].weight)
    assert torch.equal(pickle.loads(pickle.dumps(nn.Linear(2, 2))).weight[0][:0], torch.empty(0))
    original = nn.Module.__call__
    session.end()
    assert nn.Module.__call__ is not original
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


def test_a_compiled_model_trains_without_extra_compilations(watched: Callable[..., Session]) -> None:
    def compiled() -> tuple[list[float], int]:
        seeded()
        torch._dynamo.reset()
        count = torch._dynamo.testing.CompileCounter()
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        fast = torch.compile(model, backend=count)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for _ in range(3):
            loss = fast(torch.randn(5, 4)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, count.frame_count

    import torch._dynamo.testing

    bare = compiled()
    watched("module")
    assert compiled() == bare
