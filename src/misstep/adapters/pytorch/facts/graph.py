"""The graph autograd has recorded, read from the loss backwards before it is used: which weights it reaches, and what
stands between the last layer and the loss.

A node keeps what its derivative needs, so the objective, its targets and every activation can be looked at without
having watched the forward at all.

    loss ◄ mean ◄ NllLoss ◄ LogSoftmax ◄ Softmax ◄ Addmm ◄ … ◄ AccumulateGrad (a weight)
           └ above ┘  └ the term ┘  └── below ──┘  └ a layer
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

MOST_NODES = 20_000
_NAME = re.compile(r"(?:Backward|Backward\d+)$|Backward\d*$")
_SHAPE_ONLY = frozenset(
    [
        "view",
        "reshape",
        "unsafeview",
        "squeeze",
        "unsqueeze",
        "transpose",
        "permute",
        "t",
        "clone",
        "contiguous",
        "expand",
        "select",
        "slice",
        "index",
        "alias",
        "tocopy",
        "copy",
        "split",
        "unbind",
        "gather",
        "asstrided",
        "splitwithsizes",
        "swapaxes",
        "movedim",
        "flatten",
    ]
)
"""Operators that leave values as they are."""


@dataclass(slots=True)
class Walk:
    """What one walk has found."""

    nodes: list[Any] = field(default_factory=list)
    """From the loss on, the nearest first."""
    parents: dict[Any, Any] = field(default_factory=dict)
    """The node nearer to the loss from which a node was reached first."""
    weights: list[torch.Tensor] = field(default_factory=list)
    complete: bool = True
    layers: dict[Any, torch.Tensor] = field(default_factory=dict)
    """Nodes that use a weight directly, with that weight."""


def walk(root: Any) -> Walk:
    """Everything the loss was computed from, breadth first."""
    found = Walk()
    seen = {root}
    queue = [root]
    for node in queue:
        found.nodes.append(node)
        if len(queue) > MOST_NODES:
            found.complete = False
            break
        for following, _ in node.next_functions:
            if following is None:
                continue
            variable = getattr(following, "variable", None)
            if variable is not None:
                _layer(found, node, variable)
            if following in seen:
                continue
            seen.add(following)
            found.parents[following] = node
            if variable is not None:
                found.weights.append(variable)
            else:
                queue.append(following)
    return found


def _layer(found: Walk, node: Any, weight: torch.Tensor) -> None:
    """A weight is often turned or cast before it is used: the node that uses it is the first that does more."""
    user = node
    while user is not None and kind_of(user) in _SHAPE_ONLY and len(user.next_functions) == 1:
        user = found.parents.get(user)
    if user is not None:
        known = found.layers.get(user)
        if known is None or known.dim() < weight.dim():
            found.layers[user] = weight


def kind_of(node: Any) -> str:
    """`LogSoftmaxBackward0` is `logsoftmax`."""
    return _NAME.sub("", str(node.name()).rpartition("::")[2]).lower()


def shape_of(node: Any) -> tuple[int, ...] | None:
    """Of what the node's operator gave."""
    try:
        metadata = node._input_metadata
        return tuple(int(size) for size in metadata[0].shape) if metadata else None
    except (AttributeError, RuntimeError, TypeError, IndexError):
        return None


def inputs_of(node: Any) -> list[Any]:
    """The nodes its operator's inputs came from, without weights."""
    return [one for one, _ in node.next_functions if one is not None and getattr(one, "variable", None) is None]


def below(node: Any, found: Walk, most: int = 12) -> tuple[list[Any], torch.Tensor | None]:
    """The nodes from here back to the last layer with weights, following the first input; and that layer's weight."""
    chain: list[Any] = []
    current = node
    while len(chain) < most:
        if current in found.layers:
            return chain, found.layers[current]
        inputs = inputs_of(current)
        if not inputs:
            return chain, None
        current = inputs[0]
        if current not in found.layers:
            chain.append(current)
    return chain, None


def above(node: Any, found: Walk) -> list[str]:
    """Operators between the loss and this node, the nearest to the loss first."""
    names: list[str] = []
    current = found.parents.get(node)
    while current is not None and len(names) < 16:
        names.append(kind_of(current))
        current = found.parents.get(current)
    return names[::-1]


def names_of(chain: list[Any]) -> list[str]:
    return [kind_of(node) for node in chain]


def changing(names: list[str]) -> Iterator[str]:
    """Only the operators that change values."""
    return (name for name in names if name not in _SHAPE_ONLY)


def head(found: Walk) -> list[Any]:
    """The nodes between the loss and the layers nearest to it: the objective."""
    if not found.nodes:
        return []
    wanted: list[Any] = []
    queue, seen = [found.nodes[0]], {found.nodes[0]}
    for node in queue:
        if node in found.layers or len(wanted) > 200:
            continue
        wanted.append(node)
        for following in inputs_of(node):
            if following not in seen:
                seen.add(following)
                queue.append(following)
    return wanted
