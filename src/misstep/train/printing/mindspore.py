"""Print inside MindSpore's graph mode: an operator that calls Python with the values when the graph runs.

MindSpore compiles `CellPrint.construct`, so it is written in the Python its compiler knows. The texts become a tensor
of bytes, made while compiling; an operator of a fixed number of inputs is chosen by how many tensors there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.ops.primitive import constexpr

from misstep.train.printing import Print, packed, show_numbered
from misstep.train.printing.file import Array

MOST_TENSORS = 8
"""In one call of Print in graph mode; an operator of so many inputs is made for each number of tensors."""


class CellPrint(Print, nn.Cell):
    """Print as made by a program that has imported MindSpore; called from Python it is Print and nothing else."""

    def __new__(cls, **options: Any) -> Any:
        return nn.Cell.__new__(cls)

    def __init__(self, **options: Any) -> None:
        nn.Cell.__init__(self)
        Print.__init__(self, **options)
        self.operators = [_operator(inputs) for inputs in range(MOST_TENSORS + 1)]
        self.flowing = _Flowing(self.operators[1])

    def construct(self, *values: Any) -> Any:
        words: tuple[Any, ...] = ()
        tensors: tuple[Any, ...] = ()
        for value in values:
            if isinstance(value, ms.Tensor):
                words = words + (None,)  # noqa: RUF005 - the compiler has no unpacking
                tensors = tensors + (value,)  # noqa: RUF005
            else:
                words = words + (value,)  # noqa: RUF005
        self.operators[len(tensors)](_header(self.number, words), *tensors)
        if not self.gradient:
            return None
        header = _gradient_header(self.number, words)
        if len(tensors) == 1:
            return self.flowing(tensors[0], header)
        handed_back: tuple[Any, ...] = ()
        for tensor in tensors:
            handed_back = handed_back + (self.flowing(tensor, header),)  # noqa: RUF005
        return handed_back


class _Flowing(nn.Cell):
    """The identity; its derivative prints what flows back."""

    def __init__(self, operator: Any) -> None:
        super().__init__()
        self.operator = operator

    def construct(self, tensor: Any, header: Any) -> Any:
        return tensor

    def bprop(self, tensor: Any, header: Any, out: Any, gradient: Any) -> Any:
        self.operator(header, gradient)
        return gradient, ops.zeros_like(header)


@constexpr
def _header(number: int, words: tuple[Any, ...]) -> Any:
    texts = tuple(None if word is None else str(word) for word in words)
    return ms.Tensor(np.frombuffer(f"{number}\n{packed(texts)}".encode(), np.uint8).copy())


@constexpr
def _gradient_header(number: int, words: tuple[Any, ...]) -> Any:
    texts = tuple(str(word) for word in words if word is not None)
    return ms.Tensor(np.frombuffer(f"{number}\n{packed((*texts, 'gradient:', None))}".encode(), np.uint8).copy())


def _show(header: Array, *arrays: Array) -> Array:
    number, _, words = header.tobytes().decode().partition("\n")
    show_numbered(int(number), words, arrays)
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
