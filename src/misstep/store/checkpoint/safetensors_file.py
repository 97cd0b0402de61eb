"""The safetensors format, read mapped and written in one go.

    eight bytes: length of the header · header (JSON: name → dtype, shape, data_offsets) · the values, back to back

Types the format lacks (complex128, the fnuz floats) are stored as unsigned integers of the same bits, named in the
metadata under `misstep.dtypes`, and come back as they were. MindSpore marks packed int4 there in its own way.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.errors import FormatError
from misstep.store.atomic import whole_file
from misstep.store.boundary import Damaged, json_object, reading, whole_number
from misstep.store.checkpoint.record import Checkpoint, Held, unreadable
from misstep.store.foreign.elements import PACKED_INT4, dtype_named, from_safetensors, name_of, to_safetensors

_HEADER_LIMIT = 100_000_000
"""The reference implementation's own limit for the header."""
_DTYPES_KEY = "misstep.dtypes"


def looks_like_safetensors(head: bytes) -> bool:
    """By the first nine bytes: a plausible length, then the opening brace of the header."""
    return len(head) >= 9 and struct.unpack_from("<Q", head)[0] < _HEADER_LIMIT and head[8:9] == b"{"


def read_safetensors(path: str | Path) -> Checkpoint:
    """Every tensor of a safetensors file, mapped, once its header has passed every check of the format."""
    where = Path(path)
    with reading(where, "safetensors header"):
        with open(where, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(9)
            if not looks_like_safetensors(head):
                raise FormatError(f"{where} is no safetensors file", path=str(where))
            length = struct.unpack("<Q", head[:8])[0]
            if 8 + length > size:
                raise Damaged(f"a header of {length:,} bytes, {size - 8:,} are there", offset=0)
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        header = _parsed(bytes(data[8 : 8 + length]))
        metadata = _strings(header.pop("__metadata__", {}))
        real = _strings(json_object(metadata.get(_DTYPES_KEY, "{}")))
        tensors = {}
        end = 0
        for name, said in sorted(header.items(), key=_begin):
            start, stop, shape = _place(name, said, end, offset=8 + length)
            end = stop
            tensors[name] = _held(where, data, name, said, real.get(name), 8 + length + start, stop - start, shape,
                                  packed=metadata.get(name) == "Int4")  # fmt: skip
        if 8 + length + end != size:
            raise Damaged(f"the end of the file, {size - 8 - length - end:,} bytes are left", offset=8 + length + end)
    extras: dict[str, object] = {
        key: value for key, value in metadata.items() if key != _DTYPES_KEY and key not in tensors
    }
    return Checkpoint(where, "safetensors", tensors, extras)


def _parsed(text: bytes) -> dict[str, Any]:
    """The header: a JSON object in which no name stands twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise Damaged("every name once in the header", offset=8)
        return found

    return json_object(text, limit=_HEADER_LIMIT, pairs=once)


def _strings(said: object) -> dict[str, str]:
    if not isinstance(said, dict) or not all(isinstance(value, str) for value in said.values()):
        raise Damaged("metadata of texts", offset=8)
    return said


def _begin(item: tuple[str, Any]) -> tuple[int, int]:
    """For sorting; what is no pair of offsets is complained of when its turn comes."""
    offsets = item[1].get("data_offsets") if isinstance(item[1], dict) else None
    fits = isinstance(offsets, list) and len(offsets) == 2 and all(type(offset) is int for offset in offsets)
    return (offsets[0], offsets[1]) if fits and offsets else (0, 0)


def _place(name: str, said: Any, expected: int, *, offset: int) -> tuple[int, int, tuple[int, ...]]:
    """Where a tensor begins and ends behind the header, and its shape: exactly behind the one before it, no hole."""
    short = name[:80]
    if not isinstance(said, dict) or not isinstance(said.get("dtype"), str):
        raise Damaged(f"dtype, shape and data_offsets of {short}", offset=8)
    offsets, shape = said.get("data_offsets"), said.get("shape")
    if not isinstance(offsets, list) or len(offsets) != 2 or not isinstance(shape, list) or len(shape) > 64:
        raise Damaged(f"shape and data_offsets of {short}", offset=8)
    start, stop = (whole_number(one, f"an offset of {short}") for one in offsets)
    if start != expected or stop < start:
        raise Damaged(
            f"{short} to begin at {expected:,} and to end behind it, it says {start:,} to {stop:,}", offset=offset
        )
    return start, stop, tuple(whole_number(one, f"a size of {short}") for one in shape)


def _held(
    where: Path,
    data: memoryview,
    name: str,
    said: dict[str, Any],
    real: str | None,
    start: int,
    length: int,
    shape: tuple[int, ...],
    *,
    packed: bool,
) -> Held:
    ours = PACKED_INT4 if packed else real or from_safetensors(said["dtype"])
    dtype = dtype_named(ours) if ours else None
    if ours is None or dtype is None:
        return unreadable(name, said["dtype"], shape, f"its element type {said['dtype']} is unknown here")
    shape = shape[:-1] if real and dtype.itemsize == 16 else shape
    count = math.prod(shape)
    if length != count * dtype.itemsize:
        raise FormatError(
            f"{where}: {name} does not fit into the file; it was cut short", path=str(where), offset=start
        )
    if start + length > len(data):
        raise Damaged(f"{length:,} bytes of {name[:80]}", offset=start)
    return Held(name, ours, shape, _loader(data, dtype, start, count, shape))


def write_safetensors(
    path: str | Path, arrays: Mapping[str, NDArray[Any]], *, metadata: Mapping[str, str] | None = None
) -> None:
    """A safetensors file any reader opens.

    >>> write_safetensors("model.safetensors", {"fc.weight": weight}, metadata={"format": "pt"})
    """
    header: dict[str, Any] = {}
    real: dict[str, str] = {}
    at = 0
    for name, array in arrays.items():
        ours = name_of(array.dtype)
        theirs, shape = to_safetensors(ours), list(array.shape)
        if theirs is None:
            real[name] = ours
            words = {1: "U8", 2: "U16", 4: "U32", 8: "U64", 16: "U64"}
            theirs = words[array.dtype.itemsize]
            # complex128 has no sixteen-byte integer: two words an element, as one more axis, undone when read.
            shape = [*shape, 2] if array.dtype.itemsize == 16 else shape
        header[name] = {"dtype": theirs, "shape": shape, "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    notes = dict(metadata or {})
    if real:
        notes[_DTYPES_KEY] = json.dumps(real)
    if notes:
        header["__metadata__"] = notes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with whole_file(path) as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            out.write(np.ascontiguousarray(array).tobytes())


def _loader(
    data: memoryview, dtype: np.dtype[Any], start: int, count: int, shape: tuple[int, ...]
) -> Callable[[], NDArray[Any]]:
    def load() -> NDArray[Any]:
        return np.frombuffer(data, dtype=dtype, count=count, offset=start).reshape(shape)

    return load
