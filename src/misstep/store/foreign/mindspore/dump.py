"""MindSpore's dump directory as a source of tensors.

    {path}/rank_{r}/{net}/{graph}/{iteration}/{type}.{name}.{task}.{stream}.{time}.{input|output}.{slot}.{format}.{dtype}.npy
                                             /statistic.csv
    {path}/rank_{r}/graphs/*.ir *.pb         {path}/rank_{r}/execution_order/ms_execution_order_graph_{graph}.csv

File names have lost their slashes; the full names come back from the execution order and the graph, or from our own
index where we wrote the dump. `Parameter.*` files hold the values *after* the update of the iteration (measured), so
they stand at the end of its execution order.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from misstep.core.address import Role
from misstep.core.graph import Graph, Source
from misstep.core.stats import TensorStats
from misstep.errors import FormatError, TensorUnavailable
from misstep.store.checkpoint.record import section_of
from misstep.store.foreign.elements import from_mindspore, name_of
from misstep.store.foreign.index import entry_of
from misstep.store.foreign.mindspore.graph import read_execution_order, read_ir, read_pb
from misstep.store.foreign.mindspore.layout import INDEX, MAPPING, index_key
from misstep.store.foreign.npyfile import peek_npy, read_npy
from misstep.store.foreign.said_statistics import MINDSPORE, stats_said
from misstep.store.foreign.source import Entry

FILE_NAME = re.compile(
    r"(?P<type>[^.]+)\.(?P<name>.+)\.(?P<task>\d+)\.(?P<stream>\d+)\.(?P<time>\d+)"
    r"\.(?P<io>input|output)\.(?P<slot>\d+)\.(?P<format>[A-Za-z0-9_]+?)(?:\.(?P<dtype>[A-Za-z0-9_]+))?\.npy"
)
STATISTICS = "statistic.csv"
_GRADIENT_SLOTS = {
    "ApplyMomentum": 3, "FusedWeightScaleApplyMomentum": 5, "SGD": 1, "Adam": 9, "AdamWeightDecay": 8, "FusedAdam": 9,
    "ApplyAdam": 9, "AdamNoUpdateParam": 8, "RMSProp": 4, "ApplyRMSProp": 4, "ApplyAdagrad": 3, "ApplyAdagradV2": 3,
    "ApplyFtrl": 3, "ApplyGradientDescent": 2, "Lamb": 9, "LARSUpdate": 1, "ApplyAdamWithAmsgrad": 7,
}  # fmt: skip
"""Which input of an update is the gradient (mindspore.ops); the others are weight, moments and plain numbers."""
_LOST = re.compile(r"[./\\ ]")


@dataclass(slots=True)
class _Rank:
    """What stands beside the data of one rank."""

    full_names: dict[str, str] = field(default_factory=dict)
    file_names: dict[str, str] = field(default_factory=dict)
    """Of files whose real name was too long for a file system, by the number they got instead."""
    order: dict[str, int] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    weights: dict[str, bool] = field(default_factory=dict)
    ours: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What each tensor is, where we wrote the dump ourselves."""


def looks_like_mindspore_dump(path: Path) -> bool:
    """True for the root, a rank, a network, a graph or an iteration of a dump."""
    if not path.is_dir():
        return False
    if any((path / "rank_0" / part).is_dir() for part in (".dump_metadata", "execution_order", "graphs")):
        return True
    if any((folder / "execution_order").is_dir() for folder in (path, *path.parents[:3])):
        return True
    return any(FILE_NAME.fullmatch(file.name) or file.name == STATISTICS for file in _data_files(path, most=40))


def open_mindspore_dump(path: str | Path) -> MindSporeDump:
    """A dump directory, from any level of it.

    >>> dump = open_mindspore_dump("dump/rank_0")
    >>> [entry.source_line for entry in dump.entries() if entry.node_type == "MatMul"]
    """
    where = Path(path)
    if not where.is_dir():
        raise FormatError(
            f"{where} is no folder; give the folder that MINDSPORE_DUMP_CONFIG named as path", path=str(where)
        )
    return MindSporeDump(where)


