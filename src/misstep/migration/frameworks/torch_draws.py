"""Random functions of PyTorch called outside of layers: what they drew is kept, for the other side to draw the same."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional

from misstep.migration.frameworks.base import Draw

_FUNCTIONS = (
    ("rand", "uniform"),
    ("rand_like", "uniform"),
    ("randn", "normal"),
    ("randn_like", "normal"),
    ("normal", "normal"),
    ("randint", "integers"),
    ("randperm", "permutation"),
    ("bernoulli", "bernoulli"),
    ("multinomial", "choices"),
)


@contextlib.contextmanager
def drawing(draws: list[Draw], inside_a_layer: Callable[[], bool]) -> Iterator[None]:
    """Keep every draw; a layer's own draws are the layer's."""
    before: list[tuple[Any, str, Any]] = []

    def replace(home: Any, name: str, function: Callable[..., Any]) -> None:
        before.append((home, name, getattr(home, name)))
        setattr(home, name, function)

    for name, kind in _FUNCTIONS:
        replace(torch, name, _kept(getattr(torch, name), kind, draws, inside_a_layer))
    replace(functional, "dropout", _dropout(functional.dropout, draws, inside_a_layer))
    try:
        yield
    finally:
        for home, name, function in reversed(before):
            setattr(home, name, function)


def _kept(
    function: Callable[..., torch.Tensor], kind: str, draws: list[Draw], inside: Callable[[], bool]
) -> Callable[..., torch.Tensor]:
    def drawn(*args: Any, **kwargs: Any) -> torch.Tensor:
        result = function(*args, **kwargs)
        if not inside():
            draws.append(Draw(kind, result.detach().numpy().copy()))
        return result

    return drawn


def _dropout(
    function: Callable[..., torch.Tensor], draws: list[Draw], inside: Callable[[], bool]
) -> Callable[..., torch.Tensor]:
    def dropped(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
        if inside() or not training or p in (0.0, 1.0):
            return function(input, p, training, inplace)
        kept = torch.empty(input.shape).uniform_() >= p
        draws.append(Draw("dropout", kept.numpy().copy()))
        return input * kept.to(input.dtype) / (1 - p)

    return dropped
