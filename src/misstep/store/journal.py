"""Lines that prove themselves: one JSON object each, with the checksum of the rest of the line as its last member.

    {"kind":"step","time":1794765845.2,"step":{"number":7,"loss":0.31},"crc":"5c1f09aa"}

The journal and the graph are such files; most steps have a shorter form (stepline.py).
A line without its end is still being written, or was cut off when the
process died: it is not read. A line whose checksum does not fit is skipped and counted, and the next one is read.
"""

from __future__ import annotations

import contextlib
import gc
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from misstep.store.codec import from_json, to_json
from misstep.store.stepline import read_step_line

EventKind = Literal[
    "start",
    "step",
    "hit",
    "watchpoint",
    "verdict",
    "finding",
    "note",
    "warning",
    "lost",
    "level",
    "state",
    "heartbeat",
    "end",
]
"""The kinds misstep itself writes; a reader passes on those it does not know."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, as one line of the journal tells it."""

    kind: str
    rank: int
    time: float
    """Seconds since 1970."""
    facts: dict[str, Any] = field(default_factory=dict)
    number: int = 0
    """Its position in the rank's journal, from 0."""


def seal(plain: dict[str, Any]) -> bytes:
    """The line for an object with at least one member."""
    body = to_json(plain)
    return body[:-1] + _TAIL % zlib.crc32(body) + b"\n"


_TAIL = b',"crc":"%08x"}'
_TAIL_BYTES = len(_TAIL % 0)


def unseal(line: bytes) -> dict[str, Any] | None:
    """The object of a line (without its line break); None when the line is damaged."""
    if line[:1] == b"[":
        return read_step_line(line)
    cut = len(line) - _TAIL_BYTES
    body = line[:cut] + b"}"
    if cut < 1 or line[cut:] != _TAIL % zlib.crc32(body):
        return None
    try:
        plain = from_json(body)
    except ValueError:
        return None
    return plain if isinstance(plain, dict) else None


@contextlib.contextmanager
def collector_at_rest() -> Iterator[None]:
    """A hundred thousand new records make the collector look at all of them again and again, and find nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_BLOCK_BYTES = 4 << 20


class LineReader:
    """Reads what was added to a file of lines since the last look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.damaged: list[int] = []
        """Offsets of lines that could not be read."""
        self.unfinished = 0
        """Bytes of a line without an end, at the end of the file."""

    def new_lines(self) -> list[dict[str, Any]]:
        plains: list[dict[str, Any]] = []
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                begun = b""
                # In blocks: a week of training is a journal of hundreds of megabytes.
                while block := file.read(_BLOCK_BYTES):
                    *lines, begun = (begun + block).split(b"\n")
                    self._read_lines(lines, plains)
                self.unfinished = len(begun)
        except FileNotFoundError:
            pass
        return plains

    def _read_lines(self, lines: list[bytes], plains: list[dict[str, Any]]) -> None:
        at = self.offset
        for line in lines:
            plain = unseal(line)
            if plain is None:
                self.damaged.append(at)
            else:
                plains.append(plain)
            at += len(line) + 1
        self.offset = at

    def damage(self, *, alive: bool) -> list[str]:
        """Sentences about what could not be read; a line still being written is no damage."""
        sentences = []
        name = f"{self.path.parent.name}/{self.path.name}"
        if self.damaged:
            places = ", ".join(str(offset) for offset in self.damaged[:3]) + (" …" if len(self.damaged) > 3 else "")
            count = len(self.damaged)
            sentences.append(f"{name}: {count:,} damaged line{'s' * (count > 1)} skipped, at byte {places}")
        if self.unfinished and not alive:
            sentences.append(f"{name}: the last line was cut off after {self.unfinished:,} bytes")
        return sentences
