"""Just enough of the protobuf wire format to read MindSpore's files without protobuf.

A message is a row of (field number, value); a nested message is bytes to be read the same way. Offsets are kept
instead of copies, so that the tensors of a large checkpoint stay where they are, in the mapped file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Buffer = bytes | memoryview


class Field(NamedTuple):
    """One field of a message: a number, or the place of its bytes."""

    number: int
    kind: int
    value: int
    """The number itself; for BYTES the offset of the first byte."""
    end: int
    """For BYTES: one past the last byte."""


class Malformed(ValueError):
    """The bytes are no protobuf message."""


def fields(data: Buffer, start: int = 0, end: int | None = None) -> Iterator[Field]:
    """Every field of the message that lies between two offsets."""
    at, stop = start, len(data) if end is None else end
    while at < stop:
        tag, at = varint(data, at, stop)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise Malformed(f"field number 0 at byte {at}")
        if kind == VARINT:
            value, at = varint(data, at, stop)
            yield Field(number, kind, value, at)
        elif kind == BYTES:
            length, at = varint(data, at, stop)
            if at + length > stop:
                raise Malformed(f"field {number} at byte {at} runs {at + length - stop} bytes past the end")
            yield Field(number, kind, at, at + length)
            at += length
        elif kind in (FIXED64, FIXED32):
            width = 8 if kind == FIXED64 else 4
            if at + width > stop:
                raise Malformed(f"field {number} at byte {at} runs past the end")
            yield Field(number, kind, int.from_bytes(data[at : at + width], "little"), at + width)
            at += width
        else:
            raise Malformed(f"wire type {kind} at byte {at}")


def varint(data: Buffer, at: int, stop: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= stop or shift > 63:
            raise Malformed(f"a number at byte {at} does not end")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def varints(data: Buffer, start: int, end: int) -> list[int]:
    """A packed row of numbers."""
    found = []
    while start < end:
        value, start = varint(data, start, end)
        found.append(value)
    return found


def signed(value: int) -> int:
    """Negative int64 values travel as their two's complement."""
    return value - (1 << 64) if value >> 63 else value


def text(data: Buffer, field: Field) -> str:
    return bytes(data[field.value : field.end]).decode("utf-8", "replace")


def encode_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_number(number: int, value: int) -> bytes:
    return encode_varint(number << 3 | VARINT) + encode_varint(value & (1 << 64) - 1)


def encode_bytes(number: int, payload: bytes) -> bytes:
    return encode_varint(number << 3 | BYTES) + encode_varint(len(payload)) + payload
