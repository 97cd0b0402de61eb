"""Tensors written for other programs: a tree of .npy, .npz, safetensors, MindSpore's .ckpt and dump layout, Parquet.

Everything is written from a `TensorSource`, one tensor at a time. What a format cannot say (execution order, types
numpy has no name for) stands in an `index.json` beside the files, which our own reader takes and others ignore.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from misstep.core.stats import TensorStats
from misstep.errors import FormatError, need
from misstep.kernels import summarize
from misstep.store.checkpoint import write_mindspore_ckpt, write_npz, write_safetensors
from misstep.store.foreign.elements import name_of, needs_ml_dtypes, to_mindspore
from misstep.store.foreign.folder import INDEX
from misstep.store.foreign.npyfile import write_npy
from misstep.store.foreign.source import Entry, TensorSource

FORMATS = ("npy", "npz", "safetensors", "ckpt", "mindspore", "parquet")

_NAME_LIMIT = 180
"""Characters of a file name; file systems stop at 255 bytes, and a quoted name grows."""
_LOST = re.compile(r"[./\\ ]")

STATISTIC_COLUMNS = [
    "Op Type",
    "Op Name",
    "Task ID",
    "Stream ID",
    "Timestamp",
    "IO",
    "Slot",
    "Data Size",
    "Data Type",
    "Shape",
    "Max Value",
    "Min Value",
    "Avg Value",
    "Count",
    "Negative Zero Count",
    "Positive Zero Count",
    "NaN Count",
    "Negative Inf Count",
    "Positive Inf Count",
    "Zero Count",
    "L2Norm Value",
]
"""The columns of MindSpore's statistic.csv; its "negative zero count" counts what is below zero."""


