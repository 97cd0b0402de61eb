"""The state of Python's own random numbers, held before every step: `random.getstate()` makes 625 numbers (10 µs), so
where the generator's memory is laid out as expected (found out once, by comparing) it is copied as bytes (1 µs)."""

from __future__ import annotations

import ctypes
import random
import struct
from typing import Any, NamedTuple

_WORDS = 624
_LAYOUT = struct.Struct(f"@i{_WORDS}I")
"""CPython's RandomObject after its head: the position, then the words."""
_GENERATOR: Any = getattr(random, "_inst", None)


class Held(NamedTuple):
    """The generator's memory, and the number `gauss` has in store."""

    memory: bytes
    gauss: float | None

    def state(self) -> Any:
        """As `random.getstate()` gives it."""
        index, *words = _LAYOUT.unpack(self.memory)
        return random.Random.VERSION, (*words, index), self.gauss


class Told(NamedTuple):
    """What `random.getstate()` gave, where the memory is laid out in another way."""

    given: Any

    def state(self) -> Any:
        return self.given


def held_now() -> Held | Told:
    """The state as it is now."""
    if not _ADDRESS:
        return Told(random.getstate())
    return Held(ctypes.string_at(_ADDRESS, _LAYOUT.size), _GENERATOR.gauss_next)


def _address() -> int:
    """Where the memory lies; 0 when it does not hold what `random.getstate()` says."""
    if type(_GENERATOR) is not random.Random or _GENERATOR.__sizeof__() < object.__basicsize__ + _LAYOUT.size:
        return 0
    address = id(_GENERATOR) + object.__basicsize__
    generator: Any = _GENERATOR
    here = Held(ctypes.string_at(address, _LAYOUT.size), generator.gauss_next)
    return address if here.state() == random.getstate() else 0


_ADDRESS = _address()
