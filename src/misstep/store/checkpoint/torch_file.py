"""PyTorch's .pt and .pth, read without torch and without running anything that was pickled.

    model.pth (zip)     <root>/data.pkl  the structure, as a pickle that names storages
                        <root>/data/<n>  one storage each, uncompressed, so it is mapped where it lies
                        <root>/byteorder little | big

The pickle is walked by `torch_pickle`, which runs nothing. The format before torch 1.6 (a row of pickles, then the
storages) is read in the same way.
"""

from __future__ import annotations

import math
import mmap
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.errors import FormatError
from misstep.store.boundary import DEEPEST, Damaged, TooMuch, behind, reading, unpacked, whole_number
from misstep.store.checkpoint.record import Checkpoint, Held, unreadable
from misstep.store.checkpoint.torch_pickle import Array, Opaque, Storage, StructureReader, Tensor
from misstep.store.foreign.elements import dtype_named, name_of

_LARGEST_EXPANDED = 256 << 20
"""Bytes of a view that shows one element many times (stride 0), as torch saves an expanded tensor."""
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
"""What torch.save wrote first before the zip format (torch/serialization.py)."""


def looks_like_torch(path: Path, head: bytes) -> bool:
    """By content: a zip with a data.pkl, or the old format's first pickle."""
    if head[:2] == b"PK":
        try:
            with zipfile.ZipFile(path) as archive:
                return any(name.endswith("/data.pkl") or name == "data.pkl" for name in archive.namelist())
        except Exception:  # a damaged zip is for `read_torch` to complain of
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
    with reading(where, "the saved structure"):
        for name, leaf in _leaves(structure):
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
    with reading(path, "zip"), zipfile.ZipFile(path) as archive:
        members = {info.filename: info for info in archive.infolist()}
        pickled = next((name for name in members if name.endswith("/data.pkl") or name == "data.pkl"), None)
        if pickled is None:
            raise FormatError(
                f"{path} is a zip without data.pkl; TorchScript archives (code/) and .npz are other formats",
                path=str(path),
            )
        root = pickled.removesuffix("data.pkl")
        order = unpacked(archive, root + "byteorder", limit=64).strip() if root + "byteorder" in members else b"little"
        structure = StructureReader(unpacked(archive, pickled), path).load()
    whole = _mapped(path)

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
                raise Damaged(f"{length:,} bytes of storage {storage.key}", offset=start)
            return np.frombuffer(whole, dtype=dtype, count=length // dtype.itemsize, offset=start)
        with zipfile.ZipFile(path) as again:
            return np.frombuffer(unpacked(again, info, limit=storage.count * dtype.itemsize), dtype=dtype)

    return structure, block


def _from_legacy(path: Path) -> tuple[object, Blocks]:
    whole = _mapped(path)
    storages: dict[str, NDArray[Any]] = {}
    reader = StructureReader(memoryview(whole), path, what="pickles before the storages")
    with reading(path, "PyTorch checkpoint of before 1.6"):
        if reader.load() != _LEGACY_MAGIC:
            raise FormatError(f"{path} is no PyTorch checkpoint", path=str(path))
        reader.load()  # protocol version
        info = reader.load()
        structure = reader.load()
        keys = reader.load()
        order = "<" if not isinstance(info, dict) or info.get("little_endian", True) else ">"
        if not isinstance(keys, list):
            raise Damaged("a list of storages", offset=reader.at)
        at = reader.at
        for key in keys:
            storage = reader.storages.get(str(key)) if isinstance(key, str | int) else None
            if storage is None:
                raise Damaged("the name of a storage", offset=at)
            dtype = (dtype_named(storage.dtype) or np.dtype("u1")).newbyteorder(order)  # type: ignore[arg-type]
            count = whole_number(struct.unpack_from(order + "q", whole, at)[0], "elements of a storage")
            if at + 8 + count * dtype.itemsize > len(whole):
                raise Damaged(f"{count:,} elements of storage {storage.key}", offset=at)
            storages[storage.key] = np.frombuffer(whole, dtype, count, at + 8)
            at += 8 + count * dtype.itemsize
    return structure, lambda storage: storages[storage.key]


def _mapped(path: Path) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


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
    if not empty and math.prod(tensor.shape) * dtype.itemsize > max(
        _LARGEST_EXPANDED, _capacity(tensor) * dtype.itemsize
    ):
        raise TooMuch(f"{name[:80]} to be no larger than its storage, or than {_LARGEST_EXPANDED:,} bytes")

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
    guarded = behind(path, name, load)
    return Held(name, tensor.dtype, tensor.shape, guarded, tensor.trainable or None, tensor.quantized, place)


def _capacity(tensor: Tensor) -> int:
    stored, wanted = dtype_named(tensor.storage.dtype), dtype_named(tensor.dtype)
    if stored is None or wanted is None:
        return 0
    return tensor.storage.count * stored.itemsize // wanted.itemsize


_MOST_LEAVES = 250_000
_MOST_LOOKED_AT = 4_000_000
"""A list that holds one list many times, which holds another many times, is a billion entries in a hundred bytes."""
_LONGEST_NAME = 2_000


def _leaves(thing: object) -> Iterator[tuple[str, object]]:
    """Every leaf of the structure with its place, in order; what it is part of itself, or is too much, is refused."""
    looked_at = found = 0
    open_now: set[int] = set()
    stack: list[tuple[str, int, Iterator[tuple[object, object]]]] = [("", 0, iter([("", thing)]))]
    while stack:
        prefix, identity, pairs = stack[-1]
        key, inner = next(pairs, (_DONE, None))
        if key is _DONE:
            stack.pop()
            open_now.discard(identity)
            continue
        name = f"{prefix}.{key}" if prefix else str(key)
        if len(name) > _LONGEST_NAME:
            raise TooMuch(f"names of at most {_LONGEST_NAME:,} characters")
        looked_at += len(inner) if isinstance(inner, dict | list | tuple) else 1
        if looked_at > _MOST_LOOKED_AT or found > _MOST_LEAVES or len(stack) > DEEPEST:
            raise TooMuch(f"at most {_MOST_LEAVES:,} leaves, nested no deeper than {DEEPEST}")
        inside = _inside(inner, name)
        if inside is None:
            found += 1
            yield name, inner
        elif id(inner) in open_now:
            raise Damaged(f"a structure that does not hold itself (at {name[:80]})")
        else:
            open_now.add(id(inner))
            stack.append((name, id(inner), inside))


_DONE = object()


def _inside(thing: object, name: str) -> Iterator[tuple[object, object]] | None:
    """The parts of a container by key; None for a leaf. A row of plain numbers or words is one leaf."""
    if isinstance(thing, dict):
        return iter(thing.items())
    if isinstance(thing, list | tuple) and not (name and all(isinstance(item, int | float | str) for item in thing)):
        return iter(enumerate(thing))
    if isinstance(thing, SimpleNamespace):
        return iter(vars(thing).items())
    return None
