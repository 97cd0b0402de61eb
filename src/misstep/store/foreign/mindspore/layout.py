"""MindSpore's dump directory, written: its file names, its execution order, its statistic.csv.

    rank_0/.dump_metadata/{config.json, data_dump.json, misstep.json}
          /execution_order/ms_execution_order_graph_0.csv
          /Net/0/{iteration}/MatMul.net_fc1.0.0.7.output.0.DefaultFormat.float32.npy
                            /statistic.csv

Memory that passed under several names is one file with several links. bfloat16 and float8 are written as float32 with
the real type in the name, as MindSpore does. File names lose dots, roles and calls: misstep.json keeps what each tensor
is, for our own reader in mindspore_dump.py.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import re
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from misstep.core.stats import DTYPE_CODES, ITEM_BYTES, TensorStats
from misstep.store.atomic import whole_file, write_text
from misstep.store.boundary import plain_name
from misstep.store.foreign.elements import name_of, needs_ml_dtypes, to_mindspore
from misstep.store.foreign.index import facts_of
from misstep.store.foreign.npyfile import write_npy
from misstep.store.foreign.source import Entry, Summarised, TensorSource, stats_of

COLUMNS = {
    "max": "Max Value",
    "min": "Min Value",
    "avg": "Avg Value",
    "count": "Count",
    "negative zero count": "Negative Zero Count",
    "positive zero count": "Positive Zero Count",
    "nan count": "NaN Count",
    "negative inf count": "Negative Inf Count",
    "positive inf count": "Positive Inf Count",
    "zero count": "Zero Count",
    "md5": "MD5",
    "l2norm": "L2Norm Value",
}
"""The columns of statistic.csv by their names in statistic_category; "negative zero count" is of what is below zero."""
EVERY_STATISTIC = tuple(name for name in COLUMNS if name != "md5")
_ALWAYS = ["Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size", "Data Type", "Shape"]
_LOST = re.compile(r"[./\\ ]")
INDEX = Path(".dump_metadata", "misstep.json")
"""Below a rank: what each tensor is, by `index_key`."""
MAPPING = "mapping.csv"
"""A name too long for a file system becomes a number; this table says which."""
_LONGEST_NAME = 255

Saved = Literal["tensor", "statistic", "full"]


def write_mindspore_dump(
    source: TensorSource,
    folder: str | Path,
    *,
    net_name: str = "Net",
    saved: Saved = "full",
    statistics: Sequence[str] = EVERY_STATISTIC,
    first_iteration: int | None = None,
    config: dict[str, Any] | None = None,
) -> None:
    """A source as MindSpore would have dumped it.

    Steps become iterations: as they are, or with `first_iteration` for step 1. `saved` and `statistics` are saved_data
    and statistic_category of its configuration, `config` is the whole of it, to be put beside the data.
    """
    if not plain_name(net_name):  # it may come from a run somebody else recorded
        net_name = "Net"
    shift = 0 if first_iteration is None else first_iteration - 1
    ranks: dict[int, list[Entry]] = {}
    for entry in source.entries():
        ranks.setdefault(entry.rank or 0, []).append(entry)
    for number, entries in ranks.items():
        home = Path(folder) / f"rank_{number}"
        steps = sorted({entry.step or 0 for entry in entries})
        _describe(home, entries, [step + shift for step in steps], config)
        index: dict[str, Any] = {}
        for step in steps:
            chosen = [entry for entry in entries if (entry.step or 0) == step]
            _Iteration(source, home / net_name / "0" / str(step + shift), saved, statistics, index).write(chosen)
        text = json.dumps({"format": "misstep-dump/1", "tensors": index}, ensure_ascii=False, indent=0)
        write_text(home / INDEX, text)


def index_key(iteration: int | None, kind: str, name: str, time: int, io: str, slot: int) -> str:
    """A tensor in the words of its file name, which a row of statistic.csv has too."""
    return f"{iteration}/{kind}.{name}.{time}.{io}.{slot}"


def _describe(home: Path, entries: list[Entry], iterations: list[int], config: dict[str, Any] | None) -> None:
    orders, about = home / "execution_order", home / ".dump_metadata"
    orders.mkdir(parents=True, exist_ok=True)
    about.mkdir(parents=True, exist_ok=True)
    running = [entry for entry in entries if entry.role not in ("param", "buffer")]
    order = dict.fromkeys(entry.name for entry in sorted(running, key=lambda entry: entry.order))
    listing = "\n".join(["NodeExecutionOrder-FullNameWithScope", *order]) + "\n"
    write_text(orders / "ms_execution_order_graph_0.csv", listing)
    history = "\n".join(map(str, iterations)) + "\n"
    write_text(orders / "ms_global_execution_order_graph_0.csv", history)
    target = {"device_target": "CPU", "ms_version": "2.10.0"}
    write_text(about / "config.json", json.dumps(target))
    if config is not None:
        write_text(about / "data_dump.json", json.dumps(config, indent=1))


class _Iteration:
    """One folder: a file a tensor, and the table of statistics."""

    def __init__(
        self, source: TensorSource, folder: Path, saved: Saved, statistics: Sequence[str], index: dict[str, Any]
    ) -> None:
        self._source = source
        self._folder = folder
        self._saved = saved
        self._statistics = statistics
        self._index = index
        self._shortened: list[tuple[str, str]] = []
        self._written: dict[Hashable, Path] = {}

    def write(self, entries: list[Entry]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        rows = [self._write(entry, number) for number, entry in enumerate(entries)]
        if self._shortened:
            with whole_file(self._folder / MAPPING, "w", newline="", encoding="utf-8") as table:
                csv.writer(table).writerows(self._shortened)
        if self._saved != "tensor":
            with whole_file(self._folder / "statistic.csv", "w", newline="", encoding="utf-8") as table:
                writer = csv.writer(table)
                writer.writerow([*_ALWAYS, *(COLUMNS[name] for name in self._statistics)])
                writer.writerows(rows)

    def _write(self, entry: Entry, number: int) -> list[Any]:
        """The tensor's file, where values are wanted; its row of the table."""
        array = self._source.array(entry) if self._saved != "statistic" else None
        ours = entry.dtype if array is None else name_of(array.dtype)
        theirs = to_mindspore(ours) or ours
        at_rest = entry.role in ("param", "buffer")
        kind = "Parameter" if at_rest else re.sub(r"[^A-Za-z0-9_]", "_", entry.node_type) or "Node"
        io = "input" if entry.role in ("input", "grad_output") else "output"
        name = _LOST.sub("_", entry.name) + (f"_{entry.role}" if entry.role.startswith("grad") else "")
        shape = entry.shape if array is None else array.shape
        key = index_key(int(self._folder.name), kind, name, number, io, entry.slot)
        self._index[key] = facts_of(entry, dtype=ours, shape=shape)
        if array is not None:
            file = f"{kind}.{name}.0.0.{number}.{io}.{entry.slot}.DefaultFormat.{theirs}.npy"
            if len(file.encode()) > _LONGEST_NAME:
                self._shortened.append((f"{number}.npy", file))
                file = f"{number}.npy"
            self._put(entry, self._folder / file, array.astype(np.float32) if needs_ml_dtypes(ours) else array)
        if self._saved == "tensor":
            return []
        stats = self._source.stats(entry) if isinstance(self._source, Summarised) else None
        if stats is None:
            stats = stats_of(self._source.array(entry) if array is None else array)
        size = math.prod(stats.shape) * ITEM_BYTES[DTYPE_CODES.get(ours, DTYPE_CODES["unknown"])]
        sizes = f"({' '.join(map(str, stats.shape))})"
        first = [kind, name, 0, 0, number, io, entry.slot, size, theirs, sizes]
        return first + [_value(column, stats, array) for column in self._statistics]

    def _put(self, entry: Entry, file: Path, array: NDArray[Any]) -> None:
        memory = self._source.memory(entry) if isinstance(self._source, Summarised) else None
        earlier = self._written.get(memory) if memory is not None else None
        file.unlink(missing_ok=True)  # of an earlier export: never write through one of its links
        if earlier is not None:
            try:
                os.link(earlier, file)
            except OSError:  # a file system without links
                write_npy(file, array)
            return
        write_npy(file, array)
        if memory is not None:
            self._written[memory] = file


def _value(column: str, stats: TensorStats, array: NDArray[Any] | None) -> Any:
    if column == "md5":
        return "" if array is None else hashlib.md5(np.ascontiguousarray(array).tobytes()).hexdigest()
    if stats.dtype.startswith("complex"):
        return ""
    known = {
        "max": stats.max,
        "min": stats.min,
        "avg": stats.mean,
        "count": stats.count,
        "negative zero count": stats.negatives,
        "positive zero count": stats.positives,
        "nan count": stats.nan,
        "negative inf count": stats.neg_inf,
        "positive inf count": stats.pos_inf,
        "zero count": stats.zeros,
        "l2norm": stats.l2,
    }
    number = known[column]
    return number if isinstance(number, int) else "nan" if math.isnan(number) else f"{number:.8g}"