def export(source: TensorSource, path: str | Path, *, format: str) -> Path:
    """A source in another program's format.

    >>> export(source_of("missteps/try-7@120"), "arrays", format="npy")
    """
    where = Path(path)
    writers = {
        "npy": write_npy_tree,
        "npz": lambda given, to: write_npz(to, _all(given)),
        "safetensors": lambda given, to: write_safetensors(to, _all(given)),
        "ckpt": lambda given, to: write_mindspore_ckpt(to, _parameters(given)),
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
        files[name] = _facts(entry, array)
    text = json.dumps({"format": "misstep-arrays/1", "files": files}, ensure_ascii=False, indent=0)
    (where / INDEX).write_text(text, encoding="utf-8")


def write_mindspore_dump(source: TensorSource, folder: str | Path, *, net_name: str = "Net", graph: int = 0) -> None:
    """MindSpore's dump directory, with its file names, execution order and statistic.csv.

    bfloat16 and float8 are written as float32 with the real type in the name, as MindSpore does.
    """
    where = Path(folder)
    ranks: dict[int, list[Entry]] = {}
    for entry in source.entries():
        ranks.setdefault(entry.rank or 0, []).append(entry)
    for number, entries in ranks.items():
        home = where / f"rank_{number}"
        (home / "execution_order").mkdir(parents=True, exist_ok=True)
        (home / ".dump_metadata").mkdir(parents=True, exist_ok=True)
        running = [entry for entry in entries if entry.role not in ("param", "buffer")]
        order = dict.fromkeys(entry.name for entry in sorted(running, key=lambda entry: entry.order))
        listing = "\n".join(["NodeExecutionOrder-FullNameWithScope", *order]) + "\n"
        (home / "execution_order" / f"ms_execution_order_graph_{graph}.csv").write_text(listing, encoding="utf-8")
        steps = sorted({entry.step or 0 for entry in entries})
        history = "\n".join(map(str, steps)) + "\n"
        (home / "execution_order" / f"ms_global_execution_order_graph_{graph}.csv").write_text(
            history, encoding="utf-8"
        )
        config = {"device_target": "CPU", "ms_version": "2.10.0"}
        (home / ".dump_metadata" / "config.json").write_text(json.dumps(config), encoding="utf-8")
        for step in steps:
            chosen = [entry for entry in entries if (entry.step or 0) == step]
            _write_iteration(source, home / net_name / str(graph) / str(step), chosen)


def write_parquet(source: TensorSource, path: str | Path) -> None:
    """The statistics of every tensor as one table."""
    arrow = need("pyarrow", "for writing Parquet")
    parquet = need("pyarrow.parquet", "for writing Parquet")
    parquet.write_table(arrow.Table.from_pylist(list(statistics(source))), str(path))


def statistics(source: TensorSource) -> Iterable[dict[str, Any]]:
    """One row a tensor: its address, what it looks like, and the numbers that summarise it."""
    for entry in source.entries():
        array = source.array(entry)
        stats = stats_of(array)
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


def stats_of(array: NDArray[Any]) -> TensorStats:
    return TensorStats.of(summarize(array), dtype=name_of(array.dtype), shape=array.shape)


def file_name(entry: Entry, number: int) -> str:
    """A name any file system takes; too long a one is cut and numbered, the index has it whole."""
    name = quote(str(entry.address), safe=" +,@=()[]{}~-_.")
    return f"{name}.npy" if len(name) <= _NAME_LIMIT else f"{name[:_NAME_LIMIT]}-{number}.npy"


def _write_iteration(source: TensorSource, folder: Path, entries: list[Entry]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "statistic.csv", "w", newline="", encoding="utf-8") as table:
        rows = csv.writer(table)
        rows.writerow(STATISTIC_COLUMNS)
        for number, entry in enumerate(entries):
            array = source.array(entry)
            ours = name_of(array.dtype)
            theirs = to_mindspore(ours) or ours
            at_rest = entry.role in ("param", "buffer")
            kind = "Parameter" if at_rest else re.sub(r"[^A-Za-z0-9_]", "_", entry.node_type) or "Node"
            io = "input" if entry.role in ("input", "grad_output") else "output"
            name = _LOST.sub("_", entry.name) + (f"_{entry.role}" if entry.role.startswith("grad") else "")
            held = array.astype(np.float32) if needs_ml_dtypes(ours) else array
            file = f"{kind}.{name}.0.0.{number}.{io}.{entry.slot}.DefaultFormat.{theirs}.npy"
            write_npy(folder / file, held)
            rows.writerow(
                [kind, name, 0, 0, number, io, entry.slot, array.nbytes, theirs, _shape(array.shape), *_row(array)]
            )


def _row(array: NDArray[Any]) -> list[Any]:
    if array.dtype.kind == "c":
        return [""] * 11
    found = stats_of(array)
    return [
        _plain(found.max),
        _plain(found.min),
        _plain(found.mean),
        found.count,
        found.negatives,
        found.positives,
        found.nan,
        found.neg_inf,
        found.pos_inf,
        found.zeros,
        _plain(found.l2),
    ]


def _facts(entry: Entry, array: NDArray[Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": entry.name,
        "role": entry.role,
        "order": entry.order,
        "dtype": name_of(array.dtype),
    }
    facts["shape"] = list(array.shape)
    optional = {"slot": entry.slot, "type": entry.node_type, "source": entry.source_line, "step": entry.step}
    facts |= {
        key: value for key, value in optional.items() if value not in ("", None, 0) or (key == "step" and value == 0)
    }
    if entry.call > 1:
        facts["call"] = entry.call
    return facts


def _all(source: TensorSource) -> Mapping[str, NDArray[Any]]:
    return {str(entry.address): source.array(entry) for entry in source.entries()}


def _parameters(source: TensorSource) -> Mapping[str, NDArray[Any]]:
    chosen = {entry.name: source.array(entry) for entry in source.entries() if entry.role in ("param", "buffer")}
    if not chosen:
        raise FormatError(
            f"{source.label} holds no parameter; a checkpoint keeps nothing else. Export to npy or safetensors"
        )
    return chosen


def _shape(shape: tuple[int, ...]) -> str:
    return f"({' '.join(map(str, shape))})"


def _plain(number: float) -> str:
    return "nan" if math.isnan(number) else f"{number:.8g}"
