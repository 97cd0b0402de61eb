"""Tensors on their way to the disk while training goes on: one block of memory used round and round, and one thread.

    training thread ── copy ──► │··tensor·tensor·tensor····│ ──► writer thread ──► pack
                                 ▲ the block is the limit: when it is full, wait or drop, as the settings say

The block is allocated once, so nothing dumped can take more memory than was granted, whatever the disk does. Tensors
lie in it one behind the other, in the order they came and leave; one that does not fit behind the last begins anew at
the front.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from misstep.core.stats import Array
from misstep.store.pack import Place, bytes_of

WhenFull = Literal["wait", "drop"]
_ALIGNMENT = 64


@dataclass(slots=True, eq=False)
class Job:
    """One tensor on its way. `same` is an earlier one with the same bytes: only its place is noted again."""

    name: bytes
    dtype: str
    shape: tuple[int, ...]
    same: Job | None = None
    place: Place | None = None
    """Where its bytes lie, once they are written."""
    begin: int = 0
    size: int = 0


Write = Callable[[Job, memoryview | None], None]
"""Puts a job's bytes into the pack and sets `place`; must not raise."""


class RoundBlock:
    """Places in one block, handed out and given back in the same order."""

    def __init__(self, size: int) -> None:
        self.block = np.empty(max(size, _ALIGNMENT), np.uint8)
        self.used = 0
        self._taken: deque[tuple[int, int]] = deque()

    def take(self, size: int) -> int | None:
        """Where `size` bytes may lie; None when there is no room now."""
        room = max(size, 1) + -max(size, 1) % _ALIGNMENT
        capacity = len(self.block) - len(self.block) % _ALIGNMENT
        if room > capacity:
            return None
        begin: int | None = 0
        if self._taken:
            first, last = self._taken[0][0], self._taken[-1]
            if last[0] >= first:  # in one piece: room behind it, or before it
                begin = last[1] if capacity - last[1] >= room else 0 if first >= room else None
            else:  # wrapped around: room between the end and the front
                begin = last[1] if first - last[1] >= room else None
        if begin is not None:
            self._taken.append((begin, begin + room))
            self.used += room
        return begin

    def give_back(self) -> None:
        """The oldest place is free again."""
        begin, end = self._taken.popleft()
        self.used -= end - begin

    def fits(self, size: int) -> bool:
        """Whether so many bytes fit at all, in an empty block."""
        return size <= len(self.block) - len(self.block) % _ALIGNMENT


class DumpBuffer:
    """The thread that writes, and what waits for it."""

    def __init__(self, write: Write, *, limit_bytes: int, when_full: WhenFull) -> None:
        self.ring = RoundBlock(limit_bytes)
        self.when_full = when_full
        self.most_used = 0
        """The most bytes that ever waited."""
        self.waits = 0
        """How often training had to wait for the disk."""
        self._write = write
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._work, name="misstep-dump", daemon=True)
        self._thread.start()

    def put(self, job: Job, values: Array | None) -> bool:
        """Copy a tensor into the block, to be written soon; False when it was dropped instead."""
        size = 0 if values is None else values.nbytes
        with self._changed:
            if not self.ring.fits(size):
                if self.when_full == "drop" or values is None:
                    return False
                # Larger than the whole block: written from where it lies, once everything before it is done.
                self.waits += 1
                self._changed.wait_for(lambda: not self._jobs)
                self._write(job, bytes_of(values))
                return True
            begin = self.ring.take(size)
            if begin is None:
                if self.when_full == "drop":
                    return False
                self.waits += 1
                while begin is None:
                    self._changed.wait()
                    begin = self.ring.take(size)
            job.begin, job.size = begin, size
            self.most_used = max(self.most_used, self.ring.used)
        if values is not None and size:
            # Outside the lock: the place is ours, and the thread writes meanwhile.
            there = self.ring.block[begin : begin + size].view(values.dtype).reshape(values.shape)
            np.copyto(there, values)
        with self._changed:
            self._jobs.append(job)
            self._changed.notify_all()
        return True

    def drain(self) -> None:
        """Wait until everything is written."""
        if os.getpid() == self._pid:
            with self._changed:
                self._changed.wait_for(lambda: not self._jobs)

    def close(self) -> None:
        """Write what waits, and end the thread."""
        if os.getpid() != self._pid:
            return
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._closing)
                if not self._jobs:
                    return
                job = self._jobs[0]
            self._write(job, self.ring.block[job.begin : job.begin + job.size].data)
            with self._changed:
                self._jobs.popleft()
                self.ring.give_back()
                self._changed.notify_all()
