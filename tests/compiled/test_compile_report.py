"""What the compiler did is told as it happened: graphs, breaks, compilations again, and hooks nobody calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from misstep.adapters.pytorch.adapter import PyTorchAdapter
from misstep.testing.contract.recording import Recording


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.first(x))


class Broken(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        if x.sum() > 0:
            x = x * 2
        return self.last(x)


@pytest.fixture
def adapter() -> Iterator[PyTorchAdapter]:
    torch._dynamo.reset()
    one = PyTorchAdapter()
    one.attach(Recording())
    yield one
    one.detach()
    torch._dynamo.reset()


def train(net: Callable[..., torch.Tensor], model: nn.Module, *batches: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for size in batches:
        net(torch.randn(size, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def told(adapter: PyTorchAdapter, kind: str) -> list[dict[str, Any]]:
    return [facts for one, facts in adapter.compilations.news() if one == kind]


def test_a_graph_is_told_with_its_function_and_why_it_was_compiled_again(adapter: PyTorchAdapter) -> None:
    model = Net()
    train(torch.compile(model, backend="eager", dynamic=False), model, 4, 4, 5)
    first, again = told(adapter, "compiled")
    assert (first["function"], first["file"]) == ("forward", __file__)
    assert first["seconds"] > 0
    assert "again_because" not in first
    assert "expected 4, actual 5" in again["again_because"]
    assert told(adapter, "compiled") == []


def test_a_function_the_compiler_gave_up_on_is_told(adapter: PyTorchAdapter) -> None:
    model = Net()
    train(torch.compile(model, backend="eager", dynamic=False), model, *range(2, 13))
    (reason,) = (one["gave_up"] for one in told(adapter, "compiled") if "gave_up" in one)
    assert reason.startswith("Dynamo recompile limit exceeded")


def test_a_break_is_told_once_at_the_users_line(adapter: PyTorchAdapter) -> None:
    model = Broken()
    train(torch.compile(model, backend="eager", dynamic=False), model, 4, 5)
    (one,) = told(adapter, "graph_break")
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert source[one["line"] - 1].strip() == "if x.sum() > 0:"
    assert (one["file"], one["function"]) == (__file__, "forward")


def test_what_was_compiled_before_is_not_told() -> None:
    torch._dynamo.reset()
    model = Net()
    net = torch.compile(model, backend="eager")
    train(net, model, 4)
    adapter = PyTorchAdapter()
    adapter.attach(Recording())
    try:
        train(net, model, 4)
        assert adapter.compilations.news() == []
    finally:
        adapter.detach()
        torch._dynamo.reset()


def sequential() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1))


def function_of(model: nn.Module) -> Callable[..., Any]:
    return torch.compile(lambda x: model(x), backend="eager")


def in_place(model: nn.Module) -> Callable[..., Any]:
    model.compile(backend="eager")
    return model


def wrapped(model: nn.Module) -> Callable[..., Any]:
    return torch.compile(model, backend="eager")


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("compiled", [wrapped, in_place, function_of])
@pytest.mark.parametrize("make", [Net, sequential])
def test_a_hook_that_is_not_called_is_told_and_one_that_is_called_is_not(
    adapter: PyTorchAdapter,
    make: Callable[[], nn.Module],
    compiled: Callable[[nn.Module], Callable[..., Any]],
    inner: bool,
) -> None:
    model, calls = make(), []
    net = compiled(model)
    train(net, model, 4, 4)
    target = next(model.children()) if inner else model
    target.register_forward_hook(lambda *given: calls.append(1))
    train(net, model, 4, 4)
    hooks = told(adapter, "ignored_hooks")
    assert len(hooks) == (0 if calls else 1)
    if hooks:
        assert (hooks[0]["hooks"], hooks[0]["modules"], hooks[0]["file"]) == (1, 1, __file__)
