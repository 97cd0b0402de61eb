"""What a module takes and gives: tensors in tuples, lists, dicts and dataclasses, in the order a person reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

Leaf = TypeVar("Leaf")

_DEEPEST = 8
"""Nesting beyond which we stop looking; a list that contains itself must not hang training."""


def leaves_in(value: Any, kind: type[Leaf] | tuple[type[Leaf], ...], depth: int = 0) -> Iterator[Leaf]:
    """Every leaf of this kind; its place in the order is its slot."""
    if isinstance(value, kind):
        yield value
    elif value is None or depth > _DEEPEST or isinstance(value, str | bytes | int | float):
        return
    elif isinstance(value, tuple | list):
        for item in value:
            yield from leaves_in(item, kind, depth + 1)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves_in(item, kind, depth + 1)
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for name in value.__dataclass_fields__:
            yield from leaves_in(getattr(value, name, None), kind, depth + 1)
