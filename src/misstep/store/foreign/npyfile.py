"""One .npy file, opened in a few microseconds.

`numpy.load(mmap_mode="r")` spends 100 µs on every file, half a second for an operator-level dump. Headers repeat, so a
parsed one is remembered by its bytes; small files are read whole, large ones mapped and released with their array.
"""

from __future__ import annotations

import ast
import math
import mmap
import os
import struct
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.errors import FormatError
from misstep.store.foreign.elements import bits_of, dtype_named, name_of, needs_ml_dtypes

_MAGIC = b"\x93NUMPY"
_FIRST_READ = 1 << 16
"""Files up to this size are read at once; below a few pages a mapping costs more than a copy."""


def read_npy(path: str | Path, *, dtype: str = "") -> NDArray[Any]:
    """The array of a .npy file; `dtype` names the type when the header cannot (bfloat16 stored as raw bytes)."""
    handle = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(handle).st_size
        head = os.read(handle, min(size, _FIRST_READ))
        held, shape, fortran, start = _header_of(head, path)
        count = math.prod(shape)
        if size - start < count * held.itemsize:
            missing = start + count * held.itemsize - size
            raise FormatError(f"{path} is cut short by {missing} bytes; the writer was stopped", path=str(path))
        whole: bytes | mmap.mmap = head
        if size > len(head) and count:
            whole = mmap.mmap(handle, start + count * held.itemsize, access=mmap.ACCESS_READ)
    finally:
        os.close(handle)
    array = np.frombuffer(whole, dtype=held, count=count, offset=start)
    array = array.reshape(shape[::-1]).T if fortran and len(shape) > 1 else array.reshape(shape)
    return as_type(array, dtype) if dtype else array


def peek_npy(path: str | Path) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type, from the header alone."""
    handle = os.open(path, os.O_RDONLY)
    try:
        head = os.read(handle, 256)
    finally:
        os.close(handle)
    held, shape, _, _ = _header_of(head, path)
    return shape, held


def write_npy(path: str | Path, array: NDArray[Any]) -> None:
    """A plain .npy; types numpy cannot name are stored as unsigned integers of the same bits."""
    plain = bits_of(array) if needs_ml_dtypes(name_of(array.dtype)) else array
    with open(path, "wb") as out:
        np.lib.format.write_array(out, np.asarray(plain), allow_pickle=False)


def as_type(array: NDArray[Any], name: str) -> NDArray[Any]:
    """The array as the named type: bits reinterpreted, or values narrowed back where the writer widened them."""
    wanted = dtype_named(name)
    if wanted is None or array.dtype == wanted:
        return array
    if array.dtype.kind in "Vu" and array.dtype.itemsize == wanted.itemsize:
        return array.view(wanted)
    # MindSpore writes bfloat16 and float8 as float32 and names the real type: narrowing gives the original bits back.
    if needs_ml_dtypes(name) and array.dtype.kind == "f" and array.dtype.itemsize > wanted.itemsize:
        return array.astype(wanted)
    return array


def _header_of(head: bytes, path: str | Path) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
    if head[:6] != _MAGIC or len(head) < 10:
        raise FormatError(f"{path} is no .npy file", path=str(path))
    if head[6] == 1:
        (length,) = struct.unpack_from("<H", head, 8)
        start = 10
    else:
        (length,) = struct.unpack_from("<I", head, 8)
        start = 12
    if len(head) < start + length:
        raise FormatError(f"{path}: the header ends early; the file was cut short", path=str(path))
    try:
        dtype, shape, fortran = _parsed(head[start : start + length])
    except (ValueError, SyntaxError, KeyError, TypeError) as wrong:
        raise FormatError(f"{path}: cannot read the .npy header: {wrong}", path=str(path)) from None
    return dtype, shape, fortran, start + length


@lru_cache(maxsize=4096)
def _parsed(text: bytes) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    said = ast.literal_eval(text.decode("latin1").strip())
    dtype = np.dtype(said["descr"])
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which would have to be unpickled; save it with plain numbers")
    return dtype, tuple(said["shape"]), bool(said["fortran_order"])
