"""PyTorch's .pt and .pth, read without torch and without running anything that was pickled.

    model.pth (zip)     <root>/data.pkl  the structure, as a pickle that names storages
                        <root>/data/<n>  one storage each, uncompressed, so it is mapped where it lies
                        <root>/byteorder little | big

The pickle is walked by `torch_pickle`, which runs nothing. The format before torch 1.6 (a row of pickles, then the
storages) is read in the same way.
"""

from __future__ import annotations

import io
import mmap
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.errors import FormatError
from misstep.store.checkpoint.record import Checkpoint, Held, unreadable
from misstep.store.checkpoint.torch_pickle import Array, Opaque, Storage, StructureReader, Tensor
from misstep.store.foreign.elements import dtype_named, name_of

_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
"""What torch.save wrote first before the zip format (torch/serialization.py)."""


def looks_like_torch(path: Path, head: bytes) -> bool:
    """By content: a zip with a data.pkl, or the old format's first pickle."""
    if head[:2] == b"PK":
        try:
            with zipfile.ZipFile(path) as archive:
                return any(name.endswith("/data.pkl") or name == "data.pkl" for name in archive.namelist())
        except zipfile.BadZipFile:
            return False
    return head[:2] == b"\x80\x02" and struct.pack("<QH", _LEGACY_MAGIC & (1 << 64) - 1, _LEGACY_MAGIC >> 64) in head


def read_torch(path: str | Path) -> Checkpoint:
    """Every tensor of a .pt or .pth, mapped, with its place in the saved structure as its name.

    >>> read_torch("checkpoint.pth")["optimizer.state.0.exp_avg"]
    """
    where = Path(path)
    with open(where, "rb") as file:
        head = file.read(64)
    if head[:2] == b"PK":
        structure, blocks = _from_zip(where)
    elif looks_like_torch(where, head):
        structure, blocks = _from_legacy(where)
    else:
        raise FormatError(
            f"{where} is no PyTorch checkpoint (neither a zip nor the format before 1.6)", path=str(where)
        )
    tensors: dict[str, Held] = {}
    extras: dict[str, object] = {}
    for name, leaf in _leaves(structure, ""):
        if isinstance(leaf, Opaque):
            tensors[name or "tensor"] = unreadable(name or "tensor", leaf.kind, (), f"it is a {leaf.kind} tensor")
        elif isinstance(leaf, Tensor):
            tensors[name or "tensor"] = _held(where, name or "tensor", leaf, blocks)
        elif isinstance(leaf, Array) and leaf.value.ndim:
            tensors[name] = Held(name, name_of(leaf.value.dtype), leaf.value.shape, leaf.load)
        else:
            extras[name] = leaf.value.item() if isinstance(leaf, Array) else leaf
    return Checkpoint(where, "torch", tensors, extras)


Blocks = Callable[[Storage], NDArray[Any]]


