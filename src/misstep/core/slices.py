"""numpy's slice syntax, read safely: `[0, 3, ::2, -1]`, `0,:5`, `..., 7`, and an error that shows what would work here.

Only integers, start:stop:step, `...` and `:` are known; nothing is evaluated. Reading happens against a shape, so an
index that is out of range is told with its axis, and a parsed slice gives views, never copies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import numpy as np

from misstep.errors import AddressError

Array = np.ndarray[Any, Any]
Part = int | slice

_RANGE = re.compile(r"(-?\d+)?\s*:\s*(-?\d+)?\s*(?::\s*(-?\d+)?)?")
_MOST_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Slice:
    """One part for each axis of a shape."""

    parts: tuple[Part, ...]
    shape: tuple[int, ...]

    def of(self, array: Array) -> Array:
        """A view of the array."""
        # The Ellipsis keeps a fully indexed result an array of no dimensions, so that callers meet arrays only.
        view: Array = array[(*self.parts, ...)]
        return view

    @property
    def result_shape(self) -> tuple[int, ...]:
        return tuple(
            len(range(*part.indices(size))) for part, size in zip(self.parts, self.shape) if isinstance(part, slice)
        )

    def index(self, inner: tuple[int, ...]) -> tuple[int, ...]:
        """Where an element of the result lies in the whole tensor."""
        left = list(inner)
        out = []
        for part, size in zip(self.parts, self.shape):
            if isinstance(part, slice):
                out.append(range(*part.indices(size))[left.pop(0)])
            else:
                out.append(part)
        return tuple(out)

    def __str__(self) -> str:
        return "[" + ", ".join(_text(part) for part in self.parts) + "]"


def parse_slice(text: str, shape: tuple[int, ...]) -> Slice:
    """Read a slice of a tensor of this shape; AddressError with a valid example otherwise.

    >>> str(parse_slice("0, ..., ::2", (4, 3, 8)))
    '[0, :, ::2]'
    """
    shown = text.strip()
    inside = shown[1:-1] if shown.startswith("[") and shown.endswith("]") else shown
    if len(text) > _MOST_CHARACTERS:
        raise _wrong("the slice is too long", text[:40], shape)
    words = [word.strip() for word in inside.split(",")] if inside.strip() else []
    if words and not words[-1]:
        words.pop()
    parts = [_part(word, text, shape) for word in words]
    if sum(part is ... for part in parts) > 1:
        raise _wrong("'...' may stand only once", text, shape)
    given = sum(part is not ... for part in parts)
    if given > len(shape):
        raise _wrong(f"{given} indices for {len(shape)} axes", text, shape)
    fill = [slice(None)] * (len(shape) - given)
    at = parts.index(...) if ... in parts else len(parts)
    whole = [*parts[:at], *fill, *parts[at + 1 :]]
    return Slice(tuple(_within(part, axis, text, shape) for axis, part in enumerate(whole)), shape)


def example(shape: tuple[int, ...]) -> str:
    """A slice that works for this shape and leaves two axes free."""
    if any(size == 0 for size in shape):
        return "[...]"
    free = min(2, len(shape))
    return "[" + ", ".join(["0"] * (len(shape) - free) + [":"] * free) + "]" if shape else "[]"


def _part(word: str, text: str, shape: tuple[int, ...]) -> Part | EllipsisType:
    if word == "...":
        return ...
    if re.fullmatch(r"[-+]?\d{1,18}", word):
        return int(word)
    found = _RANGE.fullmatch(word)
    if found is None or any(part is not None and len(part) > 19 for part in found.groups()):
        raise _wrong(f"{word!r} is neither an index nor start:stop:step", text, shape)
    start, stop, step = (None if part is None else int(part) for part in found.groups())
    if step == 0:
        raise _wrong("a step of 0 goes nowhere", text, shape)
    return slice(start, stop, step)


def _within(part: Part | EllipsisType, axis: int, text: str, shape: tuple[int, ...]) -> Part:
    if isinstance(part, slice):
        return part
    assert not isinstance(part, EllipsisType)
    size = shape[axis]
    if not -size <= part < size:
        raise _wrong(f"index {part} is outside axis {axis}, which has {size}", text, shape)
    return part % size


def _wrong(why: str, text: str, shape: tuple[int, ...]) -> AddressError:
    return AddressError(f"cannot slice {list(shape)} by {text!r}: {why}; try {example(shape)}", address=text)


def _text(part: Part) -> str:
    if not isinstance(part, slice):
        return str(part)
    start = "" if part.start is None else part.start
    stop = "" if part.stop is None else part.stop
    return f"{start}:{stop}" + ("" if part.step is None else f":{part.step}")
