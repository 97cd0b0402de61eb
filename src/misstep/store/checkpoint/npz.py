""".npz: a zip of .npy files, read one member at a time.

numpy cannot name bfloat16 or float8 in a header, so their bits are written as unsigned integers and one more member,
`__dtypes__`, says which they are; other programs ignore it.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.store.atomic import draft
from misstep.store.boundary import Damaged, behind, json_object, reading, unpacked
from misstep.store.checkpoint.record import Checkpoint, Held
from misstep.store.foreign.elements import bits_of, dtype_named, name_of, needs_ml_dtypes
from misstep.store.foreign.npyfile import as_type, header_of

_DTYPES = "__dtypes__"
_HEAD = 10_012
"""More than the longest header of a .npy that is read."""


def looks_like_npz(path: Path, head: bytes) -> bool:
    if head[:2] != b"PK":
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except Exception:  # a damaged zip is for `read_npz` or another reader to complain of
        return False
    return bool(names) and all(name.endswith(".npy") for name in names)


def read_npz(path: str | Path) -> Checkpoint:
    """Every array of an .npz; pickled object arrays are refused."""
    where = Path(path)
    tensors = {}
    with reading(where, ".npz"), zipfile.ZipFile(where) as archive:
        named: dict[str, Any] = {}
        if f"{_DTYPES}.npy" in archive.namelist():
            named = json_object(str(_array(unpacked(archive, f"{_DTYPES}.npy"), where)))
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name in (_DTYPES, info.filename):
                continue
            with archive.open(info) as file:
                dtype, shape, _, start = header_of(file.read(_HEAD), where)
            if start + math.prod(shape) * dtype.itemsize != info.file_size:
                raise Damaged(f"{name[:80]} of {start + math.prod(shape) * dtype.itemsize:,} bytes, it has "
                              f"{info.file_size:,}", offset=info.header_offset)  # fmt: skip
            ours = str(named.get(name, name_of(dtype)))
            tensors[name] = Held(name, ours, shape, behind(where, name[:80], _loader(where, info.filename, ours)))
    return Checkpoint(where, "npz", tensors)


def write_npz(path: str | Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """An uncompressed .npz.

    >>> write_npz("model.npz", {"fc.weight": weight})
    """
    named: dict[str, str] = {}
    with draft(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            ours = name_of(array.dtype)
            if needs_ml_dtypes(ours):
                named[name] = ours
                array = bits_of(array)
            _write(archive, name, array)
        if named:
            _write(archive, _DTYPES, np.asarray(json.dumps(named)))


def _write(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as out:
        np.lib.format.write_array(out, np.asarray(array), allow_pickle=False)


def _array(raw: bytes, path: Path) -> NDArray[Any]:
    dtype, shape, fortran, start = header_of(raw[:_HEAD], path)
    return np.frombuffer(raw, dtype, math.prod(shape), start).reshape(shape, order="F" if fortran else "C")


def _loader(path: Path, member: str, dtype: str) -> Callable[[], NDArray[Any]]:
    def load() -> NDArray[Any]:
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(member)
            array = _array(unpacked(archive, info, limit=info.file_size), path)
        return as_type(array, dtype) if dtype_named(dtype) is not None else array

    return load
