"""The flight recorder's file: the last steps of a training in a mapped file of fixed size, which outlives the process.

    header │ cells: where it is now │ notes, twice │ slot 0 … slot N-1: one step each │ the tail of its log

The kernel keeps a mapped page when the process is killed, so nothing is flushed and nothing can be lost but what was
being written. A slot carries its sequence number and checksum; a torn one is not read. Notes are written to two places
in turn for the same reason. The file's blocks are reserved when it is made: a hole in it would mean SIGBUS on a full
disk, and the death of somebody's training.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from misstep.core import cells
from misstep.errors import RunDamaged, RunTooNew
from misstep.store.codec import from_json, to_json
from misstep.store.modes import file_mode

MAGIC = b"MSTPRING"
VERSION = 1
CELLS_AT = 128
NOTES_AT = 4096
NOTE_BYTES = 128 * 1024
LOG_BYTES = 64 * 1024

_HEADER = struct.Struct("<8sIIIIIIqd")
_SLOT = struct.Struct("<QII")


class Ring:
    """The writing side; one process, any thread for the cells, one for the rest."""

    def __init__(self, path: Path, *, slots: int, slot_bytes: int) -> None:
        self.path = path
        self.slots = max(1, slots)
        self.slot_bytes = slot_bytes
        self._slots_at = NOTES_AT + 2 * NOTE_BYTES
        self._log_at = self._slots_at + self.slots * slot_bytes
        self._sequence = self._noted = 0
        self._map = mapped(path, self._log_at + LOG_BYTES)
        self._view = memoryview(self._map)
        _HEADER.pack_into(
            self._map, 0, MAGIC, VERSION, CELLS_AT, self.slots, slot_bytes, NOTE_BYTES, LOG_BYTES, os.getpid(),
            time.time(),
        )  # fmt: skip
        self.cells: memoryview[int] = self._view[CELLS_AT : CELLS_AT + 8 * cells.COUNT].cast("q")

    @property
    def room(self) -> int:
        """Bytes one step may take."""
        return self.slot_bytes - _SLOT.size

    def put(self, payload: bytes) -> None:
        """The facts of a finished step; the oldest step makes room."""
        self._sequence += 1
        at = self._slots_at + (self._sequence % self.slots) * self.slot_bytes
        self._write(at, self._sequence, payload[: self.room])

    def note(self, facts: dict[str, Any]) -> None:
        """Facts that hold for many steps; they replace the former ones."""
        payload = to_json(facts)
        if len(payload) <= NOTE_BYTES - _SLOT.size:
            self._noted += 1
            self._write(NOTES_AT + (self._noted % 2) * NOTE_BYTES, self._noted, payload)

    def log(self, text: bytes) -> None:
        """Add to the tail of the log."""
        text = text[-LOG_BYTES:]
        total = self.cells[cells.LOGGED]
        begin = total % LOG_BYTES
        first = min(len(text), LOG_BYTES - begin)
        self._map[self._log_at + begin : self._log_at + begin + first] = text[:first]
        if first < len(text):
            self._map[self._log_at : self._log_at + len(text) - first] = text[first:]
        self.cells[cells.LOGGED] = total + len(text)

    def _write(self, at: int, sequence: int, payload: bytes) -> None:
        data = self._map
        _SLOT.pack_into(data, at, 0, 0, 0)
        data[at + _SLOT.size : at + _SLOT.size + len(payload)] = payload
        _SLOT.pack_into(data, at, sequence, len(payload), zlib.crc32(payload))


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a ring holds."""

    pid: int
    started: float
    cells: tuple[int, ...]
    notes: dict[str, Any] = field(default_factory=dict)
    steps: tuple[dict[str, Any], ...] = ()
    """The last steps, the oldest first."""
    log: str = ""
    torn: int = 0
    """Slots that were being written when the process ended."""


def read_ring(path: Path) -> Recorded:
    """Everything in a ring that can be trusted, while it is written or long after."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RunDamaged(f"cannot read {path}: {error.strerror}", run=str(path.parent)) from None
    if len(data) < NOTES_AT or not data.startswith(MAGIC):
        raise RunDamaged(f"{path} is no flight recorder's file, or was cut off at its beginning", run=str(path.parent))
    _, version, cells_at, slots, slot_bytes, note_bytes, log_bytes, pid, started = _HEADER.unpack_from(data)
    if version > VERSION:
        raise RunTooNew(f"{path} was written by a later misstep:  pip install -U misstep", run=str(path.parent))
    slots_at = NOTES_AT + 2 * note_bytes
    if cells_at + 8 * cells.COUNT > NOTES_AT or slots * max(slot_bytes, _SLOT.size) > max(len(data) - NOTES_AT, 0) * 2:
        raise RunDamaged(f"{path}: its header claims more than the file holds", run=str(path.parent))
    now = struct.unpack_from(f"<{cells.COUNT}q", data, cells_at)
    notes = [_read(data, NOTES_AT + place * note_bytes, note_bytes) for place in range(2)]
    found = [_read(data, slots_at + place * slot_bytes, slot_bytes) for place in range(slots)]
    log_at = slots_at + slots * slot_bytes
    return Recorded(
        pid=pid,
        started=started,
        cells=now,
        notes=max((note for note in notes if note is not None), default=(0, {}), key=lambda pair: pair[0])[1],
        steps=tuple(facts for _, facts in sorted((one for one in found if one is not None), key=lambda one: one[0])),
        log=_log(data[log_at : log_at + log_bytes], now[cells.LOGGED], log_bytes),
        torn=sum(one is None for one in found) - _untouched(data, slots_at, slots, slot_bytes),
    )


def mapped(path: Path, size: int) -> mmap.mmap:
    """A new file of that size in memory, every block of it reserved."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, file_mode())
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.write(descriptor, bytes(size))
        return mmap.mmap(descriptor, size)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _read(data: bytes, at: int, size: int) -> tuple[int, dict[str, Any]] | None:
    if at + _SLOT.size > len(data):
        return None
    sequence, length, check = _SLOT.unpack_from(data, at)
    if not sequence or length > size - _SLOT.size:
        return None
    payload = data[at + _SLOT.size : at + _SLOT.size + length]
    if zlib.crc32(payload) != check:
        return None
    try:
        facts = from_json(payload)
    except ValueError:
        return None
    return (sequence, facts) if isinstance(facts, dict) else None


def _untouched(data: bytes, at: int, slots: int, slot_bytes: int) -> int:
    empty = bytes(_SLOT.size + 2)
    return sum(data.startswith(empty, at + place * slot_bytes) for place in range(slots))


def _log(area: bytes, total: int, size: int) -> str:
    """The end of the log in a place of `size`, of which a cut file has less."""
    if total > size > 0:
        cut = total % size
        area = area[cut:] + area[:cut]
        area = area[area.find(b"\n") + 1 :]  # its first line has lost its beginning
    else:
        area = area[: max(total, 0)]
    return area.replace(b"\0", b"").decode("utf-8", "replace")
