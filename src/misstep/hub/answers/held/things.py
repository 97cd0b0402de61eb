"""What can be opened by name: runs, dumps of any tool, checkpoints.

A client says a name and gets what the hub itself found under it: below its folder, or given on the command line. No
path from a request is ever joined to anything. What lies below a folder is counted only when it really lies there: a
link that leads out is not followed.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from misstep.core.stats import Array, TensorStats
from misstep.errors import RunNotFound, TensorUnavailable, nearest
from misstep.kernels import summarize
from misstep.protocol.things import Moment, Thing, ThingKind
from misstep.store.checkpoint import looks_like_checkpoint
from misstep.store.foreign.elements import dtype_named
from misstep.store.foreign.mindspore.dump import looks_like_mindspore_dump
from misstep.store.foreign.msprobe import looks_like_msprobe
from misstep.store.foreign.own_run import RunSource
from misstep.store.foreign.sniff import source_of
from misstep.store.foreign.source import Entry, TensorSource, select
from misstep.store.layout import is_run, rank_paths, ranks_in
from misstep.store.listing import RunListing
from misstep.store.reading.reader import Run

MOST_THINGS = 1000
MOST_LOOKS = 20_000
DEEPEST = 4
SCAN_SECONDS = 2.0
OPEN_THINGS = 8
_MOMENT = re.compile(r"(?P<name>.+?)(?:@(?P<step>\d{1,12}))?(?:#(?P<rank>\d{1,9}))?")


@dataclass(frozen=True, slots=True)
class Found:
    """A thing and where it lies."""

    name: str
    kind: ThingKind
    path: Path
    format: str = ""


@dataclass(slots=True)
class Opened:
    """A thing with its tensors by address; statistics are made when first asked for, and kept."""

    found: Found
    source: TensorSource
    stamp: tuple[int, ...]
    by_address: dict[str, Entry] = field(default_factory=dict)
    _stats: dict[str, TensorStats | None] = field(default_factory=dict)
    _run: Run | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        for entry in self.source.entries():
            self.by_address[str(entry.address)] = entry

    def run(self) -> Run | None:
        """The run behind it, with rows, journal and graph as they are now; None for what others wrote."""
        if self.found.kind != "run":
            return None
        with self._lock:
            if self._run is None:
                self._run = Run(self.found.path)
            return self._run.refresh()

    def entry(self, address: str) -> Entry:
        known = self.by_address.get(address)
        if known is None:
            near = nearest(address, list(self.by_address)[:5000])
            raise TensorUnavailable(f"{self.found.name} holds no {address[:200]}{near}", address=address[:200])
        return known

    def array(self, entry: Entry) -> Array:
        return self.source.array(entry)

    def stats(self, entry: Entry) -> TensorStats | None:
        """Of one tensor; None when its values cannot be read."""
        if entry.key not in self._stats:
            try:
                values = self.source.array(entry)
                self._stats[entry.key] = TensorStats.of(summarize(values), dtype=entry.dtype, shape=tuple(values.shape))
            except TensorUnavailable:
                self._stats[entry.key] = None
        return self._stats[entry.key]

    def moments(self) -> list[Moment]:
        """Every step of every rank, with what was kept of it."""
        counts: dict[tuple[int, int | None], list[int]] = {}
        for entry in self.source.entries():
            told = counts.setdefault((entry.rank or 0, entry.step), [0, 0])
            told[0] += 1
            told[1] += bytes_of(entry)
        ordered = sorted(counts, key=lambda key: (key[0], -1 if key[1] is None else key[1]))
        return [Moment(step, rank, *counts[rank, step]) for rank, step in ordered]


class Things:
    """Everything below one folder, and what was named when the hub started."""

    def __init__(self, directory: Path, given: Sequence[Path] = (), *, listing: RunListing | None = None) -> None:
        self.directory = directory
        self._listing = listing or RunListing(directory)
        self.full = False
        self._given = named(given)
        self._looked = -SCAN_SECONDS
        self._found: dict[str, Found] = {}
        self._open: OrderedDict[str, Opened] = OrderedDict()
        self._lock = threading.Lock()

    def all(self) -> list[Found]:
        """Runs first, the newest in front; then what was given; then what lies below the folder."""
        with self._lock:
            if time.monotonic() - self._looked > SCAN_SECONDS:
                self._look()
            return list(self._found.values())

    def _look(self) -> None:
        summaries = [one.summary for one in self._listing.all()]
        runs = [Found(one.name, "run", one.path, "misstep") for one in summaries]
        found: dict[str, Found] = {}
        for one in (*runs, *self._given, *self._scan()):
            if one.format:
                found.setdefault(one.name, one)
        self._looked, self._found = time.monotonic(), found

    def briefs(self) -> tuple[Thing, ...]:
        return tuple(Thing(one.name, one.kind, one.format, *_size(one)) for one in self.all()[:MOST_THINGS])

    def found(self, name: str) -> Found:
        """The thing of exactly this name."""
        with self._lock:
            # A tile of a tensor asks for its thing too: nobody looks through the folder for what is known.
            known = self._found.get(name)
            if known is None or not known.path.exists():
                self._look()
                known = self._found.get(name)
            if known is not None:
                return known
            near = nearest(name, self._found)
        raise RunNotFound(
            f"nothing called {name[:100]!r} can be opened here{near}; other files are opened with  misstep ui FILE",
            run=name[:100],
        )

    def open(self, name: str) -> Opened:
        """The tensors of a thing; those open already, unless something was written since."""
        found = self.found(name)
        stamp = _stamp(found.path)
        with self._lock:
            known = self._open.get(name)
            if known is not None and known.stamp == stamp:
                self._open.move_to_end(name)
                return known
        source = RunSource(found.path) if found.kind == "run" else source_of(found.path)
        opened = Opened(found, source, stamp)
        with self._lock:
            self._open[name] = opened
            while len(self._open) > OPEN_THINGS:
                self._open.popitem(last=False)
        return opened

    def moment(self, text: str) -> tuple[Opened, TensorSource]:
        """`name`, `name@120`, `name@120#3`: the thing, and the tensors of that step and rank."""
        names = {one.name for one in self.all()}
        found = _MOMENT.fullmatch(text)
        if text in names or found is None:
            opened = self.open(text)
            return opened, _held(opened)
        opened = self.open(found["name"])
        step = int(found["step"]) if found["step"] else None
        rank = int(found["rank"]) if found["rank"] else None
        return opened, select(_held(opened), step=step, rank=rank)

    def _scan(self) -> list[Found]:
        folders = [one for one in self._given if one.kind == "dump" and not one.format]
        roots = [(self.directory, ""), *((one.path, f"{one.name}/") for one in folders)]
        looks = [MOST_LOOKS]
        every = [
            replace(one, name=head + one.name)
            for root, head in roots
            if root.is_dir()
            for one in _below(root, root, root.resolve(), looks, DEEPEST)
        ]
        self.full = looks[0] <= 0 or len(every) > MOST_THINGS
        return sorted(every, key=lambda one: one.name)[:MOST_THINGS]


def bytes_of(entry: Entry) -> int:
    """What a tensor takes."""
    dtype = dtype_named(entry.dtype)
    return 0 if dtype is None else math.prod(entry.shape) * dtype.itemsize


def _held(opened: Opened) -> TensorSource:
    if not opened.source.entries():
        raise TensorUnavailable(
            f"{opened.found.name} kept no whole tensor; record it again with --dump, or dump a step of it while it runs"
        )
    return opened.source


def named(given: Sequence[Path]) -> list[Found]:
    """What was given on the command line, by the shortest name that is its own.

    A folder in which only things lie has no format: it is looked through.
    """
    found: list[Found] = []
    taken: set[str] = set()
    for path in given:
        where = path.absolute()
        kind, format = _kind(where)
        endings = ["/".join(where.parts[-n:]) for n in range(1, len(where.parts))]
        name = next((one for one in endings if one not in taken), str(where))
        taken.add(name)
        found.append(Found(name, kind, where, format))
    return found


def _kind(path: Path) -> tuple[ThingKind, str]:
    """What a path holds; a folder in which only things lie has no format of its own."""
    if path.is_file():
        return "checkpoint", path.suffix.lstrip(".")
    if is_run(path):
        return "run", "misstep"
    return "dump", _dump_format(path)


def _dump_format(path: Path) -> str:
    if looks_like_mindspore_dump(path):
        return "MindSpore"
    if looks_like_msprobe(path):
        return "msprobe"
    try:
        with os.scandir(path) as entries:
            return "arrays" if any(entry.name.endswith(".npy") for entry in entries) else ""
    except OSError:
        return ""


def _below(folder: Path, root: Path, home: Path, looks: list[int], deep: int) -> Iterator[Found]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
    except OSError:
        return
    inside_run = is_run(folder)
    for name in names:
        looks[0] -= 1
        path = folder / name
        if looks[0] <= 0 or name.startswith(".") or (inside_run and name.startswith("rank-")):
            continue
        if path.is_symlink() and not path.resolve().is_relative_to(home):
            continue
        called = path.relative_to(root).as_posix()
        if path.is_file():
            if looks_like_checkpoint(path):
                yield Found(called, "checkpoint", path, path.suffix.lstrip("."))
        elif path.is_dir():
            format = "" if is_run(path) else _dump_format(path)
            if format:
                yield Found(called, "dump", path, format)
            elif deep > 1:
                yield from _below(path, root, home, looks, deep - 1)


def _files(path: Path) -> list[Path]:
    """What changes when somebody writes to a thing."""
    if is_run(path):
        return [rank_paths(path, rank).index for rank in ranks_in(path)]
    return [path]


def _stamp(path: Path) -> tuple[int, ...]:
    stamp: list[int] = []
    for file in _files(path):
        try:
            facts = file.stat()
            stamp += [facts.st_mtime_ns, facts.st_size]
        except OSError:
            stamp += [0, 0]
    return tuple(stamp)


def _size(found: Found) -> tuple[int, float]:
    of_run = found.kind == "run"
    files = [rank_paths(found.path, rank).pack for rank in ranks_in(found.path)] if of_run else [found.path]
    total, last = 0, 0.0
    for file in files:
        try:
            facts = file.stat()
        except OSError:
            continue
        total += facts.st_size if file.is_file() else 0
        last = max(last, facts.st_mtime)
    return total, last
