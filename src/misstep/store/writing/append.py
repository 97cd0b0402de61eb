"""A file that only grows, by whole records, and never raises: what could not be written is the caller's to count.

The disk of a training machine fills up, and then has room again. A write that fails leaves no half record behind,
and the file is left alone for a while before it is tried again. A file that keeps blocks back has room for its urgent
records on a disk that dumps and checkpoints have filled: ordinary ones are refused before they take it.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

from misstep.store.modes import file_mode
from misstep.store.writing.disk import Disk
from misstep.store.writing.reserve import reserve

Part = bytes | bytearray | memoryview
Cut = Callable[[Part, int], int]

RETRY_STEPS = 100
RETRY_SECONDS = 30.0
KEPT_BACK = 64 << 10
"""Bytes for urgent records: some hundred of them, a verdict has two thousand."""
TAKEN_AT_ONCE = 256 << 10

DISK = Disk()


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

    def __init__(
        self,
        path: Path,
        *,
        header: bytes = b"",
        cut: Cut = all_or_nothing,
        ahead: bool = False,
        kept_back: int = 0,
    ) -> None:
        self.path = path
        self.size = 0
        self.error: OSError | None = None
        self._header = header
        self._cut = cut
        self._ahead = ahead
        self._kept_back = kept_back
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
        kept_back = self._kept_back
        short = kept_back and self.size + len(line) + kept_back > self._reserved
        if short or self.error is not None or self._descriptor < 0:
            return self.append(line) == len(line)
        try:
            written = DISK.write(self._descriptor, line)
        except OSError as error:
            self._trouble(error)
            return False
        if written < len(line):
            self._shorten(self.size)
            return False
        self.size += written
        return True

    def append(self, data: Part, *, before: bytes = b"", urgent: bool = False) -> int:
        """Write `before` (padding) and `data`; how many bytes of `data` are in the file now: all, when all is well."""
        if self.error is not None and self._skip and not urgent and time.monotonic() < self._skip_until:
            return 0
        lead = self._header + before if self.size == 0 else before
        total = len(lead) + len(data)
        written = 0
        try:
            if self._descriptor < 0:
                # O_EXCL: the rank directory is ours alone; a file already there means somebody else is writing.
                self._descriptor = DISK.open(
                    self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, file_mode()
                )
            if self._ahead and self.size + total > self._reserved:
                self._reserved = reserve(self._descriptor, self.size, total)
            if self._kept_back and self.size + total + self._kept_back > self._reserved:
                self._take_ahead(total, urgent=urgent)
            written = DISK.writev(self._descriptor, (lead, data)) if lead else DISK.write(self._descriptor, data)
            while written < total:
                rest = memoryview(data)[written - len(lead) :] if written >= len(lead) else lead[written:] + bytes(data)
                written += DISK.write(self._descriptor, rest)
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
                DISK.truncate(self._descriptor, self.size)  # gives back what lies behind the end
            if sync:
                DISK.sync(self._descriptor)
            DISK.close(self._descriptor)
        except OSError as error:
            self._trouble(error)
        self._descriptor = -1

    def _take_ahead(self, total: int, *, urgent: bool) -> None:
        """Blocks for what comes; without any, only urgent records go on, into those kept back."""
        taken = DISK.allocate(self._descriptor, self.size, total + self._kept_back + TAKEN_AT_ONCE)
        if taken:
            self._reserved = self.size + total + self._kept_back + TAKEN_AT_ONCE
        elif taken is None:
            self._kept_back = 0  # a file system that cannot; it is written as it always was
        elif not urgent:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _trouble(self, error: OSError) -> None:
        self.error = error
        self._skip, self._skip_until = RETRY_STEPS, time.monotonic() + RETRY_SECONDS

    def _shorten(self, size: int) -> None:
        try:
            if self._descriptor >= 0:
                DISK.truncate(self._descriptor, size)  # and what was kept back is free for anybody
                if self._kept_back and self._reserved > size:
                    DISK.allocate(self._descriptor, size, self._reserved - size)
            self.size = size
            self._reserved = max(self._reserved, size) if self._kept_back else size
        except OSError as error:
            self._trouble(error)
