"""The safetensors format, read mapped and written in one go.

    eight bytes: length of the header · header (JSON: name → dtype, shape, data_offsets) · the values, back to back

Types the format lacks (complex128, the fnuz floats) are stored as unsigned integers of the same bits, named in the
metadata under `misstep.dtypes`, and come back as they were. MindSpore marks packed int4 there in its own way.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.errors import FormatError
from misstep.store.checkpoint.record import Checkpoint, Held, unreadable
from misstep.store.foreign.elements import PACKED_INT4, dtype_named, from_safetensors, name_of, to_safetensors

_HEADER_LIMIT = 100_000_000
"""The reference implementation's own limit for the header."""
_DTYPES_KEY = "misstep.dtypes"


def looks_like_safetensors(head: bytes) -> bool:
    """By the first nine bytes: a plausible length, then the opening brace of the header."""
    return len(head) >= 9 and struct.unpack_from("<Q", head)[0] < _HEADER_LIMIT and head[8:9] == b"{"


def read_safetensors(path: str | Path) -> Checkpoint:
    """Every tensor of a safetensors file, mapped."""
    where = Path(path)
    with open(where, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(9)
        if not looks_like_safetensors(head):
            raise FormatError(f"{where} is no safetensors file", path=str(where))
        length = struct.unpack("<Q", head[:8])[0]
        file.seek(8)
        text = file.read(length)
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if size else memoryview(b"")
    try:
        header: dict[str, Any] = json.loads(text)
    except ValueError as wrong:
        raise FormatError(
            f"{where}: the header is no JSON ({wrong}); the file was cut short", path=str(where)
        ) from None
    metadata: dict[str, str] = header.pop("__metadata__", {})
    real: dict[str, str] = json.loads(metadata.get(_DTYPES_KEY, "{}"))
    tensors = {}
    for name, said in sorted(header.items(), key=lambda item: item[1]["data_offsets"][0]):
        ours = real.get(name) or from_safetensors(said["dtype"])
        if metadata.get(name) == "Int4":
            ours = PACKED_INT4
        dtype = dtype_named(ours) if ours else None
        if ours is None or dtype is None:
            why = f"its element type {said['dtype']} is unknown here"
            tensors[name] = unreadable(name, str(said["dtype"]), tuple(said["shape"]), why)
            continue
        start, stop = (8 + length + offset for offset in said["data_offsets"])
        shape = tuple(said["shape"][:-1] if name in real and dtype.itemsize == 16 else said["shape"])
        count = int(np.prod(shape, dtype=np.int64)) if shape else 1
        if stop > size or stop - start != count * dtype.itemsize:
            raise FormatError(f"{where}: {name} does not fit into the file; it was cut short", path=str(where))
        tensors[name] = Held(name, ours, shape, _loader(data, dtype, start, count, shape))
    extras: dict[str, object] = {
        key: value for key, value in metadata.items() if key != _DTYPES_KEY and key not in tensors
    }
    return Checkpoint(where, "safetensors", tensors, extras)


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
    where = Path(path)
    partial = where.with_name(where.name + ".partial")
    with open(partial, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            out.write(np.ascontiguousarray(array).tobytes())
    os.replace(partial, where)


def _loader(
    data: memoryview, dtype: np.dtype[Any], start: int, count: int, shape: tuple[int, ...]
) -> Callable[[], NDArray[Any]]:
    def load() -> NDArray[Any]:
        return np.frombuffer(data, dtype=dtype, count=count, offset=start).reshape(shape)

    return load
