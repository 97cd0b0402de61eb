"""Random functions of MindSpore called outside of layers, drawing what the other side drew."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import mint, ops

from misstep.migration.frameworks.base import Array, Draw

_FUNCTIONS = (
    ("rand", "uniform"),
    ("rand_like", "uniform"),
    ("uniform", "uniform"),
    ("randn", "normal"),
    ("randn_like", "normal"),
    ("normal", "normal"),
    ("standard_normal", "normal"),
    ("randint", "integers"),
    ("randperm", "permutation"),
    ("bernoulli", "bernoulli"),
    ("multinomial", "choices"),
)


@contextlib.contextmanager
def drawing_again(draws: Sequence[Draw]) -> Iterator[None]:
    """Each function returns the other side's next draw of its kind, where the shape fits."""
    waiting = list(draws)
    before: list[tuple[Any, str, Any]] = []

    def replace(home: Any, name: str, function: Callable[..., Any]) -> None:
        before.append((home, name, getattr(home, name)))
        setattr(home, name, function)

    if waiting:
        for home in (ops, mint):
            for name, kind in _FUNCTIONS:
                if hasattr(home, name):
                    replace(home, name, _again(getattr(home, name), kind, waiting))
        replace(ops, "dropout", _dropout(ops.dropout, waiting))
        replace(mint.nn.functional, "dropout", _dropout(mint.nn.functional.dropout, waiting))
    try:
        yield
    finally:
        for home, name, function in reversed(before):
            setattr(home, name, function)


def _next(waiting: list[Draw], kind: str, shape: tuple[int, ...] | None) -> Array | None:
    for at, draw in enumerate(waiting):
        if draw.kind == kind and (shape is None or draw.array.shape == shape):
            return waiting.pop(at).array
    return None


def _again(function: Callable[..., Any], kind: str, waiting: list[Draw]) -> Callable[..., Any]:
    def drawn(*args: Any, **kwargs: Any) -> Any:
        value = _next(waiting, kind, _wanted_shape(args, kwargs))
        return function(*args, **kwargs) if value is None else ms.Tensor(value)

    return drawn


def _wanted_shape(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[int, ...] | None:
    """The shape a call asks for, as far as its arguments say."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, ms.Tensor) and value.ndim:
            return tuple(value.shape)
        if isinstance(value, tuple | list) and all(isinstance(size, int) for size in value):
            return tuple(value)
    sizes = tuple(value for value in args if isinstance(value, int))
    return sizes if sizes and len(sizes) == len(args) else None


def _dropout(function: Callable[..., Any], waiting: list[Draw]) -> Callable[..., Any]:
    def dropped(input: Any, p: float = 0.5, training: bool = True, *args: Any, **kwargs: Any) -> Any:
        kept = _next(waiting, "dropout", tuple(input.shape)) if training else None
        if kept is None:
            return function(input, p, training, *args, **kwargs)
        return input * ms.Tensor(kept.astype(np.float32)).astype(input.dtype) / (1 - p)

    return dropped
