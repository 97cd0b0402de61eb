"""One checkpoint in many files: Hugging Face's shards with their index, and folders of torch's distributed checkpoint.

model.safetensors.index.json   {"weight_map": {"fc.weight": "model-00001-of-00002.safetensors", …}}
.metadata                      a pickle: each tensor's size and chunks, and where the bytes of each chunk lie
__0_0.distcp                   chunks, one after another, each as torch.save writes a tensor
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.errors import FormatError
from misstep.store.boundary import (
    TEXT_LIMIT,
    Damaged,
    TooMuch,
    behind,
    json_file,
    plain_name,
    reading,
    unpacked,
    whole_number,
)
from misstep.store.checkpoint.pickle_machine import Buildable
from misstep.store.checkpoint.record import Checkpoint, Held, unreadable
from misstep.store.checkpoint.torch_pickle import StructureReader, Tensor, Type
from misstep.store.foreign.elements import dtype_named

METADATA = ".metadata"


def index_of(path: Path) -> Path | None:
    """The index of a sharded checkpoint: the file itself, or the one in a folder."""
    if path.is_file():
        return path if path.name.endswith(".index.json") else None
    return next(iter(sorted(path.glob("*.index.json"))), None) if path.is_dir() else None


def looks_sharded(path: Path) -> bool:
    """True for an index, a folder with one, and a folder of torch.distributed.checkpoint."""
    return index_of(path) is not None or (path / METADATA).is_file()


def read_sharded(path: str | Path, read: Callable[[Path], Checkpoint]) -> Checkpoint:
    """All tensors of all files, as one checkpoint; `read` opens one file."""
    where = Path(path)
    index = index_of(where)
    return _from_distributed(where) if index is None else _from_index(where, index, read)


def _from_index(where: Path, index: Path, read: Callable[[Path], Checkpoint]) -> Checkpoint:
    said = json_file(index, "index of shards")
    places: dict[str, str] = _places(index, said)
    files: dict[str, Checkpoint] = {}
    tensors: dict[str, Held] = {}
    for name, file in places.items():
        if file not in files and (index.parent / file).is_file():
            files[file] = read(index.parent / file)
        shard = files.get(file)
        held = shard.tensors.get(name) if shard is not None else None
        missing = f"{file} is not there" if shard is None else f"{file} does not hold it, though the index says so"
        tensors[name] = held if held is not None else unreadable(name, "", (), missing)
    metadata = said.get("metadata")
    extras = dict(metadata.items()) if isinstance(metadata, dict) else {}
    kind = next(iter(files.values())).format if files else "safetensors"
    return Checkpoint(where, f"{kind}, {len(set(places.values()))} shards", tensors, extras)


def _places(index: Path, said: dict[str, Any]) -> dict[str, str]:
    """Name of a tensor to name of a file beside the index; a file elsewhere is none of this checkpoint."""
    places = said.get("weight_map")
    with reading(index, "index of shards"):
        if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()):
            raise Damaged("weight_map: names of tensors to names of files")
        outside = next((file for file in set(places.values()) if not plain_name(file)), None)
        if outside is not None:
            raise Damaged(f"names of files beside the index, found {outside[:80]!r}")
    return places or {}


class _MetadataReader(StructureReader):
    """Walks the metadata of torch.distributed.checkpoint; its records become plain namespaces, nothing is run."""

    def find(self, module: str, name: str) -> Any:
        if module.startswith("torch.distributed.checkpoint.") or module == "torch.serialization":
            return _Record
        return super().find(module, name)


class _Record(SimpleNamespace, Buildable):
    """A record of the metadata: attributes, or positions where it was made with them."""

    def __init__(self, *given: object, **named: object) -> None:
        super().__init__(**{f"_{at}": value for at, value in enumerate(given)}, **named)

    def take_state(self, state: Any) -> None:
        self.__dict__.update(state if isinstance(state, dict) else {f"_{at}": one for at, one in enumerate(state)})

    __hash__ = object.__hash__  # type: ignore[assignment]


def _from_distributed(where: Path) -> Checkpoint:
    file = where / METADATA
    with reading(file, "metadata of a distributed checkpoint"):
        if file.stat().st_size > TEXT_LIMIT:
            raise TooMuch(f"at most {TEXT_LIMIT:,} bytes of metadata")
        metadata: Any = _MetadataReader(file.read_bytes(), file, what=METADATA).load()
        stored: dict[str, list[tuple[Any, Any]]] = {}
        for index, info in metadata.storage_data.items():
            stored.setdefault(str(index.fqn)[:2000], []).append((index, info))
        tensors = {
            name: _held(where, name, one, stored.get(name, []))
            for name, one in metadata.state_dict_metadata.items()
            if hasattr(one, "size") and hasattr(one, "chunks")
        }
        return Checkpoint(where, "torch distributed", tensors)


def _held(where: Path, name: str, described: Any, stored: list[tuple[Any, Any]]) -> Held:
    shape = tuple(whole_number(size, f"a size of {name[:80]}") for size in described.size)
    kind = next((one.dtype for one in vars(described.properties).values() if isinstance(one, Type)), "float32")
    dtype = dtype_named(kind)
    if dtype is None:
        return unreadable(name, kind, shape, f"its element type {kind} is unknown here")

    # What the chunks hold, before anything is made for it: the metadata may claim any shape.
    there = sum(whole_number(info.length, "bytes of a chunk") for _, info in stored)
    if math.prod(shape) * dtype.itemsize > there:
        return unreadable(name, kind, shape, f"its chunks have {there:,} bytes, its shape needs more")

    def load() -> NDArray[Any]:
        whole = np.zeros(shape, dtype)
        for index, info in stored:
            if not plain_name(str(info.relative_path)):
                raise Damaged("the name of a file of this checkpoint")
            chunk = _chunk(where / info.relative_path, int(info.offset), int(info.length))
            starts = tuple(index.offset) if index.offset is not None else (0,) * len(shape)
            whole[tuple(slice(start, start + size) for start, size in zip(starts, chunk.shape))] = chunk
        return whole

    return Held(name, kind, shape, behind(where, name[:80], load))


def _chunk(file: Path, offset: int, length: int) -> NDArray[Any]:
    with reading(file, f"chunk at {offset}"):
        with open(file, "rb") as opened:
            if offset + length > os.fstat(opened.fileno()).st_size:
                raise Damaged(f"a chunk of {length:,} bytes", offset=offset)
            opened.seek(offset)
            blob = opened.read(length)
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            pickled = next((name for name in archive.namelist() if name.endswith("data.pkl")), None)
            tensor = StructureReader(unpacked(archive, pickled), file).load() if pickled else None
            if not isinstance(tensor, Tensor) or pickled is None:
                raise Damaged("a tensor as torch.save writes it", offset=offset)
            raw = unpacked(archive, f"{pickled.removesuffix('data.pkl')}data/{tensor.storage.key}", limit=length)
    flat = np.frombuffer(raw, dtype_named(tensor.dtype))
    strides = tuple(step * flat.itemsize for step in tensor.stride)
    reach = tensor.offset + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride) if size > 0)
    if 0 in tensor.shape:
        return np.zeros(tensor.shape, flat.dtype)
    if reach >= flat.size or any(step < 0 for step in tensor.stride):
        raise FormatError(f"{file}: the chunk at {offset} reaches outside its storage", path=str(file))
    view: NDArray[Any] = np.ndarray(
        tensor.shape, flat.dtype, buffer=flat, offset=tensor.offset * flat.itemsize, strides=strides
    )
    return view
