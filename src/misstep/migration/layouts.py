"""How an array of one side must be turned to lie like the other's.

""                 as it is
"reshape"          axes of length one come or go: a Conv1d weight has one more in MindSpore
"transpose"        a kernel that multiplies from the other side
"0 2 3 1"          this order of axes
"gates 0 2 1 3"    the blocks along the first axis in this order: an LSTM that files its gates differently
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.errors import MigrationError

Array = NDArray[Any]
_MOST_GATES = 4


def turned(array: Array, layout: str, shape: tuple[int, ...]) -> Array:
    """The array in the other side's shape.

    >>> turned(weight, "reshape", (8, 3, 1, 5)).shape
    (8, 3, 1, 5)
    """
    if layout.startswith("gates "):
        order = [int(word) for word in layout.split()[1:]]
        blocks = np.split(array, len(order), axis=0)
        array = np.concatenate([blocks[at] for at in order], axis=0)
    elif layout == "transpose":
        array = array.T
    elif layout and layout != "reshape":
        array = array.transpose([int(word) for word in layout.split()])
    if array.shape != shape:
        if _squeezed(array.shape) != _squeezed(shape):
            raise MigrationError(f"shape {array.shape} does not become {shape} by layout {layout or 'as it is'!r}")
        array = array.reshape(shape)
    return array


def undone(layout: str) -> str:
    """The layout that turns it back."""
    if layout in ("", "reshape", "transpose"):
        return layout
    gates = layout.startswith("gates ")
    order = [int(word) for word in layout.split()[gates:]]
    back = " ".join(str(order.index(at)) for at in range(len(order)))
    return f"gates {back}" if gates else back


def layout_between(left: tuple[int, ...], right: tuple[int, ...], leaf: str) -> str | None:
    """The layout shapes alone suggest; None when no turn brings one into the other."""
    if left == right:
        return ""
    if _squeezed(left) == _squeezed(right):
        return "reshape"
    if leaf == "weight" and len(left) == 2 and left == right[::-1]:
        return "transpose"
    return None


def layout_of_values(left: Array, right: Array) -> str | None:
    """The layout that makes the values equal; None when they are not the same numbers.

    >>> layout_of_values(torch_weight_ih, onnx_weight_ih)
    'gates 0 3 1 2'
    """
    if left.size != right.size:
        return None
    for candidate in _candidates(left, right):
        try:
            if np.array_equal(turned(left, candidate, right.shape), right):
                return candidate
        except (MigrationError, ValueError):
            continue
    return None


def _candidates(left: Array, right: Array) -> list[str]:
    found = [""]
    if left.shape != right.shape:
        found += ["reshape"]
    if left.ndim == 2:
        found.append("transpose")
    if 2 < left.ndim <= 5:
        found += [" ".join(map(str, order)) for order in itertools.permutations(range(left.ndim))]
    for count in range(2, _MOST_GATES + 1):
        if left.shape and left.shape[0] % count == 0 and left.shape[0] > count:
            orders = list(itertools.permutations(range(count)))[1:]
            found += ["gates " + " ".join(map(str, order)) for order in orders]
    return found


def fingerprint(array: Array) -> tuple[int, float, float, float] | None:
    """The same for the same numbers in any order; None for arrays that say nothing (constant, empty)."""
    values = np.sort(np.asarray(array, np.float64), axis=None)
    if values.size < 2 or values[0] == values[-1] or not math.isfinite(float(values[0] + values[-1])):
        return None
    return values.size, float(values[0]), float(values[-1]), float(values.sum())


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
