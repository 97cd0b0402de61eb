"""Whole tensors: their bytes one after the other in the pack, and an index that says where each of them lies.

    tensors.pack   header (64 bytes) │ tensor │ padding │ tensor │ …      every tensor begins at a multiple of 64
    tensors.idx    header (64 bytes) │ record │ record │ …                 a record begins with TNSR, length, crc32

The tensor is written before its record, so that a record is a promise. Appending costs two writes and no fsync.
After a damaged record the reader looks for the next mark and goes on. Tensors are checked by the kernels' digest,
ten times as quick as the CRC-32 of version 1, which was half of what a dump cost beyond its writes.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from misstep import kernels
from misstep.core.address import Address
from misstep.core.stats import DTYPE_CODES, DTYPE_NAMES, ITEM_BYTES
from misstep.errors import RunDamaged, RunTooNew, TensorUnavailable
from misstep.store.codec import decode, encode, from_json, to_json

PACK_MAGIC = b"MSTPPACK"
INDEX_MAGIC = b"MSTPINDX"
VERSIONS = {PACK_MAGIC: 1, INDEX_MAGIC: 2}
HEADER_BYTES = 64
ALIGNMENT = 64

MARK = b"TNSR"
_HEADER = struct.Struct("<8sII")
_FRAME = struct.Struct("<4sII")  # mark, bytes of the body, crc32 of the body
_PARTS = "<QQQBBH"  # offset, bytes, digest of the tensor, dtype, dimensions, bytes of the name
_BODY = struct.Struct(_PARTS)
_BODY_1 = struct.Struct("<QQIBBH")  # of version 1, with a crc32 in place of the digest
_BODIES = [struct.Struct(f"{_PARTS}{rank}q") for rank in range(9)]
_CASTABLE = frozenset(np.dtype(mark) for mark in "?bBhHiIlLqQefd")
"""Those that Python's memoryview knows."""
_LONGEST_BODY = _BODY.size + 255 * 8 + 0xFFFF


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A whole tensor in the pack: its name and where it lies."""

    address: Address
    dtype: str
    shape: tuple[int, ...]
    offset: int
    bytes: int
    checksum: int


Place = tuple[int, int, int]
"""Where a tensor's bytes lie: offset, length, and their checksum."""


def header(magic: bytes) -> bytes:
    return _HEADER.pack(magic, VERSIONS[magic], HEADER_BYTES).ljust(HEADER_BYTES, b"\0")


def bytes_of(tensor: Any) -> memoryview:
    """The bytes of an array or buffer in C order, without a copy when it lies so already."""
    if isinstance(tensor, np.ndarray):
        flat = tensor if tensor.flags.c_contiguous else np.ascontiguousarray(tensor)
        if flat.dtype in _CASTABLE and flat.size:
            return flat.data.cast("B")  # a fourth of the time of two views, and small tensors come by the thousand
        # ml_dtypes have no buffer protocol of their own, hence the view as bytes.
        return flat.reshape(-1).view(np.uint8).data
    view = memoryview(tensor)
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


def padding(offset: int) -> int:
    return -offset % ALIGNMENT


def pack_record(stored: StoredTensor) -> bytes:
    """One record of the index."""
    place = stored.offset, stored.bytes, stored.checksum
    return named_record(name_of(stored.address), place, stored.dtype, stored.shape)


def name_of(address: Address) -> bytes:
    """An address as a record holds it."""
    name = encode(address)
    return name.encode("utf-8", "replace") if isinstance(name, str) else to_json(name)


def named_record(name: bytes, place: Place, dtype: str, shape: tuple[int, ...]) -> bytes:
    """A record from its parts, for writers that make thousands of them a second."""
    rank = len(shape)
    parts = _BODIES[rank] if rank < len(_BODIES) else struct.Struct(f"{_PARTS}{rank}q")
    body = parts.pack(*place, DTYPE_CODES[dtype], rank, len(name), *shape) + name
    return _FRAME.pack(MARK, len(body), zlib.crc32(body)) + body


def unpack_record(body: bytes, *, version: int = 2) -> StoredTensor:
    parts = _BODY if version > 1 else _BODY_1
    offset, size, checksum, dtype, rank, length = parts.unpack_from(body)
    *shape, text = struct.unpack_from(f"<{rank}q{length}s", body, parts.size)
    name = from_json(text) if text.startswith(b"{") else text.decode("utf-8")
    return StoredTensor(decode(Address, name), DTYPE_NAMES[dtype], tuple(shape), offset, size, checksum)


def check_size(dtype: str, shape: tuple[int, ...], size: int) -> None:
    if dtype not in DTYPE_CODES or dtype == "unknown":
        known = ", ".join(name for name in DTYPE_NAMES if name != "unknown")
        raise ValueError(f"the pack knows no dtype {dtype!r}; it knows {known}")
    expected = math.prod(shape) * ITEM_BYTES[DTYPE_CODES[dtype]]
    if expected != size:
        raise ValueError(f"a {dtype} tensor of shape {shape} has {expected:,} bytes, but {size:,} were given")


