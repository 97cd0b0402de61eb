"""The batch a process was busy with when it ended, in a mapped file beside the flight recorder's ring.

Two halves are written in turn, so that one whole batch is there whenever the process dies. Each tensor carries the
digest of its bytes; what does not match its digest is not read.
"""

from __future__ import annotations

import math
import mmap
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep import kernels
from misstep.store.bundle.ring import mapped
from misstep.store.codec import from_json, to_json
from misstep.store.foreign.elements import dtype_named

MAGIC = b"MSTPBATC"
_FILE = struct.Struct("<8sIQ")
_HALF = struct.Struct("<QII")
_FIRST = 64
_DATA_AT = 16 * 1024
_ALIGN = 64


@dataclass(frozen=True, slots=True)
class BatchTensor:
    """One tensor a network was called with."""

    dtype: str
    shape: tuple[int, ...]
    digest: str
    """Of its bytes; empty when they could not be read without waiting for a device."""
    values: NDArray[Any] | None = None
    """None when it did not fit into the budget."""


class BatchFile:
    """The writing side."""

    def __init__(self, path: Path, *, limit_bytes: int) -> None:
        self.path = path
        self._limit = limit_bytes // 2
        self._half = 0
        self._map: mmap.mmap | None = None
        self._bytes: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._base = 0
        self._sequence = 0
        self._layout: list[Any] | None = None
        self._halves: list[tuple[int, list[tuple[int, NDArray[Any] | None]]]] = []
        """Of each half: where it begins, and the place of every tensor of the last batch in it."""

    def put(self, step: int, tensors: Sequence[tuple[str, NDArray[Any] | None, tuple[int, ...]]]) -> list[str]:
        """Keep a batch of (dtype, values or None, shape); the digest of each tensor."""
        layout = [(dtype, shape, values is None) for dtype, values, shape in tensors]
        if layout != self._layout and not self._lay_out(layout, tensors):
            return [_digest(values) for _, values, _ in tensors]
        self._sequence += 1
        begin, places = self._halves[self._sequence % 2]
        assert self._map is not None
        _HALF.pack_into(self._map, begin, 0, 0, 0)
        digests, told = [], []
        for (dtype, values, shape), (at, room) in zip(tensors, places):
            digest = ""
            if values is not None and room is not None:
                np.copyto(room, values)
                digest = f"{kernels.digest(self._base + begin + at, values.nbytes):016x}"
            told.append((dtype, shape, at if values is not None else -1, digest))
            digests.append(digest)
        facts = to_json({"step": step, "tensors": told})
        if len(facts) <= _DATA_AT - _HALF.size:
            self._map[begin + _HALF.size : begin + _HALF.size + len(facts)] = facts
            _HALF.pack_into(self._map, begin, self._sequence, len(facts), zlib.crc32(facts))
        return digests

    def _lay_out(self, layout: list[Any], tensors: Sequence[tuple[str, NDArray[Any] | None, tuple[int, ...]]]) -> bool:
        """Where the tensors of such a batch go, in either half; False when they do not fit. Most batches are alike."""
        self._layout = None
        sizes = [0 if values is None else -(-values.nbytes // _ALIGN) * _ALIGN for _, values, _ in tensors]
        need = _DATA_AT + sum(sizes)
        if need > self._limit:
            return False
        if need > self._half:
            self._grow(need)
        self._halves = [(_FIRST + half * self._half, []) for half in range(2)]
        for begin, places in self._halves:
            at = _DATA_AT
            for (_, values, _), size in zip(tensors, sizes):
                room = None
                if values is not None and values.nbytes:
                    memory = self._bytes[begin + at : begin + at + values.nbytes]
                    room = memory.view(values.dtype).reshape(values.shape)
                places.append((at, room))
                at += size
        self._layout = layout
        return True

    def _grow(self, need: int) -> None:
        self._half = min(-(-(need + need // 8) // 4096) * 4096, self._limit)
        self.path.unlink(missing_ok=True)
        self._map = mapped(self.path, _FIRST + 2 * self._half)
        _FILE.pack_into(self._map, 0, MAGIC, 1, self._half)
        self._bytes = np.frombuffer(self._map, np.uint8)
        self._base = self._bytes.ctypes.data


def read_batch(path: Path) -> tuple[int, list[BatchTensor]] | None:
    """(step, tensors) of the last whole batch; None when there is none."""
    try:
        data = path.read_bytes()
        magic, _, half = _FILE.unpack_from(data)
    except (OSError, struct.error):
        return None
    if magic != MAGIC:
        return None
    found = [_read(data, _FIRST + place * half) for place in range(2)]
    whole = [one for one in found if one is not None]
    if not whole:
        return None
    _, step, tensors = max(whole, key=lambda one: one[0])
    return step, tensors


def _read(data: bytes, begin: int) -> tuple[int, int, list[BatchTensor]] | None:
    try:
        sequence, length, check = _HALF.unpack_from(data, begin)
        facts = data[begin + _HALF.size : begin + _HALF.size + length]
        if not sequence or zlib.crc32(facts) != check:
            return None
        plain = from_json(facts)
        tensors = [_tensor(data, begin, *one) for one in plain["tensors"]]
        return sequence, int(plain["step"]), tensors
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, AttributeError, struct.error):
        return None


def _tensor(data: bytes, begin: int, dtype: str, shape: list[int], at: int, digest: str) -> BatchTensor:
    values = None
    kind = dtype_named(dtype)
    if at >= 0 and kind is not None:
        count = math.prod(shape)
        values = np.frombuffer(data, kind, count, begin + at).reshape(shape)
        if digest and _digest(values) != digest:
            raise ValueError("the batch was being written when the process ended")
    return BatchTensor(dtype, tuple(shape), digest, values)


def _digest(values: NDArray[Any] | None) -> str:
    if values is None or not values.nbytes or not values.flags.c_contiguous:
        return ""
    return f"{kernels.digest(values.ctypes.data, values.nbytes):016x}"
