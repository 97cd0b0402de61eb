"""Print inside MindSpore's graph mode: an operator that calls Python with the values when the graph runs.

MindSpore compiles `GraphPrint.__call__`, so it is written in the Python its compiler knows. The texts become a tensor
of bytes, made while compiling; an operator of a fixed number of inputs is chosen by how many tensors there are.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import ops
from mindspore.ops.primitive import constexpr

from misstep.train.print_file import Array
from misstep.train.printing import show_numbered

MOST_TENSORS = 8
"""In one call of Print in graph mode; an operator of so many inputs is made for each number of tensors."""


class GraphPrint:
    """What the compiler sees in place of Print."""

    def __init__(self, number: int, gradient: bool) -> None:
        self.number = number
        self.gradient = gradient
        self.operators = [_operator(inputs) for inputs in range(MOST_TENSORS + 1)]
        self.flowing = [ops.InsertGradientOf(_GradientPrint(number, self.operators[1]))]

    def __call__(self, *values: Any) -> Any:
        words = ()
        tensors = ()
        for value in values:
            if isinstance(value, ms.Tensor):
                words = words + (None,)  # noqa: RUF005 - the compiler has no unpacking
                tensors = tensors + (value,)  # noqa: RUF005
            else:
                words = words + (value,)  # noqa: RUF005
        self.operators[len(tensors)](_header(self.number, words), *tensors)
        if not self.gradient:
            return None
        if len(tensors) == 1:
            return self.flowing[0](tensors[0])
        handed_back = ()
        for tensor in tensors:
            handed_back = handed_back + (self.flowing[0](tensor),)  # noqa: RUF005
        return handed_back


class _GradientPrint:
    """The function InsertGradientOf applies to what flows back; compiled, like the above."""

    def __init__(self, number: int, operator: Any) -> None:
        self.number = number
        self.operator = operator

    def __call__(self, gradient: Any) -> Any:
        self.operator(_header(self.number, ("gradient:", None)), gradient)
        return gradient


@constexpr
def _header(number: int, words: tuple[Any, ...]) -> Any:
    texts = [None if word is None else str(word) for word in words]
    return ms.Tensor(np.frombuffer(json.dumps([number, texts]).encode(), np.uint8).copy())


def _show(header: Array, *arrays: Array) -> Array:
    number, words = json.loads(header.tobytes())
    show_numbered(number, json.dumps(words), arrays)
    return np.zeros(1, np.float32)


# The number of inputs of an operator is read from the function's signature.
_SHOWS: tuple[Callable[..., Array], ...] = (
    lambda h: _show(h),
    lambda h, a: _show(h, a),
    lambda h, a, b: _show(h, a, b),
    lambda h, a, b, c: _show(h, a, b, c),
    lambda h, a, b, c, d: _show(h, a, b, c, d),
    lambda h, a, b, c, d, e: _show(h, a, b, c, d, e),
    lambda h, a, b, c, d, e, f: _show(h, a, b, c, d, e, f),
    lambda h, a, b, c, d, e, f, g: _show(h, a, b, c, d, e, f, g),
    lambda h, a, b, c, d, e, f, g, i: _show(h, a, b, c, d, e, f, g, i),
)


def _operator(inputs: int) -> Any:
    if inputs not in _operators:
        made = ops.Custom(_SHOWS[inputs], out_shape=_one, out_dtype=_float32, func_type="pyfunc")
        made.add_prim_attr("side_effect_io", True)  # otherwise a graph drops what nobody reads
        _operators[inputs] = made
    return _operators[inputs]


_operators: dict[int, Any] = {}


def _one(*_: Any) -> tuple[int]:
    return (1,)


def _float32(*_: Any) -> Any:
    return ms.float32
