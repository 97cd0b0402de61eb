"""PyTorch's values as plain ones that cross to the other framework."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from misstep.migration.apimap.values import DType, Tensorlike


def plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        held = value.detach().resolve_conj().resolve_neg()
        if held.dtype == torch.bfloat16:
            held = held.float()
        return Tensorlike(np.array(held.numpy()))
    if isinstance(value, torch.dtype):
        return DType(str(value).removeprefix("torch."))
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return type(value)(plain(one) for one in value)
    if isinstance(value, tuple):
        return tuple(plain(one) for one in value)
    return value


def copied(value: Any, *, wide: bool = False) -> Any:
    """Fresh tensors, so that a call in place leaves the sample alone; `wide` makes float32 float64."""
    if isinstance(value, torch.Tensor):
        held = value.detach().clone()
        return held.double() if wide and held.dtype == torch.float32 else held
    if isinstance(value, dict):
        return {key: copied(one, wide=wide) for key, one in value.items()}
    if isinstance(value, list):
        return type(value)(copied(one, wide=wide) for one in value)
    if isinstance(value, tuple) and not isinstance(value, torch.Size):
        return tuple(copied(one, wide=wide) for one in value)
    return torch.float64 if wide and value is torch.float32 else value
