"""One .npy file, opened in a few microseconds.

`numpy.load(mmap_mode="r")` spends 100 µs on every file, half a second for an operator-level dump. Headers repeat, so a
parsed one is remembered by its bytes; small files are read whole, large ones mapped and released with their array.
"""

from __future__ import annotations

import ast
import math
import mmap
import os
import re
import struct
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.errors import FormatError
from misstep.store.atomic import whole_file
from misstep.store.boundary import Damaged, TooMuch, reading, whole_number
from misstep.store.foreign.elements import bits_of, dtype_named, name_of, needs_ml_dtypes

_MAGIC = b"\x93NUMPY"
_HEADER_LIMIT = 10_000
"""numpy's own."""
_KIND = re.compile(r"[<>=|]?[A-Za-z]\d{0,5}(?:\[\w{1,8}\])?")
_FIRST_READ = 1 << 16
"""Files up to this size are read at once; below a few pages a mapping costs more than a copy."""


def read_npy(path: str | Path, *, dtype: str = "") -> NDArray[Any]:
    """The array of a .npy file; `dtype` names the type when the header cannot (bfloat16 stored as raw bytes)."""
    handle = _opened(path)
    try:
        size = os.fstat(handle).st_size
        head = os.read(handle, min(size, _FIRST_READ))
        held, shape, fortran, start = header_of(head, path)
        count = math.prod(shape)
        if size - start < count * held.itemsize:
            missing = start + count * held.itemsize - size
            said = f"{path} is cut short by {missing} bytes; the writer was stopped"
            raise FormatError(said, path=str(path), offset=size)
        whole: bytes | mmap.mmap = head
        if size > len(head) and count:
            whole = mmap.mmap(handle, start + count * held.itemsize, access=mmap.ACCESS_READ)
    finally:
        os.close(handle)
    with reading(path, ".npy values"):
        array = np.frombuffer(whole, dtype=held, count=count, offset=start)
        array = array.reshape(shape[::-1]).T if fortran and len(shape) > 1 else array.reshape(shape)
    return as_type(array, dtype) if dtype else array


def peek_npy(path: str | Path) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type, from the header alone."""
    handle = _opened(path)
    try:
        head = os.read(handle, _HEADER_LIMIT + 12)
    finally:
        os.close(handle)
    held, shape, _, _ = header_of(head, path)
    return shape, held


def _opened(path: str | Path) -> int:
    with reading(path, ".npy"):
        return os.open(path, os.O_RDONLY)


def write_npy(path: str | Path, array: NDArray[Any]) -> None:
    """A plain .npy; types numpy cannot name are stored as unsigned integers of the same bits."""
    plain = bits_of(array) if needs_ml_dtypes(name_of(array.dtype)) else array
    with whole_file(path) as out:
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


def header_of(head: bytes, path: str | Path) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
    """Element type, shape, whether in Fortran's order, and where the values begin."""
    with reading(path, ".npy header"):
        if head[:6] != _MAGIC or len(head) < 12:
            raise FormatError(f"{path} is no .npy file", path=str(path))
        if head[6] not in (1, 2, 3):
            raise Damaged("version 1, 2 or 3 of the format", offset=6)
        (length,) = struct.unpack_from("<H" if head[6] == 1 else "<I", head, 8)
        start = 10 if head[6] == 1 else 12
        if length > _HEADER_LIMIT:
            raise TooMuch(f"a header of at most {_HEADER_LIMIT:,} bytes, it says {length:,}", offset=8)
        if len(head) < start + length:
            raise FormatError(
                f"{path}: the header ends early; the file was cut short", path=str(path), offset=len(head)
            )
        try:
            dtype, shape, fortran = _parsed(head[start : start + length])
        except Damaged as wrong:
            raise Damaged(wrong.expected, offset=start) from None
        return dtype, shape, fortran, start + length


@lru_cache(maxsize=4096)
def _parsed(text: bytes) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "invalid decimal literal": it is no program of the user's
            said = ast.literal_eval(text.decode("latin1").strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise Damaged("a dictionary with descr, fortran_order and shape") from None
    if not isinstance(said, dict) or said.keys() != {"descr", "fortran_order", "shape"}:
        raise Damaged("exactly descr, fortran_order and shape")
    kind, shape, fortran = said["descr"], said["shape"], said["fortran_order"]
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise Damaged("the name of one element type")
    if not isinstance(shape, tuple) or len(shape) > 64 or not isinstance(fortran, bool):
        raise Damaged("a shape of at most 64 dimensions, and whether it is in Fortran's order")
    sizes = tuple(whole_number(size, "a size") for size in shape)
    dtype = np.dtype(kind)
    if dtype.hasobject:
        raise Damaged("plain numbers; it holds Python objects, which would have to be unpickled")
    return dtype, sizes, fortran
