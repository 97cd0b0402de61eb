"""Values of any framework, seen as numpy.

A tensor is recognised by its own type, never by a setting: whoever holds a torch tensor has imported torch already.
Nothing here imports a framework.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FrameworkName: TypeAlias = Literal["torch", "mindspore"]
Array: TypeAlias = NDArray[Any]


def framework_of(thing: object) -> FrameworkName | None:
    """The framework an object belongs to, told by the classes it inherits from; None for numpy and plain Python.

    >>> framework_of(torch.nn.Linear(1, 1))
    'torch'
    """
    return _framework_of_type(type(thing))  # type: ignore[arg-type]  # mypy: a type is Hashable


def to_numpy(value: Any) -> Array:
    """Any tensor, array or number as a numpy array; half-precision kinds numpy does not know become float32."""
    framework = framework_of(value)
    if framework == "torch":
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
        return np.asarray(value.numpy())
    if framework == "mindspore":
        if str(value.dtype) == "BFloat16":
            value = value.float()
        return np.asarray(value.asnumpy())
    return np.asarray(value)


def loss_value(net_outputs: Any) -> float | None:
    """The number a step's outputs stand for: the mean of the first of them; None when that is not a number."""
    first = net_outputs[0] if isinstance(net_outputs, tuple | list) and net_outputs else net_outputs
    if first is None or isinstance(first, dict):
        return None
    if framework_of(first) == "torch" and first.ndim == 0:
        return float(first.item())  # half the price of going through numpy, and this runs every step
    try:
        array = to_numpy(first)
    except (TypeError, ValueError):
        return None
    if array.size == 0 or array.dtype.kind not in "fiub":
        return None
    return float(array.reshape(-1)[0]) if array.size == 1 else float(array.mean())


def finite(number: float) -> bool:
    """Neither NaN nor infinite."""
    return math.isfinite(number)


@lru_cache(maxsize=512)
def _framework_of_type(kind: type) -> FrameworkName | None:
    for ancestor in kind.__mro__:
        root = ancestor.__module__.partition(".")[0]
        if root == "torch":
            return "torch"
        if root == "mindspore":
            return "mindspore"
    return None
