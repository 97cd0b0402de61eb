"""PyTorch's side of a pair of classes: constructed as a recipe says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from misstep.migration.apimap.classes.recipes import Nested, Recipe
from misstep.migration.apimap.signatures import Parameter, Signature, of_callable
from misstep.migration.frameworks.base import half_of
from misstep.migration.sources import Built

STEPS = 12
_RNN = Signature(
    (
        Parameter("input_size"),
        Parameter("hidden_size"),
        Parameter("num_layers", 1),
        Parameter("bias", True),
        Parameter("batch_first", False),
        Parameter("dropout", 0.0),
        Parameter("bidirectional", False),
    )
)
"""Their constructors take anything and hand it on."""


class One(nn.Module):
    """A network of one layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *inputs: Any) -> Any:
        return self.layer(*inputs)


class Scaled(nn.Module):
    """What stands before a loss: a factor for every element, whose gradient tells the loss's own."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(shape))

    def forward(self, inputs: Any) -> Any:
        return inputs * self.scale


def names() -> list[str]:
    """Every public layer, loss, optimizer and schedule of the installed PyTorch."""
    homes = (
        ("torch.nn", nn, nn.Module),
        ("torch.optim", torch.optim, torch.optim.Optimizer),
        ("torch.optim.lr_scheduler", torch.optim.lr_scheduler, torch.optim.lr_scheduler.LRScheduler),
    )
    return [
        f"{home}.{word}"
        for home, place, base in homes
        for word, one in sorted(vars(place).items())
        if isinstance(one, type) and issubclass(one, base) and one is not base and not word.startswith("_")
    ]


def signature(name: str) -> Signature | None:
    if name.rpartition(".")[2] in ("LSTM", "GRU", "RNN"):
        return _RNN
    if name.rpartition(".")[2] == "Sequential":
        return Signature((Parameter("args", star=True),))
    found = of_callable(_class(name)) or Signature(())
    return Signature(tuple(replace(one, default=_plain(one.default)) for one in found.parameters))


def _plain(default: Any) -> Any:
    """A default that is a function (activation=F.relu) cannot be spelled, and need not be."""
    return None if isinstance(default, str) and default.startswith("<") else default


def built(name: str, recipe: Recipe) -> Built:
    """The thing inside a network that runs it; an optimizer beside a network that it trains."""
    half = half_of("torch")
    torch.manual_seed(5)
    with half.recording():
        args, keywords = _made(recipe.args), _made(recipe.keywords)
        if recipe.kind == "optimizer":
            model = One(nn.Linear(6, 4))
            return Built(name, model, half, None, _class(name)(model.parameters(), *args, **keywords))
        if recipe.kind == "loss":
            return Built(name, Scaled(recipe.inputs[0].shape), half, _class(name)(*args, **keywords))
        return Built(name, One(_class(name)(*args, **keywords)), half)


def rates(name: str, recipe: Recipe) -> list[float]:
    """The learning rates a schedule sets, step by step."""
    optimizer = torch.optim.SGD(nn.Linear(6, 4).parameters(), lr=0.1)
    schedule = _class(name)(optimizer, *recipe.args, **recipe.keywords)
    found = []
    for _ in range(STEPS if "OneCycle" not in name else 9):
        found.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        schedule.step()
    return found


def _class(name: str) -> Any:
    found: Any = torch
    for word in name.split(".")[1:]:
        found = getattr(found, word)
    return found


def _made(value: Any) -> Any:
    if isinstance(value, Nested):
        return getattr(nn, value.name)(*_made(value.args), **_made(value.keywords))
    if isinstance(value, dict):
        return {key: _made(one) for key, one in value.items()}
    return tuple(_made(one) for one in value) if isinstance(value, tuple) else value