def numpy_dtype(name: str) -> np.dtype[Any]:
    """numpy's own dtype, or the one ml_dtypes adds (bfloat16, fp8)."""
    if name == "bfloat16" or name.startswith("float8"):
        import ml_dtypes  # only readers of such tensors pay for the import

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


class PackReader:
    """The whole tensors of one rank."""

    def __init__(self, pack: Path, index: Path) -> None:
        self.pack = pack
        self.index = index
        self.stored: dict[Address, StoredTensor] = {}
        """The newest of every address, without its rank, in the order of first appearance."""
        self.unfinished = 0
        self.damaged: list[int] = []
        self._offset = 0
        self._version = VERSIONS[INDEX_MAGIC]

    def refresh(self) -> None:
        try:
            with open(self.index, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        at = 0
        if self._offset == 0:
            if len(data) < HEADER_BYTES:
                self.unfinished = len(data)
                return
            self._version = self._check_header(data, self.index, INDEX_MAGIC)
            at = HEADER_BYTES
        self._offset += self._read_records(data, at)

    def _read_records(self, data: bytes, at: int) -> int:
        """Take in the whole records from `at` on; the number of bytes done with."""
        while at < len(data):
            body = self._body(data, at)
            if body is not None:
                self._take_in(body, at)
                at += _FRAME.size + len(body)
                continue
            following = self._next_record(data, at + 1)
            if following is None:
                break
            self.damaged.append(self._offset + at)
            at = following
        self.unfinished = len(data) - at
        return at

    def _take_in(self, body: bytes, at: int) -> None:
        try:
            stored = unpack_record(body, version=self._version)
        except (struct.error, IndexError, ValueError):  # of a later misstep: a dtype or a role we do not know
            self.damaged.append(self._offset + at)
            return
        self.stored[replace(stored.address, rank=None)] = stored

    def _next_record(self, data: bytes, start: int) -> int | None:
        found = data.find(MARK, start)
        while found >= 0:
            if self._body(data, found) is not None:
                return found
            found = data.find(MARK, found + 1)
        return None

    @staticmethod
    def _body(data: bytes, at: int) -> bytes | None:
        if at + _FRAME.size > len(data):
            return None
        mark, length, crc = _FRAME.unpack_from(data, at)
        if mark != MARK or length > _LONGEST_BODY:
            return None
        body = data[at + _FRAME.size : at + _FRAME.size + length]
        return body if len(body) == length and zlib.crc32(body) == crc else None

    @staticmethod
    def _check_header(data: bytes, path: Path, magic: bytes) -> int:
        found, version, _ = _HEADER.unpack_from(data)
        if found != magic:
            raise RunDamaged(f"{path} does not begin as it should", run=str(path))
        if version > VERSIONS[magic]:
            raise RunTooNew(
                f"{path} was written by a later misstep (version {version}, this one reads {VERSIONS[magic]}):"
                "  pip install -U misstep",
                run=str(path),
            )
        return int(version)

    def array(self, stored: StoredTensor, *, verify: bool = True) -> npt.NDArray[Any]:
        """The tensor, mapped and read-only; `verify` reads it once to compare its checksum."""
        dtype = numpy_dtype(stored.dtype)
        if stored.bytes == 0:
            empty: npt.NDArray[Any] = np.empty(stored.shape, dtype)
            empty.flags.writeable = False
            return empty
        try:
            there = os.stat(self.pack).st_size
        except FileNotFoundError:
            there = 0
        if there < stored.offset + stored.bytes:
            raise TensorUnavailable(
                f"{stored.address} lies at byte {stored.offset:,} of {self.pack}, which ends at {there:,}:"
                " the file was cut off or copied in part",
                address=str(stored.address),
                reason="damaged",
            )
        raw = np.memmap(self.pack, dtype=np.uint8, mode="r", offset=stored.offset, shape=(stored.bytes,)).view(
            np.ndarray
        )
        if verify and stored.checksum != (kernels.digest_bytes if self._version > 1 else zlib.crc32)(raw.data):
            raise TensorUnavailable(
                f"{stored.address} is damaged in {self.pack} at byte {stored.offset:,}: its checksum does not fit",
                address=str(stored.address),
                reason="damaged",
            )
        return raw.view(dtype).reshape(stored.shape)

    def damage(self, *, alive: bool) -> list[str]:
        sentences = []
        name = f"{self.index.parent.name}/{self.index.name}"
        if self.damaged:
            count = len(self.damaged)
            sentences.append(
                f"{name}: damage skipped in {count:,} place{'s' * (count > 1)}, the first at byte {self.damaged[0]:,}"
            )
        if self.unfinished and not alive:
            sentences.append(f"{name}: the last {self.unfinished:,} bytes are no whole record")
        return sentences