class MindSporeDump:
    """All tensors of all iterations and ranks below a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ranks: dict[Path | None, _Rank] = {}
        self._statistics: dict[str, dict[str, str]] = {}

    @property
    def label(self) -> str:
        return str(self.path)

    def entries(self) -> list[Entry]:
        return self._entries

    def array(self, entry: Entry) -> NDArray[Any]:
        if not entry.key.endswith(".npy"):
            raise TensorUnavailable(
                f"only the statistics of {entry} were dumped; dump it again with saved_data 'tensor' or 'full'",
                address=str(entry),
            )
        return read_npy(entry.key, dtype=entry.dtype)

    def statistics(self, entry: Entry) -> dict[str, str]:
        """The row of statistic.csv that belongs to a tensor, column by column; empty when there is none."""
        return self._statistics.get(_statistic_key(entry), {})

    def stats(self, entry: Entry) -> TensorStats | None:
        """The same as statistics of ours."""
        return stats_said(self.statistics(entry), MINDSPORE, shape=entry.shape, dtype=entry.dtype)

    def memory(self, entry: Entry) -> Hashable:
        return None

    @property
    def steps(self) -> list[int]:
        return sorted({entry.step for entry in self._entries if entry.step is not None})

    @cached_property
    def graph(self) -> Graph | None:
        """The graph that ran, with source lines; None when no .pb stands beside the data."""
        home = _home(self.path) or next(iter(sorted(self.path.glob("rank_*"))), None)
        files = sorted((home / "graphs").glob("*.pb")) if home is not None else []
        if home is None or not files:
            return None
        graph = read_pb(files[0])
        sources = self._rank_of(home).sources
        for node in graph.nodes:
            if node.name in sources:
                graph.add_node(replace(node, source=sources[node.name]))
        return graph

    @cached_property
    def _entries(self) -> list[Entry]:
        found: list[tuple[tuple[int, int, int, int, int, int], Entry]] = []
        named: set[str] = set()
        for file in _data_files(self.path):
            said = FILE_NAME.fullmatch(self._rank_of(file).file_names.get(file.name, file.name))
            if said:
                key, entry = self._entry(file, said)
                found.append((key, entry))
                named.add(_statistic_key(entry))
        for table in sorted(self.path.rglob(STATISTICS)):
            for key, entry in self._from_statistics(table, named):
                found.append((key, entry))
        if not found:
            raise FormatError(
                f"{self.path} holds no dumped tensor; MindSpore dumps in graph mode only, with "
                f"e2e_dump_settings.enable true and an iteration that was reached",
                path=str(self.path),
            )
        found.sort(key=lambda item: item[0])
        return [entry for _, entry in found]

    def _entry(self, file: Path, said: re.Match[str]) -> tuple[tuple[int, int, int, int, int, int], Entry]:
        rank = self._rank_of(file)
        shape, held = peek_npy(file)
        dtype = (from_mindspore(said["dtype"]) if said["dtype"] else None) or name_of(held)
        return self._placed(
            rank,
            file,
            kind=said["type"],
            written=said["name"],
            io=said["io"],
            slot=int(said["slot"]),
            time=int(said["time"]),
            shape=shape,
            dtype=dtype,
            key=str(file),
        )

    def _placed(
        self,
        rank: _Rank,
        file: Path,
        *,
        kind: str,
        written: str,
        io: str,
        slot: int,
        time: int,
        shape: tuple[int, ...],
        dtype: str,
        key: str,
    ) -> tuple[tuple[int, int, int, int, int, int], Entry]:
        iteration, number = _iteration(file), _rank_number(file)
        ours = rank.ours.get(index_key(iteration, kind, written, time, io, slot))
        if ours is not None:
            entry = entry_of(ours, key=key, rank=number)
            entry = entry if entry.step is None else replace(entry, step=iteration)
            return (number or 0, iteration or 0, 0, 0, time, slot), entry
        name = rank.full_names.get(_LOST.sub("_", written), written)
        role: Role = "input" if io == "input" else "output"
        place = rank.order.get(name, len(rank.order))
        if name.startswith("Gradients/"):
            role = "grad_output" if io == "input" else "grad_input"
        elif io == "input" and _GRADIENT_SLOTS.get(kind) == slot:
            role = "grad"
        if kind == "Parameter":
            weight = rank.weights.get(name, True)
            kept: Role = "buffer" if section_of(name) == "optimizer" else "param"
            role, place = (kept, len(rank.order) + 1) if weight else ("input", -1)
        entry = Entry(
            name=name,
            role=role,
            slot=slot,
            node_type=kind,
            shape=shape,
            dtype=dtype,
            order=place,
            source_line=str(rank.sources[name]) if name in rank.sources else "",
            step=iteration,
            rank=number,
            key=key,
        )
        return (number or 0, iteration or 0, place, 0 if io == "input" else 1, time, slot), entry

    def _from_statistics(
        self, table: Path, named: set[str]
    ) -> Iterator[tuple[tuple[int, int, int, int, int, int], Entry]]:
        rank = self._rank_of(table)
        with open(table, newline="", encoding="utf-8", errors="replace") as file:
            for row in csv.DictReader(file, skipinitialspace=True):
                shape = tuple(int(size) for size in re.findall(r"\d+", row.get("Shape") or ""))
                key, entry = self._placed(
                    rank,
                    table,
                    kind=row.get("Op Type") or "",
                    written=row.get("Op Name") or "",
                    io=row.get("IO") or "output",
                    slot=int(row.get("Slot") or 0),
                    time=int(row.get("Timestamp") or 0),
                    shape=shape,
                    dtype=from_mindspore(row.get("Data Type") or "") or "",
                    key="",
                )
                self._statistics[_statistic_key(entry)] = {name: value for name, value in row.items() if name}
                if _statistic_key(entry) not in named:
                    yield key, entry

    def _rank_of(self, file: Path) -> _Rank:
        home = _home(file)
        if home not in self._ranks:
            self._ranks[home] = _beside(home) if home is not None else _Rank()
        return self._ranks[home]


def _beside(home: Path) -> _Rank:
    rank = _Rank()
    if (home / INDEX).is_file():
        rank.ours = json.loads((home / INDEX).read_text(encoding="utf-8")).get("tensors", {})
    for file in sorted((home / "graphs").glob("*.ir")):
        text = read_ir(file)
        rank.sources.update(text.sources)
        rank.weights.update(text.parameters)
    for file in sorted((home / "execution_order").glob("ms_execution_order_graph_*.csv")):
        for name in read_execution_order(file):
            rank.order.setdefault(name, len(rank.order))
    for file in home.rglob(MAPPING):
        with open(file, newline="", encoding="utf-8", errors="replace") as lines:
            for pair in csv.reader(lines):
                if len(pair) == 2:
                    short, whole = (f"{name.removesuffix('.npy')}.npy" for name in pair)
                    rank.file_names[short] = whole
    for name in (*rank.order, *rank.sources, *rank.weights):
        rank.full_names.setdefault(_LOST.sub("_", name), name)
    return rank


def _home(path: Path) -> Path | None:
    """The rank folder a file belongs to."""
    for folder in (path, *path.parents):
        if (
            (folder / "execution_order").is_dir()
            or (folder / "graphs").is_dir()
            or re.fullmatch(r"rank_\d+", folder.name)
        ):
            return folder
    return None


def _rank_number(file: Path) -> int | None:
    home = _home(file)
    said = re.fullmatch(r"rank_(\d+)", home.name) if home is not None else None
    return int(said[1]) if said else None


def _iteration(file: Path) -> int | None:
    return int(file.parent.name) if file.parent.name.isdecimal() else None


def _data_files(path: Path, *, most: int | None = None) -> Iterator[Path]:
    for count, file in enumerate(path.rglob("*.npy") if most is None else path.glob("*.npy")):
        if most is not None and count >= most:
            return
        yield file
    if most is not None:
        yield from path.glob(STATISTICS)


def _statistic_key(entry: Entry) -> str:
    return f"{entry.rank}/{entry.step}/{entry.node_type}/{entry}"
