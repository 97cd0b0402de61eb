"""One checkpoint in many files: Hugging Face's shards with their index, and folders of torch's distributed checkpoint.

model.safetensors.index.json   {"weight_map": {"fc.weight": "model-00001-of-00002.safetensors", …}}
.metadata                      a pickle: each tensor's size and chunks, and where the bytes of each chunk lie
__0_0.distcp                   chunks, one after another, each as torch.save writes a tensor
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.errors import FormatError
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
    try:
        said = json.loads(index.read_text(encoding="utf-8"))
        places: dict[str, str] = said["weight_map"]
    except (ValueError, KeyError, TypeError) as wrong:
        raise FormatError(f"{index} is no index of shards ({wrong!r})", path=str(index)) from None
    files: dict[str, Checkpoint] = {}
    tensors: dict[str, Held] = {}
    for name, file in places.items():
        if file not in files and (index.parent / file).is_file():
            files[file] = read(index.parent / file)
        shard = files.get(file)
        held = shard.tensors.get(name) if shard is not None else None
        missing = f"{file} is not there" if shard is None else f"{file} does not hold it, though the index says so"
        tensors[name] = held if held is not None else unreadable(name, "", (), missing)
    extras = {str(key): value for key, value in (said.get("metadata") or {}).items()}
    kind = next(iter(files.values())).format if files else "safetensors"
    return Checkpoint(where, f"{kind}, {len(set(places.values()))} shards", tensors, extras)


class _MetadataReader(StructureReader):
    """Walks the metadata of torch.distributed.checkpoint; its records become plain namespaces, nothing is run."""

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("torch.distributed.checkpoint.") or module == "torch.serialization":
            return _Record
        return super().find_class(module, name)


class _Record(SimpleNamespace):
    """A record of the metadata: attributes, or positions where it was made with them."""

    def __init__(self, *given: object, **named: object) -> None:
        super().__init__(**{f"_{at}": value for at, value in enumerate(given)}, **named)

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state if isinstance(state, dict) else {f"_{at}": one for at, one in enumerate(state)})

    __hash__ = object.__hash__  # type: ignore[assignment]


def _from_distributed(where: Path) -> Checkpoint:
    with open(where / METADATA, "rb") as file:
        metadata = _MetadataReader(file, where / METADATA).load_all()
    try:
        described: dict[str, Any] = metadata.state_dict_metadata  # type: ignore[attr-defined]
        stored = [(index, info) for index, info in metadata.storage_data.items()]  # type: ignore[attr-defined]
        tensors = {
            name: _held(where, name, one, [pair for pair in stored if pair[0].fqn == name])
            for name, one in described.items()
            if hasattr(one, "size") and hasattr(one, "chunks")
        }
    except AttributeError as wrong:
        raise FormatError(f"{where / METADATA} is of an unknown version ({wrong})", path=str(where)) from None
    return Checkpoint(where, "torch distributed", tensors)


def _held(where: Path, name: str, described: Any, stored: list[tuple[Any, Any]]) -> Held:
    shape = tuple(described.size)
    kind = next((one.dtype for one in vars(described.properties).values() if isinstance(one, Type)), "float32")
    dtype = dtype_named(kind)
    if dtype is None:
        return unreadable(name, kind, shape, f"its element type {kind} is unknown here")

    def load() -> NDArray[Any]:
        whole = np.zeros(shape, dtype)
        for index, info in stored:
            chunk = _chunk(where / info.relative_path, int(info.offset), int(info.length))
            starts = tuple(index.offset) if index.offset is not None else (0,) * len(shape)
            whole[tuple(slice(start, start + size) for start, size in zip(starts, chunk.shape))] = chunk
        return whole

    return Held(name, kind, shape, load)


def _chunk(file: Path, offset: int, length: int) -> NDArray[Any]:
    with open(file, "rb") as opened:
        opened.seek(offset)
        blob = opened.read(length)
    try:
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            pickled = next(name for name in archive.namelist() if name.endswith("data.pkl"))
            tensor = StructureReader(io.BytesIO(archive.read(pickled)), file).load_all()
            assert isinstance(tensor, Tensor)
            raw = archive.read(f"{pickled.removesuffix('data.pkl')}data/{tensor.storage.key}")
    except (zipfile.BadZipFile, StopIteration, KeyError, AssertionError) as wrong:
        raise FormatError(f"{file}: the chunk at {offset} cannot be read ({wrong!r})", path=str(file)) from None
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
