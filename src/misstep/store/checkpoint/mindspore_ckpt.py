"""MindSpore's .ckpt, read and written without MindSpore.

    file     = Checkpoint*  [b"crc_num" + ten bytes, big endian: CRC-32 of everything before]
    Checkpoint{1: Value*}   Value{1: tag, 2: Tensor, 3: MapTensor{1: Tensor*}}   Tensor{1: dims*, 2: type, 3: content}

The file is a row of messages with one value each, which read as one message. A tensor above 512 MiB is cut into
consecutive values with the same tag and the dims of the whole. Scalars carry dims [0].
"""

from __future__ import annotations

import math
import mmap
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.errors import FormatError
from misstep.store.atomic import whole_file
from misstep.store.boundary import Damaged, behind, reading
from misstep.store.checkpoint.record import Checkpoint, Held, unreadable
from misstep.store.foreign import protobuf as pb
from misstep.store.foreign.elements import PACKED_INT4, dtype_named, from_mindspore, name_of, to_mindspore

SLICE_BYTES = 512 * 1024 * 1024
"""Where MindSpore cuts a tensor (train/serialization.py, SLICE_SIZE)."""
_CRC_MARK = b"crc_num"
_CRC_TRAILER = len(_CRC_MARK) + 10


@dataclass(slots=True)
class _Piece:
    """A tensor as it lies in the file: the dims of the whole, and one span of bytes per slice."""

    dims: list[int] = field(default_factory=list)
    type: str = ""
    spans: list[tuple[int, int]] = field(default_factory=list)


def read_mindspore_ckpt(path: str | Path, *, check: bool = True) -> Checkpoint:
    """Every parameter of a .ckpt, mapped; a wrong checksum is an error unless `check` is off."""
    where = Path(path)
    data = _mapped(where)
    end, checksum = _without_crc(where, data, check=check)
    pieces: list[tuple[str, _Piece]] = []
    try:
        if len(data) < 2:
            raise pb.Malformed("it ends before its first value")
        for value in pb.fields(data, 0, end):
            if value.number != 1 or value.kind != pb.BYTES:
                raise pb.Malformed(f"field {value.number} where a value should be")
            _collect(data, value, pieces)
    except pb.Malformed as wrong:
        raise FormatError(
            f"{where} cannot be read as a MindSpore checkpoint ({wrong}); it may be encrypted (decrypt it with "
            f"mindspore.load_checkpoint(…, dec_key=…) and save it again), cut short, or another format",
            path=str(where),
        ) from None
    tensors: dict[str, Held] = {}
    extras: dict[str, object] = {}
    with reading(where, "MindSpore checkpoint"):
        for name, piece in pieces:
            if piece.type == "str":
                content = b"".join(bytes(data[start:stop]) for start, stop in piece.spans)
                extras[name] = content.decode("utf-32-le", "replace").rstrip("\0")
            else:
                tensors[name] = _held(where, data, name, piece)
    return Checkpoint(where, "mindspore", tensors, extras, "right" if checksum else "absent")


def write_mindspore_ckpt(
    path: str | Path,
    arrays: Mapping[str, NDArray[Any]],
    *,
    extras: Mapping[str, str | int | float | bool] | None = None,
    crc: bool = False,
    slice_bytes: int = SLICE_BYTES,
) -> None:
    """A .ckpt that `mindspore.load_checkpoint` reads.

    >>> write_mindspore_ckpt("model.ckpt", {"fc.weight": weight})
    """
    where = Path(path)
    sums = 0
    with whole_file(where) as out:
        for name, array in arrays.items():
            for message in _messages(where, name, array, slice_bytes):
                sums = zlib.crc32(message, sums) if crc else 0
                out.write(message)
        for name, extra in (extras or {}).items():
            message = _extra(name, extra)
            sums = zlib.crc32(message, sums) if crc else 0
            out.write(message)
        if crc:
            out.write(_CRC_MARK + sums.to_bytes(10, "big"))


def _mapped(path: Path) -> memoryview:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            raise FormatError(f"{path} is empty", path=str(path))
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _without_crc(path: Path, data: memoryview, *, check: bool) -> tuple[int, bool]:
    end = len(data)
    if end < _CRC_TRAILER or bytes(data[end - _CRC_TRAILER : end - 10]) != _CRC_MARK:
        return end, False
    written = int.from_bytes(data[end - 10 : end], "big")
    end -= _CRC_TRAILER
    if check:
        found = zlib.crc32(data[:end])
        if found != written:
            raise FormatError(
                f"{path} is damaged: its checksum is {found:#010x}, the file says {written:#010x}; "
                f"copy it again, or read it as it is with check=False",
                path=str(path),
            )
    return end, True


