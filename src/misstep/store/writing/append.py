"""A file that only grows, by whole records, and never raises: what could not be written is the caller's to count.

The disk of a training machine fills up, and then has room again. A write that fails leaves no half record behind,
and the file is left alone for a while before it is tried again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from misstep.store.writing.reserve import reserve

Part = bytes | bytearray | memoryview
Cut = Callable[[Part, int], int]

RETRY_STEPS = 100
RETRY_SECONDS = 30.0


def whole_lines(data: Part, written: int) -> int:
    """A reader may have taken in complete lines already, so they stay."""
    return bytes(data[:written]).rfind(b"\n") + 1


def all_or_nothing(data: Part, written: int) -> int:
    return 0


def records_of(size: int) -> Cut:
    """Whole rows stay: a reader that has mapped them must not find the file shorter (it would die of SIGBUS)."""
    return lambda data, written: written // size * size


class AppendFile:
    """One file with one writer; `error` is the trouble it is in, None when all is well."""

    def __init__(self, path: Path, *, header: bytes = b"", cut: Cut = all_or_nothing, ahead: bool = False) -> None:
        self.path = path
        self.size = 0
        self.error: OSError | None = None
        self._header = header
        self._cut = cut
        self._ahead = ahead
        self._reserved = 0
        """Up to where disk blocks are taken ahead, for a file that grows by megabytes."""
        self._descriptor = -1
        self._skip = 0
        self._skip_until = 0.0

    def tick(self) -> None:
        """A step has passed; a file in trouble comes nearer to its next try."""
        if self._skip:
            self._skip -= 1

    def retry_now(self) -> None:
        self._skip = 0

    def put(self, line: bytes) -> bool:
        """Write a line to a file that is open and well, in one call; False when that did not do, and nothing of it is
        there."""
        if self.error is not None or self._descriptor < 0:
            return self.append(line) == len(line)
        try:
            written = os.write(self._descriptor, line)
        except OSError as error:
            self._trouble(error)
            return False
        if written < len(line):
            self._shorten(self.size)
            return False
        self.size += written
        return True

    def append(self, data: Part, *, before: bytes = b"") -> int:
        """Write `before` (padding) and `data`; how many bytes of `data` are in the file now: all, when all is well."""
        if self.error is not None and self._skip and time.monotonic() < self._skip_until:
            return 0
        lead = self._header + before if self.size == 0 else before
        total = len(lead) + len(data)
        written = 0
        try:
            if self._descriptor < 0:
                # O_EXCL: the rank directory is ours alone; a file already there means somebody else is writing.
                self._descriptor = os.open(
                    self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644
                )
            if self._ahead and self.size + total > self._reserved:
                self._reserved = reserve(self._descriptor, self.size, total)
            written = os.writev(self._descriptor, (lead, data)) if lead else os.write(self._descriptor, data)
            while written < total:
                rest = memoryview(data)[written - len(lead) :] if written >= len(lead) else lead[written:] + bytes(data)
                written += os.write(self._descriptor, rest)
        except OSError as error:
            self._trouble(error)
            kept = max(0, self._cut(data, written - len(lead))) if written > len(lead) else 0
            self._shorten(self.size + len(lead) + kept if kept else self.size)
            return kept
        self.size += total
        self.error = None
        return len(data)

    def touch(self) -> None:
        """Tell readers on other machines that this process lives."""
        if self._descriptor >= 0:
            try:
                os.utime(self._descriptor)
            except OSError:
                pass

    def close(self, *, sync: bool) -> None:
        if self._descriptor < 0:
            return
        try:
            if self._reserved > self.size:
                os.ftruncate(self._descriptor, self.size)  # gives back what lies behind the end
            if sync:
                os.fsync(self._descriptor)
            os.close(self._descriptor)
        except OSError as error:
            self._trouble(error)
        self._descriptor = -1

    def _trouble(self, error: OSError) -> None:
        self.error = error
        self._skip, self._skip_until = RETRY_STEPS, time.monotonic() + RETRY_SECONDS

    def _shorten(self, size: int) -> None:
        try:
            if self._descriptor >= 0:
                os.ftruncate(self._descriptor, size)
            self.size = self._reserved = size
        except OSError as error:
            self._trouble(error)
