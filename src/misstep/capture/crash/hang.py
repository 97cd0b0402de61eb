"""A thread that looks after the training thread: has a step ended lately, has somebody asked for a flight record?

It only reads the recorder's cells, so it works while the training thread is stuck in a collective or a kernel. When
even this thread cannot run (a C call that keeps the interpreter's lock), Python's fault handler, armed anew at every
look, writes the stacks without it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence

from misstep.capture.crash.signals import Signals
from misstep.core.cells import ENTERED, STEP_BEGAN

_TICK = 0.5
_LAST_RESORT = 2.0
"""The fault handler's patience, in multiples of ours."""


class Watch(threading.Thread):
    """Calls `on_hang` once for each step that does not end, and `on_asked` after SIGUSR1."""

    def __init__(
        self,
        cells: Sequence[int],
        signals: Signals,
        *,
        hang_seconds: float,
        paused: Callable[[], bool],
        on_hang: Callable[[float], None],
        on_asked: Callable[[], None],
    ) -> None:
        super().__init__(name="misstep-watch", daemon=True)
        self._cells = cells
        self._signals = signals
        self._seconds = hang_seconds
        self._paused = paused
        self._on_hang = on_hang
        self._on_asked = on_asked
        self._over = threading.Event()
        self._asked = signals.asked_bytes
        self._moved = time.time()
        self._last: tuple[int, int] = (0, 0)
        self._told = False
        self._pid = os.getpid()

    def stop(self) -> None:
        self._over.set()
        if self._seconds:
            self._signals.disarm_hang()
        if self.is_alive() and threading.current_thread() is not self:
            self.join(timeout=5)

    def run(self) -> None:
        tick = min(_TICK, self._seconds / 8) if self._seconds else _TICK
        while not self._over.wait(tick) and os.getpid() == self._pid:
            self._look()

    def _look(self) -> None:
        asked = self._signals.asked_bytes
        if asked > self._asked:
            self._asked = asked
            self._on_asked()
        if not self._seconds:
            return
        self._signals.arm_hang(self._seconds * _LAST_RESORT)
        now = (self._cells[ENTERED], self._cells[STEP_BEGAN])  # an evaluation between two steps is no hang
        if now != self._last or self._paused():
            self._last, self._moved, self._told = now, time.time(), False
        elif not self._told and time.time() - self._moved >= self._seconds:
            self._told = True
            self._on_hang(time.time() - self._moved)
