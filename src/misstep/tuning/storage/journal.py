"""Optuna's journal in one file, made safe against kill -9 and a full disk. The format is Optuna's own.

Two things differ from Optuna's backend. The lock is the kernel's (flock), so a killed worker holds it no longer;
Optuna's is a file that others wait 30 seconds for. And a line that was cut off, by a kill or a full disk, is removed by
the next writer; with Optuna's it runs into the next line, and from then on nobody can read the journal.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

_DECODE = msgspec.json.Decoder().decode
_DECISIVE = (0, 1, 4, 6)
"""Optuna's numbers of what begins and ends studies and trials. Only these wait for the disk: they take all before them
along, and between them only a power cut can lose anything, of trials that are then run again."""


class JournalFile:
    """The backend of an `optuna.storages.JournalStorage`."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()
        self._offsets = [0]
        """Where the n-th record begins, as far as it was read."""

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """Every whole record from that number on; what cannot be read is passed over."""
        begin = self._offsets[log_number_from]
        with open(self.path, "rb") as file:
            file.seek(begin)
            data = file.read()
        end = data.rfind(b"\n") + 1
        del self._offsets[log_number_from + 1 :]
        at = begin
        for line in data[:end].split(b"\n")[:-1]:
            at += len(line) + 1
            record = decoded(line)
            if record is None:
                self._offsets[-1] = at
            else:
                self._offsets.append(at)
                yield record

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Add records: all of them, or none when there is no room."""
        text = b"".join(json.dumps(log, separators=(",", ":")).encode() + b"\n" for log in logs)
        with locked(self.path, os.O_RDWR | os.O_CREAT) as file:
            size = _whole(file)
            os.lseek(file, size, os.SEEK_SET)
            try:
                written = 0
                while written < len(text):
                    written += os.write(file, text[written:])
                if any(log.get("op_code") in _DECISIVE for log in logs):
                    os.fsync(file)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(file, size)
                raise


def decoded(line: bytes) -> dict[str, Any] | None:
    """One record; None when the line is none. Python's JSON also has NaN and Infinity, which are rare and slow."""
    try:
        record = _DECODE(line)
    except msgspec.DecodeError:
        try:
            record = json.loads(line)
        except ValueError:
            return None
    return record if isinstance(record, dict) else None


@contextlib.contextmanager
def locked(path: Path, flags: int = os.O_RDWR | os.O_CREAT) -> Iterator[int]:
    """The file, held by us alone until the end, or until this process dies."""
    file = os.open(path, flags, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _whole(file: int) -> int:
    """The size up to the last whole line; what was cut off behind it is removed."""
    size = os.fstat(file).st_size
    if size == 0 or os.pread(file, 1, size - 1) == b"\n":
        return size
    end, block = size, 65536
    while end > 0:
        begin = max(0, end - block)
        found = os.pread(file, end - begin, begin).rfind(b"\n")
        if found >= 0:
            end = begin + found + 1
            break
        end = begin
    os.ftruncate(file, end)
    return end
