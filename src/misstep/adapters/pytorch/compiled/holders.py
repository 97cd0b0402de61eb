"""Which networks and optimizers a function works with: found in its arguments, its closure and the globals it names."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any, TypeVar

import torch
from torch import nn

from misstep.adapters.pytorch.names import is_users

_DEEPEST = 4
_MOST = 2_000
"""Values looked at for one function."""

T = TypeVar("T")


def networks_of(function: Any, args: Any = (), kwargs: Any = None) -> tuple[nn.Module, ...]:
    """The outermost networks with weights, each once."""
    found = list(_held(function, args, kwargs, nn.Module))
    inside = {id(part) for network in found for part in network.modules() if part is not network}
    return tuple(one for one in found if id(one) not in inside and next(one.parameters(), None) is not None)


def optimizers_of(function: Any, args: Any = (), kwargs: Any = None) -> tuple[torch.optim.Optimizer, ...]:
    return tuple(_held(function, args, kwargs, torch.optim.Optimizer))


def _held(function: Any, args: Any, kwargs: Any, kind: type[T]) -> Iterator[T]:
    seen: set[int] = set()
    waiting: list[tuple[Any, int]] = [(function, 0), (args, 1), (kwargs, 1)]
    while waiting and len(seen) < _MOST:
        value, depth = waiting.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, kind):
            yield value
        elif depth <= _DEEPEST:
            waiting.extend((one, depth + 1) for one in _parts(value))


def _parts(value: Any) -> list[Any]:
    if isinstance(value, MethodType):
        owner = value.__self__
        held = (
            []
            if isinstance(owner, nn.Module | torch.optim.Optimizer)
            else list(getattr(owner, "__dict__", {}).values())
        )
        return [owner, value.__func__, *held]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, FunctionType):
        return _reached(value)
    if isinstance(value, tuple | list):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    return []


def _reached(function: FunctionType) -> list[Any]:
    wrapped = getattr(function, "__wrapped__", None)
    if not is_users(function.__code__.co_filename):
        return [] if wrapped is None else [wrapped]
    cells = [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
    names = set(function.__code__.co_names)
    for constant in function.__code__.co_consts:  # a function inside it
        names.update(getattr(constant, "co_names", ()))
    space = function.__globals__
    return [wrapped, *cells, *(space[name] for name in names if name in space)]


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - raises when nothing is in it yet
    except ValueError:
        return False
    return True
