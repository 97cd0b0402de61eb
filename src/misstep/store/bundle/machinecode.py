"""Addresses of machine code in words: which library, which function, read from the libraries' own symbol tables.

    0x7f3a51c0  ──map of the process──►  libtorch_cpu.so + 0x4511c0  ──symbols──►  c10d::ProcessGroupGloo::… + 0x2a

The process that left the addresses may be dead: its map is beside them, and the libraries are still on the disk. Names
are those the library exports, or all of them where it was not stripped; the nearest one below the address is told.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("at", "<u8"), ("size", "<u8")]
)
_FUNCTIONS = (2, 10)
"""Of the types of symbols: functions, and those chosen when the library is loaded."""
_LARGEST_NAME = 160


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a file that lies in memory."""

    first: int
    last: int
    offset: int
    path: str


def read_map(text: str) -> list[Region]:
    """The lines of /proc/PID/maps that hold code of a file, in order."""
    found = []
    for line in text.splitlines():
        parts = line.split(None, 5)
        if len(parts) == 6 and "x" in parts[1] and parts[5].startswith("/"):
            first, _, last = parts[0].partition("-")
            found.append(Region(int(first, 16), int(last, 16), int(parts[2], 16), parts[5]))
    return sorted(found, key=lambda region: region.first)


def in_words(addresses: Iterable[int], regions: list[Region]) -> list[str]:
    """One line a frame: 'libc.so.6  __poll+0x4f'."""
    starts = [region.first for region in regions]
    told = []
    for place, address in enumerate(addresses):
        # All but the innermost are return addresses: the call itself lies before, perhaps in another function.
        at = address if place == 0 else address - 1
        position = bisect.bisect_right(starts, at) - 1
        region = regions[position] if position >= 0 and at < regions[position].last else None
        if region is None:
            told.append(f"{address:#x}")
            continue
        library = Path(region.path.removesuffix(" (deleted)")).name
        function = symbols_of(region.path).name(at - region.first + region.offset)
        told.append(f"{library}  {function}" if function else f"{library}  +{at - region.first + region.offset:#x}")
    return told


_BLOCK = re.compile(r"machine code of thread (\d+) at signal (\d+)\n((?:0x[0-9a-f]+\n)*)map\n(.*)", re.DOTALL)


def with_functions(text: str) -> str:
    """What the handler of a fatal signal left, in words; any other text as it is."""
    found = _BLOCK.search(text)
    if found is None:
        return text
    addresses = [int(line, 16) for line in found[3].split()]
    lines = in_words(addresses, read_map(found[4]))
    return "\n".join([f"machine code of thread {found[1]} at signal {found[2]}", *(f"  {line}" for line in lines), ""])


class Symbols:
    """The functions of one library, by where they begin."""

    def __init__(self, table: Any = None, names: bytes = b"", segments: tuple[tuple[int, int, int], ...] = ()) -> None:
        table = np.zeros(0, _SYMBOL) if table is None else table
        chosen = table[np.isin(table["info"] & 15, _FUNCTIONS) & (table["at"] > 0)]
        self._table = chosen[np.argsort(chosen["at"], kind="stable")]
        self._names = names
        self._segments = segments

    def name(self, offset: int) -> str:
        """The function a place in the file belongs to, as far as the library tells; '' when it does not."""
        at = next((offset - low + address for low, high, address in self._segments if low <= offset < high), offset)
        place = int(np.searchsorted(self._table["at"], at, side="right")) - 1
        if place < 0:
            return ""
        row = self._table[place]
        if row["size"] and at >= int(row["at"]) + int(row["size"]):
            return ""  # in a function that the library keeps to itself
        begin = int(row["name"])
        raw = self._names[begin : self._names.find(b"\0", begin)].decode("utf-8", "replace")
        name = demangled(raw)
        name = name if len(name) <= _LARGEST_NAME else name[:_LARGEST_NAME] + "…"
        return f"{name}+{at - int(row['at']):#x}"


@functools.lru_cache(maxsize=64)
def symbols_of(path: str) -> Symbols:
    """Read a library's symbol table; an empty one when there is none, or the file is gone."""
    try:
        return _read(Path(path.removesuffix(" (deleted)")))
    except (OSError, ValueError, struct.error, IndexError):
        return Symbols()


def _read(path: Path) -> Symbols:
    data = np.memmap(path, np.uint8, mode="r")
    head = bytes(data[:64])
    if head[:6] != b"\x7fELF\x02\x01":  # 64 bits, little endian: every machine a framework of ours trains on
        return Symbols()
    segments_at, sections_at = struct.unpack_from("<QQ", head, 32)
    segment_size, segments, section_size, sections = struct.unpack_from("<HHHH", head, 54)
    loaded = tuple(_segments(bytes(data[segments_at : segments_at + segment_size * segments]), segment_size))
    every = bytes(data[sections_at : sections_at + section_size * sections])
    headers = [struct.unpack_from("<IIQQQQIIQQ", every, number * section_size) for number in range(sections)]
    # The full table where it was not stripped away, else that of the exported functions.
    for wanted in (2, 11):
        for header in headers:
            if header[1] == wanted and header[5]:
                names = headers[header[6]]
                table = np.frombuffer(bytes(data[header[4] : header[4] + header[5]]), _SYMBOL)
                return Symbols(table, bytes(data[names[4] : names[4] + names[5]]), loaded)
    return Symbols()


def _segments(raw: bytes, size: int) -> Iterator[tuple[int, int, int]]:
    """(first and last place in the file, address) of what is loaded."""
    for start in range(0, len(raw), size):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", raw, start)
        if kind == 1:
            yield offset, offset + length, address


def demangled(name: str) -> str:
    """A C++ name as it was written: '_ZN4c10d4WorkE' → 'c10d::Work'; any other as it is."""
    if not name.startswith("_Z") or _demangler() is None:
        return name
    status = ctypes.c_int(0)
    text = _demangler()(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    try:
        return ctypes.string_at(text).decode("utf-8", "replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(text))


@functools.cache
def _demangler() -> Any:
    try:
        function = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return function
