"""One run of a module or an operator, and the memory of the tensors that pass it: the words `flow.py` is written in."""

from __future__ import annotations

from collections.abc import Callable
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


MOST_CALLS = 64
"""Calls of one node in a step that get rows: an evaluation loop that forgot no_grad, or a cell called for every token,
must not make the run grow without bound."""

Measure = Callable[[Any], Memory | None]
"""The memory of a tensor; None when it has none that can be read."""


class Call:
    """One run of a module or an operator within the step."""

    __slots__ = ("call", "gradients", "inputs", "made", "name", "node", "operator", "outputs", "parent")

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
