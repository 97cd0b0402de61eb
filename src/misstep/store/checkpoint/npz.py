""".npz: a zip of .npy files, read one member at a time.

numpy cannot name bfloat16 or float8 in a header, so their bits are written as unsigned integers and one more member,
`__dtypes__`, says which they are; other programs ignore it.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.errors import FormatError
from misstep.store.checkpoint.record import Checkpoint, Held
from misstep.store.foreign.elements import bits_of, dtype_named, name_of, needs_ml_dtypes
from misstep.store.foreign.npyfile import as_type

_DTYPES = "__dtypes__"


def looks_like_npz(path: Path, head: bytes) -> bool:
    if head[:2] != b"PK":
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        return False
    return bool(names) and all(name.endswith(".npy") for name in names)


def read_npz(path: str | Path) -> Checkpoint:
    """Every array of an .npz; pickled object arrays are refused."""
    where = Path(path)
    try:
        with zipfile.ZipFile(where) as archive:
            members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
            named: dict[str, str] = {}
            if f"{_DTYPES}.npy" in archive.namelist():
                said = np.lib.format.read_array(io.BytesIO(archive.read(f"{_DTYPES}.npy")), allow_pickle=False)
                named = json.loads(str(said))
            tensors = {}
            for info in members:
                name = info.filename.removesuffix(".npy")
                if name == _DTYPES:
                    continue
                with archive.open(info) as file:
                    shape, dtype = _header(file)
                if dtype.hasobject:
                    raise FormatError(
                        f"{where}: {name} holds pickled Python objects, which are not read", path=str(where)
                    )
                ours = named.get(name, name_of(dtype))
                tensors[name] = Held(name, ours, shape, _loader(where, info.filename, ours))
    except (zipfile.BadZipFile, ValueError) as wrong:
        raise FormatError(f"{where} cannot be read as .npz: {wrong}", path=str(where)) from None
    return Checkpoint(where, "npz", tensors)


def write_npz(path: str | Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """An uncompressed .npz.

    >>> write_npz("model.npz", {"fc.weight": weight})
    """
    where = Path(path)
    partial = where.with_name(where.name + ".partial")
    named: dict[str, str] = {}
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            ours = name_of(array.dtype)
            if needs_ml_dtypes(ours):
                named[name] = ours
                array = bits_of(array)
            _write(archive, name, array)
        if named:
            _write(archive, _DTYPES, np.asarray(json.dumps(named)))
    os.replace(partial, where)


def _write(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as out:
        np.lib.format.write_array(out, np.asarray(array), allow_pickle=False)


def _header(file: object) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read: Any = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def _loader(path: Path, member: str, dtype: str) -> Callable[[], NDArray[Any]]:
    def load() -> NDArray[Any]:
        with zipfile.ZipFile(path) as archive, archive.open(member) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
        return as_type(array, dtype) if dtype_named(dtype) is not None else array

    return load