def _collect(data: memoryview, value: pb.Field, pieces: list[tuple[str, _Piece]]) -> None:
    tag, tensors, mapped = "", [], False
    for part in pb.fields(data, value.value, value.end):
        if part.number == 1:
            tag = pb.text(data, part)
        elif part.number == 2:
            tensors.append(_piece(data, part))
        elif part.number == 3:
            mapped = True
            tensors.extend(_piece(data, inner) for inner in pb.fields(data, part.value, part.end) if inner.number == 1)
    for index, piece in enumerate(tensors):
        name = f"{tag}.{index}" if mapped else tag
        if pieces and pieces[-1][0] == name:
            pieces[-1][1].spans.extend(piece.spans)
        else:
            pieces.append((name, piece))


def _piece(data: memoryview, tensor: pb.Field) -> _Piece:
    piece = _Piece()
    for part in pb.fields(data, tensor.value, tensor.end):
        if part.number == 1:
            numbers = [part.value] if part.kind == pb.VARINT else pb.varints(data, part.value, part.end)
            piece.dims.extend(pb.signed(number) for number in numbers)
        elif part.number == 2:
            piece.type = pb.text(data, part)
        elif part.number == 3:
            piece.spans.append((part.value, part.end))
    return piece


def _held(path: Path, data: memoryview, name: str, piece: _Piece) -> Held:
    ours = from_mindspore(piece.type)
    dtype = dtype_named(ours) if ours else None
    if ours is None or dtype is None:
        return unreadable(name, piece.type, tuple(piece.dims), f"its element type {piece.type!r} is unknown here")
    length = sum(stop - start for start, stop in piece.spans)
    shape = tuple(piece.dims)
    if shape == (0,) and length == dtype.itemsize:
        shape = ()
    if len(shape) > 64 or any(size < 0 for size in shape):
        raise Damaged(f"a shape of {name[:80]} of at most 64 sizes, none below zero")
    count = math.prod(shape)
    if ours == PACKED_INT4 and shape:
        shape, count = _packed_shape(shape, length), length
    if count * dtype.itemsize != length:
        raise FormatError(
            f"{path}: {name} has shape {shape} of {ours} but {length:,} bytes; the file is damaged", path=str(path)
        )
    kind = dtype

    def load() -> NDArray[Any]:
        if len(piece.spans) == 1:
            start, stop = piece.spans[0]
            flat = np.frombuffer(data, dtype=kind, count=count, offset=start) if stop > start else np.empty(0, kind)
        else:
            flat = np.frombuffer(b"".join(data[start:stop] for start, stop in piece.spans), dtype=kind)
        return flat.reshape(shape)

    return Held(name, ours, shape, behind(path, name[:80], load))


def _packed_shape(shape: tuple[int, ...], length: int) -> tuple[int, ...]:
    """Two values share a byte along the last axis; some writers give the unpacked shape, some the packed one."""
    if math.prod(shape) == length:
        return shape
    return (*shape[:-1], shape[-1] // 2) if shape[-1] % 2 == 0 else (length,)


def _messages(path: Path, name: str, array: NDArray[Any], slice_bytes: int) -> list[bytes]:
    ours = name_of(array.dtype)
    theirs = to_mindspore(ours)
    if theirs is None:
        raise FormatError(
            f"{name} is {ours}, which a MindSpore checkpoint cannot hold; convert it or write safetensors",
            path=str(path),
        )
    content = np.ascontiguousarray(array).tobytes()
    dims = list(array.shape) or [0]
    return [
        _message(name, dims, theirs, content[start : start + slice_bytes])
        for start in range(0, max(len(content), 1), slice_bytes)
    ]


def _extra(name: str, value: str | int | float | bool) -> bytes:
    if isinstance(value, str):
        return _message(name, [len(value)], "str", value.encode("utf-32-le"))
    kind = np.bool_ if isinstance(value, bool) else np.int64 if isinstance(value, int) else np.float32
    array = np.asarray(value, dtype=kind)
    return _message(name, [0], to_mindspore(name_of(array.dtype)) or "", array.tobytes())


def _message(name: str, dims: list[int], type_name: str, content: bytes) -> bytes:
    tensor = b"".join(pb.encode_number(1, dim) for dim in dims)
    tensor += pb.encode_bytes(2, type_name.encode()) + pb.encode_bytes(3, content)
    return pb.encode_bytes(1, pb.encode_bytes(1, name.encode()) + pb.encode_bytes(2, tensor))
