"""The clock of a step: an adapter says what begins, and the time since the last word goes to what was under way.

    clock.switch(FORWARD) … clock.switch(LOSS) … clock.switch(BACKWARD) …        0.1 µs each
    clock.own() … clock.back(OPTIMIZER)                                          what misstep does in between is its own

A step ends with its update, but a step of several optimizers is only known to be over when the next forward begins; so
`settle` marks each update, and what came after the last one already belongs to the next step.

Turned a dozen times in every step, the clock is native (native/clock.cpp); `PlainClock` says the same in Python, and
stands in where the native module was not built.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from time import perf_counter_ns, process_time_ns, time_ns
from typing import TYPE_CHECKING, NamedTuple, Protocol

from misstep import kernels
from misstep.core.segments import BACKWARD, COMPILE, EPOCH, FORWARD, GAP, GRADIENTS, LOSS, OWN, SEGMENTS
from misstep.store.tracefile import STEP, STEP_LAYOUT

_PACK = struct.Struct(STEP_LAYOUT).pack
_ZERO = [0] * len(SEGMENTS)
_MADE_BY = {GRADIENTS: BACKWARD, LOSS: FORWARD}
"""What is waited for after a segment has ended on the program's side."""


class Costs(Protocol):
    cost_ns: int
    """Nanoseconds of our own code since they were last taken."""


class Taken(NamedTuple):
    """One finished step."""

    spent: list[int]
    began: int
    cpu: int
    queue: int
    asks: int
    epoch: bool


class PlainClock:
    """Of one adapter; turned on the training thread only."""

    __slots__ = (
        "_ahead",
        "_began",
        "_cost",
        "_cpu",
        "_held",
        "_next_began",
        "_now",
        "_offset",
        "_owner",
        "_settled",
        "_spent",
        "_waited",
        "_waited_for",
        "asks",
        "epoch",
        "queue",
        "segment",
        "since",
        "waits",
    )

    def __init__(self, owner: Costs, now: Callable[[], int] | None = None) -> None:
        self._owner = owner
        self._now = now or perf_counter_ns
        self._offset = time_ns() - perf_counter_ns()
        self.waits: Callable[[], int] | None = None
        """Nanoseconds waited so far, in our own work, for what the user's program has queued: theirs, not ours."""
        self.restart()

    def restart(self) -> None:
        """Nothing was measured so far; time counts from the next word on."""
        self._spent = _ZERO.copy()
        self._settled: list[int] | None = None
        self._held = False
        self._waited = self._waited_for = 0
        self._cost = self._owner.cost_ns
        self.segment = GAP
        self.since = 0
        self._began = self._next_began = 0
        self._cpu = 0
        self.queue, self.asks, self.epoch = -1, 0, False
        self._ahead = (-1, 0, False)

    def switch(self, segment: int) -> None:
        """This begins, and what was under way is over."""
        if self._held:
            return
        now = self._now()
        cost = self._owner.cost_ns
        if self.since:
            passed = now - self.since
            own = cost - self._cost
            if own > 0:
                own = min(own, passed)  # a span around a call of `own` is in both accounts
                self._spent[OWN] += own
                passed -= own
            self._spent[self.segment] += passed
        else:
            self._began, self._cpu = now, process_time_ns()
        self._cost = cost
        self.since = now
        self.segment = segment

    def own(self) -> int:
        """What follows is misstep's: a replay may even train a step again, and nothing of it counts. What is returned
        goes to `back` where training goes on with what it was doing."""
        if self._held:
            return -1
        before = self.segment
        self.switch(OWN)
        self._held = True
        if self.waits is not None:
            self._waited, self._waited_for = self.waits(), _MADE_BY.get(before, before)
        return before

    def back(self, segment: int) -> None:
        """Training goes on with this; nothing when it is -1, which is what `own` gives inside of our own work."""
        if segment >= 0:
            self._held = False
            self.switch(segment)
            self._give_back()

    def _give_back(self) -> None:
        """A framework that runs behind its program was waited for: that is the time of what it was busy with."""
        if self.waits is not None:
            waited, self._waited = self.waits() - self._waited, self.waits()
            spent = self._settled if self._settled is not None else self._spent
            spent[self._waited_for] += waited
            self._spent[OWN] -= waited

    def compiles(self) -> int:
        """A compiler begins; what is returned goes to `switch` when it is done."""
        before = self.segment
        self.switch(COMPILE)
        return before

    def ask(self, ready: int) -> None:
        """A batch is asked for, and so many lie ready; -1 where nothing is made ahead."""
        if self._held:
            return
        if not self.asks:
            self.queue = ready
        self.asks += 1

    def settle(self) -> None:
        """An update is done."""
        if self._settled is None:
            self._settled = self._spent
        else:
            self._settled = [a + b for a, b in zip(self._settled, self._spent)]
        self._spent = _ZERO.copy()
        self._next_began = self.since
        self._ahead = (self.queue, self.asks, self.epoch)
        self.queue, self.asks, self.epoch = -1, 0, False

    def take(self) -> Taken:
        """The step that is over; what was measured since its last update is the beginning of the next."""
        self._give_back()
        if self._settled is None:
            self.settle()
        spent = self._settled or _ZERO
        queue, asks, epoch = self._ahead
        cpu = process_time_ns()
        taken = Taken(spent, self._began + self._offset, cpu - self._cpu, queue, asks, epoch)
        self._settled = None
        self._began = self._next_began
        self._cpu = cpu
        return taken

    def record(self, flags: int, number: int) -> bytes:
        """The step that is over, as a record of the trace."""
        spent, began, cpu, queue, asks, epoch = self.take()
        flags |= EPOCH if epoch else 0
        times = [ns * 1e-3 for ns in spent]
        return _PACK(STEP, flags, queue, number & 0xFFFFFFFF, began, *times, cpu * 1e-3, asks)


if TYPE_CHECKING:
    Clock = PlainClock
else:
    Clock = kernels.clock or PlainClock
