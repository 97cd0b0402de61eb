"""One run of a module or an operator, and the memory of the tensors that pass it: the words `flow.py` is written in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple


class Memory(NamedTuple):
    """Where a tensor's values lie. `keep` holds what must stay alive while they are read.

    An address below zero stands for the tensor itself, whose values have not been waited for.
    """

    address: int
    elements: int
    dtype: int
    shape: tuple[int, ...]
    version: int = 0
    keep: Any = None


Measure = Callable[[Any], Memory | None]
"""The memory of a tensor; None when it has none that can be read."""


class Call:
    """One run of a module or an operator within the step."""

    __slots__ = ("awaited", "call", "gradients", "inputs", "made", "name", "node", "operator", "outputs", "parent")

    def __init__(self, node: int, name: str, call: int, parent: Call | None, operator: bool = False) -> None:
        self.node = node
        self.name = name
        self.call = call
        self.parent = parent
        self.operator = operator
        self.inputs: tuple[int, ...] = ()
        self.outputs: tuple[int, ...] = ()
        self.made: list[int] = []
        """Output rows of what ran directly inside."""
        self.gradients: list[int] = []
        """Rows of the gradients of its outputs, once backward came by."""
        self.awaited: set[int] = set()
        """Rows of its inputs whose gradient has not arrived yet."""


def tensors_in(value: Any, is_tensor: Callable[[Any], bool], depth: int = 8) -> list[Any]:
    """Every tensor in nested tuples, lists, dicts and dataclasses, in order: their slots."""
    if is_tensor(value):
        return [value]
    if depth == 0 or value is None or isinstance(value, str | bytes | int | float):
        return []
    if isinstance(value, dict):
        inside: Iterable[Any] = value.values()
    elif isinstance(value, tuple | list):
        inside = value
    elif hasattr(value, "__dataclass_fields__"):
        inside = [getattr(value, name, None) for name in value.__dataclass_fields__]
    else:
        return []
    return [tensor for item in inside for tensor in tensors_in(item, is_tensor, depth - 1)]
