"""Tensors inside nested arguments: taken out in order, and put back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a tensor stood."""

    index: int


def taken(value: Any, is_tensor: Callable[[Any], bool], found: list[Any]) -> Any:
    """The same structure with slots for tensors, which are appended to `found`."""
    if is_tensor(value):
        found.append(value)
        return Slot(len(found) - 1)
    if isinstance(value, tuple):
        parts = [taken(part, is_tensor, found) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [taken(part, is_tensor, found) for part in value]
    if isinstance(value, dict):
        return {key: taken(part, is_tensor, found) for key, part in value.items()}
    return value


def put_back(structure: Any, tensors: Sequence[Any]) -> Any:
    if isinstance(structure, Slot):
        return tensors[structure.index]
    if isinstance(structure, tuple):
        parts = [put_back(part, tensors) for part in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    if isinstance(structure, list):
        return [put_back(part, tensors) for part in structure]
    if isinstance(structure, dict):
        return {key: put_back(part, tensors) for key, part in structure.items()}
    return structure
