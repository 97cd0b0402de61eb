"""A .pth that `torch.load` reads with `weights_only=True`, written without torch.

archive/data.pkl    an OrderedDict of names, each built by torch._utils._rebuild_tensor_v2 from a storage
archive/data/<n>    one storage each        archive/version, archive/byteorder
"""

from __future__ import annotations

import pickle
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.errors import FormatError
from misstep.store.atomic import draft
from misstep.store.foreign.elements import name_of, to_torch_storage

_ORDERED = pickle.GLOBAL + b"collections\nOrderedDict\n" + pickle.EMPTY_TUPLE + pickle.REDUCE
_REBUILD = pickle.GLOBAL + b"torch._utils\n_rebuild_tensor_v2\n"


def write_torch(path: str | Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """A state_dict as torch.save writes it.

    >>> write_torch("model.pth", {"fc.weight": weight})
    """
    where = Path(path)
    items = [_item(where, name, array, key) for key, (name, array) in enumerate(arrays.items())]
    structure = b"\x80\x02" + _ORDERED + pickle.MARK + b"".join(items) + pickle.SETITEMS + pickle.STOP
    with draft(where) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        archive.writestr("archive/data.pkl", structure)
        archive.writestr("archive/byteorder", "little")
        for key, array in enumerate(arrays.values()):
            archive.writestr(f"archive/data/{key}", np.ascontiguousarray(array).tobytes())
        archive.writestr("archive/version", "3\n")


def _item(path: Path, name: str, array: NDArray[Any], key: int) -> bytes:
    storage = to_torch_storage(name_of(array.dtype))
    if storage is None:
        raise FormatError(
            f"{name} is {name_of(array.dtype)}, which is not written to a .pth here; write safetensors", path=str(path)
        )
    strides = [1] * array.ndim
    for axis in range(array.ndim - 2, -1, -1):
        strides[axis] = strides[axis + 1] * array.shape[axis + 1]
    saved = (
        pickle.MARK
        + _text("storage")
        + pickle.GLOBAL
        + f"torch\n{storage}\n".encode()
        + _text(str(key))
        + _text("cpu")
        + _whole(array.size)
        + pickle.TUPLE
        + pickle.BINPERSID
    )
    return (
        _text(name)
        + _REBUILD
        + pickle.MARK
        + saved
        + _whole(0)
        + _row(array.shape)
        + _row(strides)
        + pickle.NEWFALSE
        + _ORDERED
        + pickle.TUPLE
        + pickle.REDUCE
    )


def _text(text: str) -> bytes:
    raw = text.encode("utf-8")
    return pickle.BINUNICODE + struct.pack("<I", len(raw)) + raw


def _whole(number: int) -> bytes:
    if number < 2**31:
        return pickle.BININT + struct.pack("<i", number)
    raw = pickle.encode_long(number)
    return pickle.LONG1 + bytes([len(raw)]) + raw


def _row(numbers: Any) -> bytes:
    return pickle.MARK + b"".join(_whole(int(number)) for number in numbers) + pickle.TUPLE
