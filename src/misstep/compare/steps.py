"""What lies in a run or in a dump of another tool, step by step and rank by rank, ready to be asked watchpoints.

A shelf gives the rows of one step the way a training gives them: in execution order, with statistics, and with the word
whether what a node was given was already bad. Our own runs have those rows; for the dumps of others they are made from
the tensors, one at a time, and kept: a row is a hundred bytes, whatever the size of the tensor.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from misstep.core.address import Address
from misstep.core.graph import Graph
from misstep.core.stats import DTYPE_CODES, INPUTS_BAD, INPUTS_SEEN, ROW, SUMMARY, Array
from misstep.errors import FormatError, TensorUnavailable
from misstep.kernels import summarize
from misstep.store.foreign.mindspore.dump import MindSporeDump
from misstep.store.foreign.source import Entry, Summarised, TensorSource
from misstep.store.reading.reader import Run

_MADE = ("output", "grad_input", "grad", "loss")


@dataclass(frozen=True, slots=True)
class Page:
    """One step of one rank: what passed, and a row of statistics for each."""

    step: int
    rank: int
    entries: tuple[Entry, ...]
    rows: Array


class Shelf(Protocol):
    """A run or a dump, by steps and ranks."""

    label: str
    counts_from: int
    """0 for tools whose first step is 0: initial weights, our step 0, are not among their steps."""

    unread: Sequence[str]
    """Why tensors could not be looked at, so far."""

    def ranks(self) -> tuple[int, ...]: ...
    def steps(self, rank: int) -> tuple[int, ...]: ...
    def page(self, step: int, rank: int) -> Page: ...
    def table(self, rank: int) -> list[tuple[Address, str]]:
        """Every tensor of the rank without its step, with the type of its node; rows name them by position."""

    def array(self, entry: Entry) -> Array: ...
    def graph(self, rank: int) -> Graph | None: ...


class RunShelf:
    """Our own run: rows of every step that was recorded, values of those that were dumped."""

    counts_from = 1
    unread: Sequence[str] = ()

    def __init__(self, run: Run) -> None:
        self.run = run
        self.label = run.name

    def ranks(self) -> tuple[int, ...]:
        return self.run.ranks

    def steps(self, rank: int) -> tuple[int, ...]:
        return tuple(self.run.steps_with_rows(rank))

    def page(self, step: int, rank: int) -> Page:
        graph = self.run.graph(rank)
        rows = self.run.rows(step, rank)
        rows = rows[rows["tensor"] < len(graph.tensors)]
        entries = []
        for row in rows:
            address = graph.address(int(row["tensor"]), step=step, rank=rank)
            node = graph.nodes[graph.tensors[int(row["tensor"])].node]
            shape = int(row["shape"])
            entries.append(
                Entry(
                    address.node,
                    address.role,
                    address.slot,
                    node.type,
                    graph.shapes[shape] if shape < len(graph.shapes) else (),
                    order=int(row["order"]),
                    source_line=str(node.source) if node.source is not None else "",
                    step=step,
                    rank=rank,
                    call=address.call,
                    key=str(address),
                )
            )
        return Page(step, rank, tuple(entries), rows)

    def table(self, rank: int) -> list[tuple[Address, str]]:
        graph = self.run.graph(rank)
        return [(graph.address(at), graph.nodes[key.node].type) for at, key in enumerate(graph.tensors)]

    def array(self, entry: Entry) -> Array:
        return self.run.tensor(entry.address)

    def graph(self, rank: int) -> Graph | None:
        return self.run.graph(rank)


class SourceShelf:
    """Tensors of any other source; rows are made when a step is first asked for."""

    def __init__(self, source: TensorSource) -> None:
        self.source = source
        self.label = source.label
        self.counts_from = 0
        self.unread: Sequence[str] = ()
        """Why tensors could not be looked at, a sentence each."""
        self._pages: dict[tuple[int, int], list[Entry]] = {}
        self._tables: dict[int, dict[Address, int]] = {}
        self._types: dict[int, list[tuple[Address, str]]] = {}
        self._rows: dict[tuple[int, int], Array] = {}
        for entry in source.entries():
            rank, step = entry.rank or 0, entry.step or 0
            self._pages.setdefault((rank, step), []).append(entry)
            bare = Address(entry.name, entry.role, entry.slot, call=entry.call)
            known = self._tables.setdefault(rank, {})
            if bare not in known:
                known[bare] = len(known)
                self._types.setdefault(rank, []).append((bare, entry.node_type))

    def ranks(self) -> tuple[int, ...]:
        return tuple(sorted(self._tables))

    def steps(self, rank: int) -> tuple[int, ...]:
        return tuple(sorted(step for at, step in self._pages if at == rank))

    def page(self, step: int, rank: int) -> Page:
        entries = tuple(self._pages.get((rank, step), ()))
        if (rank, step) not in self._rows:
            self._rows[rank, step] = self._measured(entries, step, rank)
        return Page(step, rank, entries, self._rows[rank, step])

    def table(self, rank: int) -> list[tuple[Address, str]]:
        return self._types.get(rank, [])

    def array(self, entry: Entry) -> Array:
        return self.source.array(entry)

    def graph(self, rank: int) -> Graph | None:
        return self.source.graph if isinstance(self.source, MindSporeDump) else None

    def _measured(self, entries: tuple[Entry, ...], step: int, rank: int) -> Array:
        rows = np.zeros(len(entries), ROW)
        names = list(SUMMARY.names or ())
        for at, entry in enumerate(entries):
            row = rows[at]
            row["tensor"] = self._tables[rank][Address(entry.name, entry.role, entry.slot, call=entry.call)]
            row["step"], row["order"] = step, at
            row["dtype"] = DTYPE_CODES.get(entry.dtype, DTYPE_CODES["unknown"])
            for name, value in zip(names, self._summary(entry)):
                row[name] = value
        _mark_births(entries, rows)
        return rows

    def _summary(self, entry: Entry) -> tuple[Any, ...]:
        try:
            found: tuple[Any, ...] = summarize(self.source.array(entry)).item()
            return found
        except (TensorUnavailable, FormatError) as error:
            known = self.source.stats(entry) if isinstance(self.source, Summarised) else None
            if known is None:
                self.unread = (*self.unread, str(error))
                return (0,) * len(SUMMARY.names or ())
            return tuple(getattr(known, name) for name in SUMMARY.names or ())


class Lately:
    """Arrays read lately, the longest unused let go when they take more than they may."""

    def __init__(self, shelf: Shelf, *, limit_mb: float) -> None:
        self.limit_bytes = int(limit_mb * 2**20)
        self.bytes = 0
        self.reads = 0
        self._shelf = shelf
        self._arrays: OrderedDict[Address, Array] = OrderedDict()

    def array(self, entry: Entry) -> Array:
        known = self._arrays.get(entry.address)
        if known is not None:
            self._arrays.move_to_end(entry.address)
            return known
        values = self._shelf.array(entry)
        self.reads += 1
        if values.nbytes <= self.limit_bytes:
            self._arrays[entry.address] = values
            self.bytes += values.nbytes
            while self.bytes > self.limit_bytes:
                _, gone = self._arrays.popitem(last=False)
                self.bytes -= gone.nbytes
        return values


def _mark_births(entries: tuple[Entry, ...], rows: Array) -> None:
    """Whether what a node was given was looked at, and already bad: then its own bad result was not born there."""
    bad = (rows["nan"] + rows["pos_inf"]) > 0
    given: dict[tuple[str, int], bool] = {}
    for at, entry in enumerate(entries):
        if entry.role in ("input", "grad_output"):
            key = (entry.name, entry.call)
            given[key] = given.get(key, False) or bool(bad[at])
    for at, entry in enumerate(entries):
        known = given.get((entry.name, entry.call)) if entry.role in _MADE else None
        if known is not None:
            rows["flags"][at] |= INPUTS_SEEN | (INPUTS_BAD if known else 0)
