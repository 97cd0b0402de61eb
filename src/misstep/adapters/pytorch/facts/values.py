"""Numbers about tensors from a small, evenly spread sample of their elements; the tensors stay as they are."""

from __future__ import annotations

import math
import zlib
from typing import Any

import torch

from misstep.core.facts import TensorLook

MOST_SAMPLES = 256
MOST_FEATURES = 256
MOST_ELEMENTS = 2048


def sample(tensor: torch.Tensor, most: int = MOST_ELEMENTS) -> torch.Tensor:
    """A copy of some elements, always the same ones."""
    flat = tensor.detach().reshape(-1) if tensor.is_contiguous() else tensor.detach().flatten()
    stride = max(1, flat.numel() // most)
    return flat[::stride][:most].clone()


def digest(tensor: torch.Tensor, most: int = 64) -> str:
    """Tells two tensors apart by some of their elements; empty for one that cannot be read."""
    try:
        values = sample(tensor, most)
        plain = values.float() if values.is_floating_point() else values
        return f"{zlib.crc32(repr((tuple(tensor.shape), plain.tolist())).encode()):08x}"
    except (RuntimeError, NotImplementedError, TypeError):
        return ""


def matrix(tensor: torch.Tensor) -> torch.Tensor | None:
    """(samples, features) as float32, at most 256 by 256 of them; None for what has no samples."""
    if tensor.dim() == 0 or tensor.numel() == 0 or tensor.is_sparse or tensor.is_complex() or tensor.is_quantized:
        return None
    whole = tensor.detach()
    flat = whole.reshape(whole.shape[0], -1)
    rows = flat[:: max(1, flat.shape[0] // MOST_SAMPLES)][:MOST_SAMPLES]
    return rows[:, :: max(1, rows.shape[1] // MOST_FEATURES)][:, :MOST_FEATURES].float().cpu()


def look_at(tensor: torch.Tensor) -> TensorLook:
    """Range, spread, repeated samples and constant features."""
    shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
    rows = matrix(tensor)
    if rows is None:
        if tensor.numel() != 1:
            return TensorLook(shape, dtype)
        value = float(tensor.detach())
        return TensorLook(shape, dtype, value, value, value)
    distinct = constant = None
    if rows.shape[0] > 1:
        distinct = len({bytes(row.numpy().data) for row in rows}) / rows.shape[0]
        if rows.shape[1] > 1:
            constant = float((rows == rows[:1]).all(0).float().mean())
    return TensorLook(
        shape,
        dtype,
        float(rows.min()),
        float(rows.max()),
        float(rows.mean()),
        float(rows.std()) if rows.numel() > 1 else 0.0,
        distinct,
        constant,
        digest(tensor),
    )


def spread(tensor: torch.Tensor) -> float | None:
    """How much samples of a batch differ from each other, over the size of the values; None for fewer than four."""
    rows = matrix(tensor)
    if rows is None or rows.shape[0] < 4:
        return None
    size = float(rows.abs().mean())
    if not math.isfinite(size):
        return None
    return float(rows.std(0).mean()) / size if size > 0 else 0.0


def alike(tensor: torch.Tensor) -> bool:
    """Whether all units of a weight matrix are the same, and there are several."""
    if tensor.dim() < 2 or tensor.shape[0] < 2 or tensor.numel() // tensor.shape[0] < 2:
        return False
    first = tensor.detach()[:1]
    if not bool((tensor.detach()[1:2] == first).all()):  # the usual case ends here
        return False
    return bool((tensor.detach() == first).all())


def saved(node: Any, name: str) -> torch.Tensor | None:
    """What a node of the graph keeps for its derivative; None when it is gone or was never there."""
    try:
        found = getattr(node, f"_saved_{name}", None)
    except RuntimeError:  # freed, or written over since
        return None
    return found if isinstance(found, torch.Tensor) else None
