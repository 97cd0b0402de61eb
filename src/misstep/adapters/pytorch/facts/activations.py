"""Activation functions as the graph kept them: units that are dead, outputs in the flat part, attention's rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from misstep.adapters.pytorch.facts import graph
from misstep.adapters.pytorch.facts.values import saved
from misstep.core.facts import Activation

MOST = 48
_MOST_ELEMENTS = 1 << 20
_FLAT = {"tanh": 0.99, "sigmoid": 0.99}
"""Beyond it the derivative is below 2 % (tanh), 1 % (sigmoid)."""
_ATTENTION = ("scaleddotproduct",)


def activations_of(found: graph.Walk, name: Callable[[torch.Tensor], str]) -> list[Activation]:
    """The first of them, from the loss backwards."""
    head = set(graph.head(found))
    looked: list[Activation] = []
    for node in found.nodes:
        if len(looked) >= MOST:
            break
        one = _look(node, found, name, in_head=node in head)
        if one is not None:
            looked.append(one)
    return looked[::-1]


def _look(node: Any, found: graph.Walk, name: Callable[[torch.Tensor], str], *, in_head: bool) -> Activation | None:
    kind = graph.kind_of(node)
    if kind.startswith(_ATTENTION):
        return _fused(node, found, name)
    if kind not in ("relu", "tanh", "sigmoid", "softmax"):
        return None
    result = saved(node, "result")
    if result is None or result.dim() < 2 or result.numel() < 2:
        return None
    values = result.detach()
    if values.numel() > _MOST_ELEMENTS:
        values = values[: max(1, values.shape[0] * _MOST_ELEMENTS // values.numel())]
    layer = _layer(node, found, name)
    size = float(values.float().pow(2).mean().sqrt())
    if kind == "relu":
        return Activation("relu", layer, dead=_dead(values), size=size)
    if kind == "softmax":
        return _attention(values.float(), layer, size) if not in_head else None
    if in_head:
        return None
    if kind == "tanh":
        flat = values.abs() > _FLAT["tanh"]
    else:
        flat = (values > _FLAT["sigmoid"]) | (values < 1 - _FLAT["sigmoid"])
    return Activation(kind, layer, saturated=float(flat.float().mean()), size=size)


def _dead(values: torch.Tensor) -> float:
    """Share of units that are 0 for all samples and places; units are the channels of images, else the last axis."""
    axis = 1 if values.dim() == 4 else values.dim() - 1
    others = [each for each in range(values.dim()) if each != axis]
    return float((values.abs().amax(others) == 0).float().mean())


def _attention(values: torch.Tensor, layer: str, size: float) -> Activation | None:
    """A softmax over positions inside the network."""
    if values.dim() < 3 or values.shape[-1] < 2:
        return None
    width = values.shape[-1]
    entropy = float(-(values * values.clamp(min=1e-12).log()).sum(-1).mean()) / math.log(width)
    future = past = None
    if values.shape[-2] == width:
        future = float(values.triu(1).sum(-1).mean())
        past = float(values.tril(-1).sum(-1).mean())
    return Activation("attention", layer, entropy=entropy, future=future, past=past, size=size)


def _fused(node: Any, found: graph.Walk, name: Callable[[torch.Tensor], str]) -> Activation | None:
    causal = getattr(node, "_saved_is_causal", None)
    mask = saved(node, "attn_mask")
    if mask is None:
        mask = saved(node, "attn_bias")
    query = saved(node, "query")
    if query is None or causal is None:
        return None
    future = None
    if causal:
        future = 0.0
    elif mask is None:
        future = 1.0
    elif mask.dim() >= 2 and mask.shape[-1] == mask.shape[-2]:
        blocked = ~mask if mask.dtype == torch.bool else mask < -1e4
        later = torch.ones(mask.shape[-2:], dtype=torch.bool, device=mask.device).triu(1)
        future = 1.0 - float((blocked & later).float().sum() / (later.float().sum() * blocked[..., 0, 0].numel()))
    return Activation("attention", _layer(node, found, name), future=future, masked=bool(causal or mask is not None))


def _layer(node: Any, found: graph.Walk, name: Callable[[torch.Tensor], str]) -> str:
    _, weight = graph.below(node, found)
    return "" if weight is None else name(weight)
