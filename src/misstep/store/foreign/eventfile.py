"""Event files: a row of records, each framed by its length and two checksums, as TensorBoard and MindSpore write them.

    u64 length · u32 masked CRC-32C of the length · bytes · u32 masked CRC-32C of the bytes

A file that is still being written ends in the middle of a record: that is the end for now, not damage.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from misstep.errors import FormatError

_MASK = 0xA282EAD8
_CHECKED_BYTES = 1 << 20
"""Larger records (whole tensors) are taken unchecked: the checksum is computed in Python, a few MB a second."""


def _table() -> tuple[int, ...]:
    values = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ 0x82F63B78 if value & 1 else value >> 1  # Castagnoli, reflected
        values.append(value)
    return tuple(values)


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """CRC-32C.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    """The checksum as it stands in the file: rotated and shifted, so that one over checksums stays meaningful."""
    value = crc32c(data)
    return ((value >> 15 | value << 17) + _MASK) & 0xFFFFFFFF


def records(path: str | Path) -> Iterator[bytes]:
    """Every whole record; raises FormatError where a record is damaged rather than unfinished."""
    with open(path, "rb") as file:
        number, size = 0, os.fstat(file.fileno()).st_size
        while len(head := file.read(12)) == 12:
            length, check = struct.unpack("<QI", head)
            if masked(head[:8]) != check:
                raise FormatError(f"{path}: record {number} is damaged; what came before it was read", path=str(path))
            if length + 4 > size - file.tell():
                return  # unfinished; nothing is allocated for what is not there
            body = file.read(length + 4)
            if len(body) < length + 4:
                return
            data = body[:-4]
            if length <= _CHECKED_BYTES and masked(data) != struct.unpack("<I", body[-4:])[0]:
                raise FormatError(f"{path}: record {number} is damaged; what came before it was read", path=str(path))
            yield data
            number += 1
