"""Tensors written for other programs: a tree of .npy, .npz, safetensors, MindSpore's .ckpt and dump layout, Parquet.

Everything is written from a `TensorSource`, one tensor at a time. What a format cannot say (execution order, types
numpy has no name for) stands in an `index.json` beside the files, which our own reader takes and others ignore.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from numpy.typing import NDArray

from misstep.errors import FormatError, need
from misstep.store.atomic import draft, write_text
from misstep.store.checkpoint import write_mindspore_ckpt, write_npz, write_safetensors
from misstep.store.checkpoint.spelling import as_mindspore, as_torch
from misstep.store.checkpoint.torch_writer import write_torch
from misstep.store.foreign.elements import name_of
from misstep.store.foreign.folder import INDEX
from misstep.store.foreign.index import facts_of
from misstep.store.foreign.mindspore.layout import write_mindspore_dump
from misstep.store.foreign.npyfile import write_npy
from misstep.store.foreign.source import Entry, TensorSource, stats_of

FORMATS = ("npy", "npz", "safetensors", "ckpt", "pth", "mindspore", "parquet")

_NAME_LIMIT = 180
"""Characters of a file name; file systems stop at 255 bytes, and a quoted name grows."""


def export(source: TensorSource, path: str | Path, *, format: str) -> Path:
    """A source in another program's format.

    >>> export(source_of("missteps/try-7@120"), "arrays", format="npy")
    """
    where = Path(path)
    writers = {
        "npy": write_npy_tree,
        "npz": lambda given, to: write_npz(to, _all(given)),
        "safetensors": lambda given, to: write_safetensors(to, _weights_or_all(given)),
        "ckpt": lambda given, to: write_mindspore_ckpt(to, as_mindspore(_parameters(given))),
        "pth": lambda given, to: write_torch(to, as_torch(_parameters(given))),
        "mindspore": write_mindspore_dump,
        "parquet": write_parquet,
    }
    writer = writers.get(format)
    if writer is None:
        raise FormatError(f"cannot export to {format!r}; formats are {', '.join(FORMATS)}", path=str(where))
    writer(source, where)
    return where


def write_npy_tree(source: TensorSource, folder: str | Path) -> None:
    """One .npy a tensor, named by its address, and an index that keeps order, type and source line."""
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    files: dict[str, dict[str, Any]] = {}
    for entry in source.entries():
        array = source.array(entry)
        name = file_name(entry, len(files))
        write_npy(where / name, array)
        files[name] = facts_of(entry, dtype=name_of(array.dtype), shape=array.shape)
    text = json.dumps({"format": "misstep-arrays/1", "files": files}, ensure_ascii=False, indent=0)
    write_text(where / INDEX, text)


def write_parquet(source: TensorSource, path: str | Path) -> None:
    """The statistics of every tensor as one table."""
    arrow = need("pyarrow", "for writing Parquet")
    parquet = need("pyarrow.parquet", "for writing Parquet")
    with draft(path) as partial:
        parquet.write_table(arrow.Table.from_pylist(list(statistics(source))), str(partial))


def statistics(source: TensorSource) -> Iterable[dict[str, Any]]:
    """One row a tensor: its address, what it looks like, and the numbers that summarise it."""
    for entry in source.entries():
        stats = stats_of(source.array(entry))
        yield {
            "address": str(entry.address),
            "node": entry.name,
            "role": entry.role,
            "slot": entry.slot,
            "step": entry.step,
            "type": entry.node_type,
            "dtype": stats.dtype,
            "shape": list(stats.shape),
            **{name: getattr(stats, name) for name in _NUMBERS},
        }


_NUMBERS = "count nan pos_inf neg_inf zeros negatives positives min max mean abs_mean l2 std".split()  # noqa: SIM905


def file_name(entry: Entry, number: int) -> str:
    """A name any file system takes; too long a one is cut and numbered, the index has it whole."""
    name = quote(str(entry.address), safe=" +,@=()[]{}~-_.")
    return f"{name}.npy" if len(name) <= _NAME_LIMIT else f"{name[:_NAME_LIMIT]}-{number}.npy"


def _all(source: TensorSource) -> Mapping[str, NDArray[Any]]:
    return {str(entry.address): source.array(entry) for entry in source.entries()}


def _weights_or_all(source: TensorSource) -> Mapping[str, NDArray[Any]]:
    """A checkpoint under the names of its weights; anything with a step or a pass in it by address."""
    if all(entry.role in ("param", "buffer") and entry.step is None for entry in source.entries()):
        return as_torch(_parameters(source))
    return _all(source)


def _parameters(source: TensorSource) -> Mapping[str, NDArray[Any]]:
    chosen = {entry.name: source.array(entry) for entry in source.entries() if entry.role in ("param", "buffer")}
    if not chosen:
        raise FormatError(
            f"{source.label} holds no parameter; a checkpoint keeps nothing else. Export to npy or safetensors"
        )
    return chosen
