"""Outputs that MindSpore's CPU kernels leave as they find them: whatever lay in that memory before, NaN included.

Measured on MindSpore 2.10 with a memory pool full of NaN: BatchNorm writes its result and, when it trains, the saved
mean and variance (3 and 4), never 1 and 2; LSTM's last two are a workspace. They are evidence of nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindspore import context

_UNWRITTEN: dict[str, frozenset[int]] = {"BatchNorm": frozenset({1, 2}), "LSTM": frozenset({3, 4})}
_AT_INFERENCE: dict[str, frozenset[int]] = {"BatchNorm": frozenset({1, 2, 3, 4})}


def unwritten(type: str, *, training: bool = True) -> frozenset[int]:
    """The slots of an operator's outputs that hold no result of its own."""
    if type not in _UNWRITTEN or context.get_context("device_target") != "CPU":
        return frozenset()
    return _UNWRITTEN[type] if training else _AT_INFERENCE.get(type, _UNWRITTEN[type])


def written(type: str, outputs: Sequence[Any]) -> Sequence[Any]:
    """The outputs up to the first that holds no result."""
    return outputs[: min(unwritten(type), default=len(outputs))]
