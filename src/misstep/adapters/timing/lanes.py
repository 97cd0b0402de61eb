"""How workers of a data loader tell of their batches: a lane of shared memory each, which the training process empties.

    worker 0 ──► │ count │ record record record … │ stages │ ──┐
    worker 1 ──► │ count │ record record record … │ stages │ ──┴─► training process ──► trace.bin

Nothing travels with the user's data, so a batch arrives as it was made, with misstep or without. A forked worker has
the memory by birth; a spawned one opens the file named in its environment.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from collections.abc import Iterator

from misstep.store.tracefile import RECORD_BYTES

SLOTS = 1024
TEXT_BYTES = 8192
_HEAD = 64
_LANE = _HEAD + SLOTS * RECORD_BYTES + TEXT_BYTES
_COUNTS = struct.Struct("<QII")
"""Records written so far; bytes of the text, and how often it was written."""

VARIABLE = "MISSTEP_LANES"


class Lanes:
    """The lanes of one data loader's workers."""

    def __init__(self, workers: int, *, named: bool = False) -> None:
        self.workers = workers
        self.path = ""
        if named:
            descriptor, self.path = tempfile.mkstemp(prefix="misstep-lanes-")
            os.ftruncate(descriptor, workers * _LANE)
            self.memory = mmap.mmap(descriptor, workers * _LANE)
            os.close(descriptor)
        else:
            self.memory = mmap.mmap(-1, workers * _LANE)
        self._read = [0] * workers
        self._texts = [0] * workers
        self.lost = 0
        """Records a worker overwrote before they were read."""

    def drain(self) -> Iterator[bytes]:
        """The records that came since the last time."""
        for worker in range(self.workers):
            base = worker * _LANE
            count = _COUNTS.unpack_from(self.memory, base)[0]
            first = max(self._read[worker], count - SLOTS + 1 if count >= SLOTS else 0)
            self.lost += first - self._read[worker]
            for number in range(first, count):
                at = base + _HEAD + number % SLOTS * RECORD_BYTES
                yield self.memory[at : at + RECORD_BYTES]
            self._read[worker] = count

    def texts(self) -> Iterator[bytes]:
        """What workers say of the stages of a sample, where it is news."""
        for worker in range(self.workers):
            base = worker * _LANE
            _, size, written = _COUNTS.unpack_from(self.memory, base)
            if written != self._texts[worker]:
                self._texts[worker] = written
                at = base + _HEAD + SLOTS * RECORD_BYTES
                yield self.memory[at : at + min(size, TEXT_BYTES)]

    def close(self) -> None:
        if self.path:
            try:
                os.unlink(self.path)
            except OSError:
                pass
            self.path = ""


class Lane:
    """A worker's end."""

    def __init__(self, memory: mmap.mmap, worker: int) -> None:
        self._memory, self._base = memory, worker * _LANE
        self._count, self._size, self._written = _COUNTS.unpack_from(memory, self._base)

    def put(self, record: bytes) -> None:
        at = self._base + _HEAD + self._count % SLOTS * RECORD_BYTES
        self._memory[at : at + RECORD_BYTES] = record
        self._count += 1
        self._head()

    def say(self, text: bytes) -> None:
        at = self._base + _HEAD + SLOTS * RECORD_BYTES
        text = text[:TEXT_BYTES]
        self._memory[at : at + len(text)] = text
        self._size, self._written = len(text), self._written + 1
        self._head()

    def _head(self) -> None:
        _COUNTS.pack_into(self._memory, self._base, self._count, self._size, self._written)


def lane_from_environment(worker: int) -> Lane | None:
    """The lane of a worker that was spawned and not forked."""
    path = os.environ.get(VARIABLE, "")
    try:
        with open(path, "r+b") as file:
            memory = mmap.mmap(file.fileno(), 0)
    except (OSError, ValueError):
        return None
    return Lane(memory, worker) if len(memory) >= (worker + 1) * _LANE else None
