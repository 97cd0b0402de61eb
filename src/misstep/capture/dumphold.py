"""Tensors kept alive until the step ends, in case a watchpoint trips: no copy, within a budget.

A framework frees an activation as soon as nobody needs it, and by the time a hit is known the step is over. Holding the
tensor itself costs memory but no time. One that is written over in place meanwhile is not passed off as what it was:
it is refused, and held as a copy from the next step on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from misstep.core.stats import Array


@dataclass(slots=True)
class _Held:
    tensor: Any
    version: int
    copied: bool = False

    @property
    def written_over(self) -> bool:
        return not self.copied and _version(self.tensor) != self.version


class Holding:
    """What is held of the step under way, by tensor number."""

    def __init__(self, array: Callable[[Any], Array], *, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.bytes = 0
        self.refused = 0
        """Tensors for which there was no room."""
        self._array = array
        self._held: dict[int, _Held] = {}
        self._ids: set[int] = set()
        self._fragile: set[int] = set()

    def __contains__(self, number: int) -> bool:
        return number in self._held

    def hold(self, number: int, tensor: Any, *, copy: bool = False) -> None:
        size = 0
        if id(tensor) not in self._ids:
            size = int(getattr(tensor, "nbytes", -1))
            size = self._array(tensor).nbytes if size < 0 else size
        if self.bytes + size > self.limit_bytes:
            self.refused += 1
            return
        self.bytes += size
        if copy or number in self._fragile:
            self._held[number] = _Held(self._array(tensor).copy(), 0, copied=True)
        else:
            self._ids.add(id(tensor))
            self._held[number] = _Held(tensor, _version(tensor))

    def values(self, number: int) -> Array | None:
        """As the tensor was when it passed; None when it is not held, or was written over since."""
        held = self._held.get(number)
        if held is None or held.written_over:
            return None
        values: Array = held.tensor if held.copied else self._array(held.tensor)
        return values

    def freeze(self, number: int) -> Array | None:
        """Like `values`, and safe from now on from whoever writes to the tensor."""
        values = self.values(number)
        if values is not None and not self._held[number].copied:
            values = values.copy()
            self._held[number] = _Held(values, 0, copied=True)
        return values

    def learn(self) -> None:
        """The step ends: what was written over is copied from now on."""
        self._fragile.update(number for number, held in self._held.items() if held.written_over)

    def let_go(self) -> None:
        self._held.clear()
        self._ids.clear()
        self.bytes = 0


def _version(tensor: Any) -> int:
    """How often a tensor was written to in place, where its framework counts that."""
    try:
        return int(tensor._version)
    except Exception:  # a framework without the count, or one that refuses it (torch in inference mode)
        return 0
