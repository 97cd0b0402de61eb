"""MindSpore's side of a pair of classes: constructed with the arguments a rewrite arranged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mindspore
import mindspore.experimental.optim.lr_scheduler
import mindspore.mint.nn
import numpy as np
from mindspore import nn

from misstep.migration.apimap.classes.recipes import Nested, Recipe
from misstep.migration.apimap.signatures import Parameter, Signature, of_callable
from misstep.migration.frameworks.base import half_of
from misstep.migration.frameworks.construction import behind
from misstep.migration.sources import Built

_RNN = Signature(
    (
        Parameter("input_size"),
        Parameter("hidden_size"),
        Parameter("num_layers", 1),
        Parameter("has_bias", True),
        Parameter("batch_first", False),
        Parameter("dropout", 0.0),
        Parameter("bidirectional", False),
    )
)


class One(nn.Cell):  # type: ignore[misc]
    """A network of one layer."""

    def __init__(self, layer: nn.Cell) -> None:
        super().__init__()
        self.layer = layer

    def construct(self, *inputs: Any) -> Any:
        return self.layer(*inputs)


class Scaled(nn.Cell):  # type: ignore[misc]
    """What stands before a loss: a factor for every element, whose gradient tells the loss's own."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.scale = mindspore.Parameter(mindspore.Tensor(np.ones(shape, np.float32)))

    def construct(self, inputs: Any) -> Any:
        return inputs * self.scale


def signature(target: str) -> Signature | None:
    word = target.rpartition(".")[2]
    if word in ("LSTM", "GRU", "RNN"):
        return _RNN
    if word == "SequentialCell":
        return Signature((Parameter("args", star=True),))
    return of_callable(behind(resolve(target).__init__)) or Signature(())


def resolve(target: str) -> Any:
    """The class a dotted name means; raises AttributeError when there is none."""
    found: Any = mindspore
    for word in target.split(".")[1:]:
        found = getattr(found, word)
    return found


def exists(target: str) -> bool:
    try:
        return isinstance(resolve(target), type)
    except AttributeError:
        return False


def built(target: str, recipe: Recipe, args: Sequence[Any], keywords: Mapping[str, Any]) -> Built:
    half = half_of("mindspore")
    mindspore.set_seed(5)
    with half.recording():
        given, named = [_made(one) for one in args], {key: _made(one) for key, one in keywords.items()}
        if recipe.kind == "loss":
            return Built(target, Scaled(recipe.inputs[0].shape), half, resolve(target)(*given, **named))
        if recipe.kind == "optimizer":
            model = One(nn.Dense(6, 4))
            return Built(target, model, half, None, resolve(target)(model.trainable_params(), *given, **named))
        return Built(target, One(resolve(target)(*given, **named)), half)


def rates(target: str, args: Sequence[Any], keywords: Mapping[str, Any], steps: int) -> list[float]:
    optimizer = mindspore.experimental.optim.SGD(nn.Dense(6, 4).trainable_params(), lr=0.1)
    schedule = resolve(target)(optimizer, *args, **keywords)
    found = []
    for _ in range(steps):
        found.append(float(np.asarray(optimizer.param_groups[0]["lr"].asnumpy()).ravel()[0]))
        schedule.step()
    return found


def _made(value: Any) -> Any:
    if isinstance(value, Nested):
        return getattr(nn, value.name)(*(_made(one) for one in value.args), **value.keywords)
    return value
