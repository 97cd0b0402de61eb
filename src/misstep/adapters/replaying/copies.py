"""Copies of Python's containers, to be worked on while the originals stay as they are."""

from __future__ import annotations

import copy
from collections import deque
from typing import Any

CONTAINERS = (list, dict, set, deque)
_DEEPEST = 3
"""Containers within containers that are looked into."""
_LARGEST_DEEP = 1000
"""Entries of a container whose own containers are copied too."""


def twin_of(value: Any, depth: int = 0) -> Any:
    """A copy of a container and of the containers in it; what else is in them is shared."""
    if type(value) not in CONTAINERS or depth > _DEEPEST:
        return value
    if len(value) > _LARGEST_DEEP or isinstance(value, set):
        return copy.copy(value)
    if isinstance(value, dict):
        return {key: twin_of(item, depth + 1) for key, item in value.items()}
    return type(value)(twin_of(item, depth + 1) for item in value)
