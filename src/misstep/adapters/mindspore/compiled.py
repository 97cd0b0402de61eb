"""What can be told of compiled code from outside: whether it trains, what it is called, and the loss it returned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mindspore import nn

from misstep.adapters.mindspore.names import OPTIMIZERS
from misstep.adapters.mindspore.tensors import leaves

_DEEPEST = 3
"""How many functions deep an optimizer is looked for: a step calls a helper that holds it."""


def optimizers_of(thing: Any) -> list[nn.Cell]:
    """Optimizers inside a cell, or used by a function through its closure and its globals."""
    found: dict[int, nn.Cell] = {}
    for optimizer in _search(thing, _DEEPEST):
        found.setdefault(id(optimizer), optimizer)
    return list(found.values())


def scalar_of(result: Any) -> Any | None:
    """The first tensor returned, when it has one element: a loss."""
    tensors = leaves(result)
    return tensors[0] if tensors and tensors[0].size == 1 else None


def title_of(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__)).strip("<>")


def _search(thing: Any, depth: int) -> Iterator[nn.Cell]:
    if isinstance(thing, OPTIMIZERS):
        yield thing
    elif isinstance(thing, nn.Cell):
        for _, cell in thing.cells_and_names():
            if isinstance(cell, OPTIMIZERS):
                yield cell
    elif depth and callable(thing):
        owner = getattr(thing, "__self__", None)
        if owner is not None:
            yield from _search(owner, depth - 1)
        function = getattr(thing, "__wrapped__", thing)
        code = getattr(function, "__code__", None)
        if code is None:
            return
        names = getattr(function, "__globals__", {})
        held = [names[name] for name in code.co_names if name in names]
        for cell in getattr(function, "__closure__", None) or ():
            try:
                held.append(cell.cell_contents)
            except ValueError:  # a name not bound yet
                continue
        for value in held:
            module = getattr(value, "__module__", "") or ""
            if not str(module).startswith("mindspore") or isinstance(value, nn.Cell):
                yield from _search(value, depth - 1)