def _from_zip(path: Path) -> tuple[object, Blocks]:
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as wrong:
        raise FormatError(f"{path} is a damaged zip ({wrong}); copy it again", path=str(path)) from None
    with archive:
        members = {info.filename: info for info in archive.infolist()}
        pickled = next((name for name in members if name.endswith("/data.pkl") or name == "data.pkl"), None)
        if pickled is None:
            raise FormatError(
                f"{path} is a zip without data.pkl; TorchScript archives (code/) and .npz are other formats",
                path=str(path),
            )
        root = pickled.removesuffix("data.pkl")
        order = archive.read(root + "byteorder").strip() if root + "byteorder" in members else b"little"
        structure = StructureReader(io.BytesIO(archive.read(pickled)), path).load_all()
    with open(path, "rb") as file:
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def block(storage: Storage) -> NDArray[Any]:
        info = members.get(f"{root}data/{storage.key}")
        if info is None:
            raise FormatError(f"{path}: storage {storage.key} is missing; the file is damaged", path=str(path))
        dtype = dtype_named(storage.dtype) or np.dtype("u1")
        if order == b"big":
            dtype = dtype.newbyteorder(">")
        if info.compress_type == zipfile.ZIP_STORED:
            names, extra = struct.unpack_from("<HH", whole, info.header_offset + 26)
            start = info.header_offset + 30 + names + extra
            length = info.file_size
            if start + length > len(whole):
                raise FormatError(f"{path}: storage {storage.key} runs past the end", path=str(path))
            return np.frombuffer(whole, dtype=dtype, count=length // dtype.itemsize, offset=start)
        with zipfile.ZipFile(path) as again:
            return np.frombuffer(again.read(info), dtype=dtype)

    return structure, block


def _from_legacy(path: Path) -> tuple[object, Blocks]:
    storages: dict[str, NDArray[Any]] = {}
    with open(path, "rb") as file:
        try:
            if StructureReader(file, path).load_all() != _LEGACY_MAGIC:
                raise FormatError(f"{path} is no PyTorch checkpoint", path=str(path))
            StructureReader(file, path).load_all()  # protocol version
            info = StructureReader(file, path).load_all()
            reader = StructureReader(file, path)
            structure = reader.load_all()
            keys = StructureReader(file, path).load_all()
            order = "<" if not isinstance(info, dict) or info.get("little_endian", True) else ">"
            assert isinstance(keys, list)
            for key in keys:
                storage = reader.storages[str(key)]
                dtype = (dtype_named(storage.dtype) or np.dtype("u1")).newbyteorder(order)  # type: ignore[arg-type]
                (count,) = struct.unpack(order + "q", file.read(8))
                storages[str(key)] = np.frombuffer(file.read(count * dtype.itemsize), dtype=dtype)
        except (EOFError, struct.error, KeyError) as wrong:
            raise FormatError(f"{path} is cut short or damaged ({wrong!r})", path=str(path)) from None
    return structure, lambda storage: storages[storage.key]


def _held(path: Path, name: str, tensor: Tensor, blocks: Blocks) -> Held:
    if dtype_named(tensor.dtype) is None:
        return unreadable(name, tensor.dtype, tensor.shape, f"its element type {tensor.dtype} is unknown here")
    reach = tensor.offset + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride) if size > 0)
    empty = 0 in tensor.shape
    wrong = tensor.offset < 0 or any(step < 0 for step in tensor.stride) or any(size < 0 for size in tensor.shape)
    # A crafted stride must not read outside the file's own memory.
    if wrong or len(tensor.stride) != len(tensor.shape) or (not empty and reach >= _capacity(tensor)):
        raise FormatError(f"{path}: {name} reaches outside its storage; the file is damaged", path=str(path))
    dtype = dtype_named(tensor.dtype) or np.dtype("u1")

    def load() -> NDArray[Any]:
        if empty:
            return np.empty(tensor.shape, dtype)
        flat = blocks(tensor.storage)
        if flat.dtype.isnative:
            flat = flat.view(dtype)
        if reach >= flat.size:
            raise FormatError(f"{path}: {name} reaches outside its storage; the file is damaged", path=str(path))
        steps = tuple(step * flat.itemsize for step in tensor.stride)
        start = tensor.offset * flat.itemsize
        view: NDArray[Any] = np.ndarray(tensor.shape, flat.dtype, buffer=flat, offset=start, strides=steps)
        view = view if view.dtype.isnative else view.astype(view.dtype.newbyteorder("="))
        view = np.conj(view) if tensor.conjugated else view
        return np.negative(view) if tensor.negated else view

    # A state_dict holds detached tensors: only a saved Parameter says that it is trainable.
    place = (tensor.storage.key, tensor.offset, tensor.shape, tensor.stride)
    return Held(name, tensor.dtype, tensor.shape, load, tensor.trainable or None, tensor.quantized, place)


def _capacity(tensor: Tensor) -> int:
    stored, wanted = dtype_named(tensor.storage.dtype), dtype_named(tensor.dtype)
    if stored is None or wanted is None:
        return 0
    return tensor.storage.count * stored.itemsize // wanted.itemsize


def _leaves(thing: object, name: str) -> list[tuple[str, object]]:
    if isinstance(thing, dict):
        pairs: list[tuple[object, object]] = list(thing.items())
    elif isinstance(thing, list | tuple) and not (name and all(isinstance(item, int | float | str) for item in thing)):
        pairs = list(enumerate(thing))
    elif isinstance(thing, SimpleNamespace):
        pairs = list(vars(thing).items())
    else:
        return [(name, thing)]
    found = []
    for key, inner in pairs:
        found += _leaves(inner, f"{name}.{key}" if name else str(key))
    return found
