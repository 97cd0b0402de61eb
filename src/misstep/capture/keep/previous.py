"""What some conditions need beyond statistics: the previous value of a weight, or how many elements lie in a range.

Both are worked out while the tensor passes, because a moment later it may be gone. Previous values are kept only for
what is watched and only within the memory budget; what does not fit is refused and said.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from misstep import kernels
from misstep.capture.keep.ledger import Account
from misstep.core.stats import Array, TensorStats
from misstep.core.watching.evaluate import Evaluator, Needs


class EvidenceRoom:
    """Keeps previous values and the answers of this step."""

    def __init__(self, evaluator: Evaluator, account: Account, array: Callable[[Any], Array]) -> None:
        self.evaluator = evaluator
        self.account = account
        self.refused: set[int] = set()
        """Tensors whose previous value does not fit the budget."""
        self._array = array
        self._needs = Needs()
        self._previous: dict[int, Array] = {}
        self._changes: dict[tuple[int, float, float], Any] = {}
        self._ranges: dict[tuple[int, float, float], int] = {}

    def wants(self) -> dict[int, Callable[[int, Any], None]]:
        """By tensor number, what to call when it passes; also forgets what nobody needs any more."""
        self._needs = needs = self.evaluator.needs()
        for number in set(self._previous) - needs.previous:
            del self._previous[number]
            self.account.give_back(number)
        self.refused &= needs.previous
        wanted: dict[int, Callable[[int, Any], None]] = {}
        for number in needs.previous | set(needs.ranges):
            wanted[number] = self._looker(number)
        return wanted

    def begin_step(self) -> None:
        self._changes.clear()
        self._ranges.clear()

    def remember(self, number: int, tensor: Any) -> None:
        """Keep this value as the one before (the initial weights)."""
        if number in self._needs.previous:
            self._keep(number, self._array(tensor))

    def of(self, row: int, stats: TensorStats, step: int) -> RowEvidence:
        return RowEvidence(self, row, stats, step)

    def change(self, row: int, rtol: float, atol: float) -> Any | None:
        return self._changes.get((row, rtol, atol))

    def within(self, row: int, low: float, high: float) -> int | None:
        return self._ranges.get((row, low, high))

    def _looker(self, number: int) -> Callable[[int, Any], None]:
        def look(row: int, tensor: Any) -> None:
            values = self._array(tensor)
            for low, high in self._needs.ranges.get(number, ()):
                wide = values.astype(np.float64) if values.dtype.kind not in "fiub" else values
                self._ranges[row, low, high] = int(np.count_nonzero((wide >= low) & (wide <= high)))
            if number in self._needs.previous:
                before = self._previous.get(number)
                if before is not None and before.shape == values.shape and before.dtype == values.dtype:
                    for rtol, atol in self._needs.tolerances:
                        self._changes[row, rtol, atol] = kernels.change(values, before, rtol=rtol, atol=atol)
                self._keep(number, values)

        return look

    def _keep(self, number: int, values: Array) -> None:
        room = self._previous.get(number)
        if room is not None and room.shape == values.shape and room.dtype == values.dtype:
            np.copyto(room, values)
            return
        if room is not None:
            del self._previous[number]
            self.account.give_back(number)
        if not self.account.take(number, values.nbytes):
            self.refused.add(number)
            self.evaluator.refused.add(number)
            return
        self._previous[number] = values.copy()

    def previous(self, number: int) -> Array | None:
        """The kept value of the step before."""
        return self._previous.get(number)


def both(first: Callable[[int, Any], None], second: Callable[[int, Any], None]) -> Callable[[int, Any], None]:
    """Two who want the same tensor when it passes."""

    def call(row: int, tensor: Any) -> None:
        first(row, tensor)
        second(row, tensor)

    return call


@dataclass(frozen=True, slots=True)
class ReplayWants:
    """Like a session's `wants`, but asked anew for each tensor: a replay meets operators nobody has met before."""

    askers: tuple[Callable[[int], Callable[[int, Any], None] | None], ...] = ()
    earlier: dict[int, Any] = field(default_factory=dict)
    """By id of a tensor that an operator writes to in place: a copy from before it ran."""

    def get(self, number: int) -> Callable[[int, Any], None] | None:
        found: Callable[[int, Any], None] | None = None
        for ask in self.askers:
            want = ask(number)
            if want is not None:
                found = want if found is None else both(found, want)
        return found

    def __bool__(self) -> bool:
        return bool(self.askers)


@dataclass(frozen=True, slots=True)
class RowEvidence:
    """What a condition may ask of one row."""

    room: EvidenceRoom
    row: int
    stats: TensorStats
    step: int

    def previous_change(self, rtol: float, atol: float) -> Any | None:
        return self.room.change(self.row, rtol, atol)

    def count_within(self, low: float, high: float) -> int | None:
        return self.room.within(self.row, low, high)
