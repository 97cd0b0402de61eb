"""Tensors kept alive until the step ends, in case a watchpoint trips: no copy, within a budget.

A framework frees an activation as soon as nobody needs it, and by the time a hit is known the step is over. Holding the
tensor itself costs memory but no time. One that is written over in place meanwhile is not passed off as what it was:
it is refused, and held as a copy from the next step on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from misstep.capture.keep.ledger import Account
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

    def __init__(self, array: Callable[[Any], Array], account: Account) -> None:
        self.account = account
        self._array = array
        self._held: dict[int, _Held] = {}
        self._ids: set[int] = set()
        self._fragile: set[int] = set()

    def __contains__(self, number: int) -> bool:
        return number in self._held

    def hold(self, number: int, tensor: Any, *, copy: bool = False) -> None:
        size = 0
        if id(tensor) not in self._ids:
            size = _bytes_of(tensor)
            size = self._array(tensor).nbytes if size < 0 else size
        if not self.account.take(number, size):
            return
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

    def hand_over(self) -> dict[int, _Held]:
        """Everything held, for somebody who counts it from now on."""
        held = dict(self._held)
        self.let_go()
        return held

    def learn(self) -> None:
        """The step ends: what was written over is copied from now on."""
        self._fragile.update(number for number, held in self._held.items() if held.written_over)

    def let_go(self) -> None:
        self._held.clear()
        self._ids.clear()
        self.account.clear()


class StepBefore:
    """What was held of the step before: when a watchpoint trips, its values a step earlier are there too.

    Nothing is copied but what turned out to be written over from one step to the next, as weights are, and what a
    framework does not count the writes of.
    """

    def __init__(self, array: Callable[[Any], Array], account: Account) -> None:
        self.account = account
        self.step = -1
        self._array = array
        self._held: dict[int, _Held] = {}
        self._first: dict[int, int] = {}
        self._fragile: set[int] = set()

    def take(self, step: int, holding: Holding) -> None:
        """A step is left: keep what was held of it, as much as there is room for."""
        self.let_go()
        self.step = step
        firsts: dict[int, int] = {}
        for number, held in holding.hand_over().items():
            if held.written_over:
                continue
            first = firsts.setdefault(id(held.tensor), number)
            if first == number:
                size = (held.tensor if held.copied else self._array(held.tensor)).nbytes
                if not self.account.take(number, size):
                    continue
                if held.copied:
                    pass
                elif number in self._fragile or not _counted(held.tensor):
                    held = _Held(self._array(held.tensor).copy(), 0, copied=True)
                else:
                    held = _Held(_without_graph(held.tensor), held.version)
            elif first not in self._held:
                continue
            self._held[number], self._first[number] = self._held.get(first, held), first

    def __iter__(self) -> Iterator[int]:
        return iter(self._held)

    def first_of(self, number: int) -> int:
        """The first tensor that had the same memory in that step."""
        return self._first[number]

    def values(self, number: int) -> Array | None:
        held = self._held[number]
        if held.written_over:
            return None
        values: Array = held.tensor if held.copied else self._array(held.tensor)
        return values

    def let_go(self) -> None:
        self._fragile.update(number for number, held in self._held.items() if held.written_over)
        self._held.clear()
        self._first.clear()
        self.account.clear()


def _without_graph(tensor: Any) -> Any:
    """The same memory and count of writes, without what torch would need to differentiate through it."""
    return tensor.detach() if getattr(tensor, "grad_fn", None) is not None else tensor


def _bytes_of(tensor: Any) -> int:
    try:
        return int(tensor.nbytes)
    except Exception:  # a framework that does not count, or a tensor that cannot (torch's sparse ones)
        return -1


def _version(tensor: Any) -> int:
    """How often a tensor was written to in place, where its framework counts that."""
    return int(tensor._version) if _counted(tensor) else 0


def _counted(tensor: Any) -> bool:
    try:
        return isinstance(tensor._version, int)
    except Exception:  # a framework without the count, or one that refuses it (torch in inference mode)
        return False
