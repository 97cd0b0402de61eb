"""Debugging without the training: the questions of the live debugger, asked of a run or of anybody's dump.

    dump = misstep.offline("dumps/rank_0", memory_mb=2048)
    dump.nodes("conv", regex=True), dump.tensors("*/matmul:output", steps=[3])
    dump.check("overflow", "max > 6e4 on *:output")             # hits, in the order of time
    dump.overflow_table()                                       # which operator overflowed how often

Watchpoints are evaluated by the same code as in a live run, over rows that a shelf lays out step by step.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from misstep import kernels
from misstep.compare.steps import Lately, Page, RunShelf, Shelf, SourceShelf
from misstep.compare.unmatched import Unmatched, of_operators, unmatched
from misstep.core.address import Address, Pattern
from misstep.core.graph import Graph
from misstep.core.stats import DTYPE_NAMES, Array, TensorStats
from misstep.core.watching.evaluate import Evaluator
from misstep.core.watching.recommend import recommended
from misstep.core.watching.watch import Hit, Watchpoint
from misstep.core.watching.watchtext import parse_watch
from misstep.errors import CompareError, RunNotFound, TensorUnavailable
from misstep.store.atomic import whole_file
from misstep.store.bundle.write import is_bundle
from misstep.store.foreign.mindspore.summary import looks_like_summary
from misstep.store.foreign.own_run import looks_like_run
from misstep.store.foreign.sniff import source_of
from misstep.store.foreign.source import Entry
from misstep.store.reading.reader import Run, open_run

By = Literal["name", "line"]
_UNANSWERED = frozenset({"no_previous", "no_value", "out_of_memory"})


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A place that computed something, on one rank."""

    name: str
    type: str
    source: str
    """The line that made it, where that is known: `train.py:12`."""
    rank: int


@dataclass(frozen=True, slots=True)
class Overflow:
    """How one tensor of an operator fared over the iterations."""

    op_type: str
    op_name: str
    tensor_name: str
    inf_number: int
    nan_number: int
    out_of_range_number: int
    """Elements beyond what float16 holds, by default."""
    total_number: int
    none_overflow_number: int
    """Iterations in which all was well."""
    total_iterations: int


def offline(thing: object, *, memory_mb: float = 1024) -> Offline:
    """A finished run, a dump of MindSpore or msprobe, a folder or a dictionary of arrays, to be debugged.

    >>> misstep.offline("last").check("overflow")
    """
    return Offline(_shelf(thing), memory_mb=memory_mb)


class Offline:
    """Everything that can be asked of tensors that lie still."""

    def __init__(self, shelf: Shelf, *, memory_mb: float) -> None:
        self.label = shelf.label
        self._shelf = shelf
        self._lately = Lately(shelf, limit_mb=memory_mb)

    @property
    def ranks(self) -> tuple[int, ...]:
        return self._shelf.ranks()

    def iterations(self, rank: int | None = None) -> tuple[int, ...]:
        """The steps there are, of one rank or of any; counted as whoever wrote them counted."""
        return tuple(sorted({step for one in self._ranks(rank) for step in self._shelf.steps(one)}))

    # ── selecting ─────────────────────────────────────────────────────────────────────────────────────────────

    def nodes(
        self, query: str = "*", *, regex: bool = False, by: By = "name", rank: int | None = None, any_case: bool = False
    ) -> list[SeenNode]:
        """Nodes by name (a glob, or a regular expression) or by the line that made them.

        >>> dump.nodes("train.py:12", by="line")
        """
        fits = _matcher(query, regex=regex, by=by, any_case=any_case)
        found: dict[SeenNode, None] = {}
        for one in self._ranks(rank):
            for page in self._pages(None, one):
                for entry in page.entries:
                    if fits(entry.source_line if by == "line" else entry.name):
                        found[SeenNode(entry.name, entry.node_type, entry.source_line, one)] = None
        return list(found)

    def tensors(
        self,
        query: str = "*",
        *,
        regex: bool = False,
        by: By = "name",
        steps: Iterable[int] | None = None,
        rank: int | None = None,
        slots: Iterable[int] | None = None,
        any_case: bool = False,
    ) -> list[Entry]:
        """Tensors by pattern (`encoder.*:output@3`), by a regular expression over their names, or by line."""
        pattern = Pattern.parse(query) if by == "name" and not regex and not any_case else None
        fits = _matcher(query, regex=regex, by=by, any_case=any_case) if pattern is None else None
        chosen = None if slots is None else set(slots)
        return [
            entry
            for one in self._ranks(rank)
            for page in self._pages(steps, one)
            for entry in page.entries
            if (chosen is None or entry.slot in chosen)
            and (
                pattern.matches(entry.address.at(step=page.step, rank=one))
                if pattern is not None
                else fits is not None and fits(entry.source_line if by == "line" else str(entry))
            )
        ]

    def value(self, tensor: Entry | Address | str) -> Array:
        """The values of a tensor; those read lately are kept within the memory limit."""
        return self._lately.array(self._entry(tensor))

    def stats(self, query: str = "*", *, steps: Iterable[int] | None = None) -> list[tuple[Address, TensorStats]]:
        """Statistics of every tensor that fits, by rank, step and order."""
        pattern = Pattern.parse(query)
        return [
            (address, _stats(page, at))
            for one in self.ranks
            for page in self._pages(steps, one)
            for at, entry in enumerate(page.entries)
            if pattern.matches(address := entry.address.at(step=page.step, rank=one))
        ]

    # ── the graph ─────────────────────────────────────────────────────────────────────────────────────────────

    def inputs_of(self, node: str, rank: int | None = None) -> list[str]:
        """The nodes whose results a node reads."""
        graph, index = self._placed(node, rank)
        return list(dict.fromkeys(graph.nodes[edge.source].name for edge in graph.edges if edge.target == index))

    def outputs_of(self, node: str, rank: int | None = None) -> list[str]:
        """The nodes that read a node's results."""
        graph, index = self._placed(node, rank)
        return list(dict.fromkeys(graph.nodes[edge.target].name for edge in graph.edges if edge.source == index))

    def affected_by(self, tensor: Entry | Address | str) -> list[str]:
        """The nodes that read one tensor: of an output its slot, of anything else its own node."""
        address = tensor.address if isinstance(tensor, Entry) else _address(tensor)
        graph, index = self._placed(address.node, address.rank)
        if address.role != "output":
            return [address.node]
        slots = [edge for edge in graph.edges if edge.source == index and edge.source_slot == address.slot]
        return list(dict.fromkeys(graph.nodes[edge.target].name for edge in slots))

    # ── checking ──────────────────────────────────────────────────────────────────────────────────────────────

    def check(
        self,
        *watchpoints: Watchpoint | str,
        steps: Iterable[int] | None = None,
        rank: int | None = None,
        unanswered: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Hit]:
        """What watchpoints find, in the order of time; the recommended ones when none is given.

        >>> dump.check("gradient_vanishing(abs_mean_lt=1e-9) on encoder.*:grad", "max > 6e4")

        `unanswered` also tells where a question could not be answered, for want of values or of the step before;
        `progress` is told the steps done and their number, and may raise to make an end.
        """
        asked = [parse_watch(one) if isinstance(one, str) else one for one in watchpoints] or list(recommended())
        if isinstance(self._shelf, SourceShelf):
            asked = [of_operators(watch) for watch in asked]
        shift = 1 - self._shelf.counts_from
        hits: list[Hit] = []
        total, done = sum(len(self._shelf.steps(one)) for one in self._ranks(rank)), 0
        for one in self._ranks(rank):
            evaluator = Evaluator([replace(watch, id=0) for watch in asked])
            for number, (address, kind) in enumerate(self._shelf.table(one)):
                evaluator.tensor_added(number, address, kind)
            before: Page | None = None
            for page in self._pages(None, one):
                if progress is not None:
                    progress(done, total)
                done += 1
                if _wanted(page.step, steps):
                    evidence = _evidence(page, before, self._lately, shift)
                    found = evaluator.evaluate(page.step + shift, one, page.rows, page.rows, evidence)
                    hits += [replace(hit, address=replace(hit.address, step=page.step)) for hit in found]
                before = page
        kept = hits if unanswered else [hit for hit in hits if not _UNANSWERED & set(hit.errors)]
        kept.sort(key=lambda hit: (hit.address.step or 0, hit.address.rank or 0, hit.order))
        return [replace(hit, id=at) for at, hit in enumerate(kept, start=1)]

    def unmatched(self, *watchpoints: Watchpoint | str) -> list[Unmatched]:
        """Watchpoints that look at no tensor here, each with the names that come nearest to its patterns."""
        known = [one for rank in self.ranks for one in self._shelf.table(rank)]
        return unmatched(watchpoints, known)

    @property
    def unread(self) -> tuple[str, ...]:
        """Why tensors could not be looked at, so far."""
        return tuple(self._shelf.unread)

    def overflow_table(self, *, largest: float = 65500.0, rank: int | None = None) -> list[Overflow]:
        """A line for every tensor: NaN, Inf and values beyond `largest`, over all iterations; the worst first."""
        table: dict[Address, list[int]] = {}
        types: dict[Address, str] = {}
        for one in self._ranks(rank):
            for page in self._pages(None, one):
                for at, entry in enumerate(page.entries):
                    key = Address(entry.name, entry.role, entry.slot, call=entry.call)
                    types[key] = entry.node_type
                    told = table.setdefault(key, [0, 0, 0, 0, 0, 0])
                    row = page.rows[at]
                    inf, nan = int(row["pos_inf"] + row["neg_inf"]), int(row["nan"])
                    beyond = self._beyond(entry, row, largest)
                    for place, value in enumerate((inf, nan, beyond, int(row["count"]), not (inf or nan or beyond), 1)):
                        told[place] += int(value)
        lines = [Overflow(types[key], key.node, str(key), *told) for key, told in table.items()]
        return sorted(lines, key=lambda line: line.none_overflow_number - line.total_iterations)

    def write_overflow_table(self, path: str | Path, *, largest: float = 65500.0) -> Path:
        """The same as a CSV file with DumpAnalyzer's columns."""
        where = Path(path)
        names = list(Overflow.__dataclass_fields__)
        with whole_file(where, "w", newline="", encoding="utf-8") as file:
            rows = csv.DictWriter(file, names)
            rows.writeheader()
            rows.writerows(asdict(line) for line in self.overflow_table(largest=largest))
        return where

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────

    def _beyond(self, entry: Entry, row: Any, largest: float) -> int:
        low, high = float(row["min"]), float(row["max"])
        if math.isnan(low) or (high <= largest and low >= -largest):
            return 0
        try:
            values = self._lately.array(entry).astype(np.float64)
        except TensorUnavailable:
            return 1  # at least the extreme one
        return int(np.count_nonzero(np.isfinite(values) & (np.abs(values) > largest)))

    def _ranks(self, rank: int | None) -> Sequence[int]:
        if rank is None:
            return self.ranks
        if rank not in self.ranks:
            raise CompareError(f"{self.label} has no rank {rank}; it has {', '.join(map(str, self.ranks))}")
        return (rank,)

    def _pages(self, steps: Iterable[int] | None, rank: int) -> Iterator[Page]:
        for step in self._shelf.steps(rank):
            if _wanted(step, steps):
                yield self._shelf.page(step, rank)

    def _entry(self, tensor: Entry | Address | str) -> Entry:
        if isinstance(tensor, Entry):
            return tensor
        address = _address(tensor)
        found = [
            entry
            for one in (self.ranks if address.rank is None else self._ranks(address.rank))
            for page in self._pages(None if address.step is None else (address.step,), one)
            for entry in page.entries
            if (entry.name, entry.role, entry.slot, entry.call)
            == (address.node, address.role, address.slot, address.call)
        ]
        if not found:
            raise TensorUnavailable(f"{self.label} holds no {address}", address=str(address))
        return found[-1]

    def _placed(self, node: str, rank: int | None) -> tuple[Graph, int]:
        graph = self._shelf.graph(self.ranks[0] if rank is None else rank)
        if graph is None or not graph.edges:
            raise CompareError(f"{self.label} has no graph beside its tensors, so nobody knows what {node} feeds")
        known = graph.node(node)
        if known is None:
            raise CompareError(f"the graph of {self.label} has no node {node!r}")
        return graph, known.index


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What a condition may ask of a tensor that lies still."""

    stats: TensorStats
    step: int
    now: Callable[[], Array]
    before: Callable[[], Array] | None

    def previous_change(self, rtol: float, atol: float) -> Any | None:
        if self.before is None:
            return None
        try:
            return kernels.change(self.now(), self.before(), rtol=rtol, atol=atol)
        except (TensorUnavailable, ValueError):  # only the statistics were kept, or its shape changed
            return None

    def count_within(self, low: float, high: float) -> int | None:
        try:
            values = self.now()
        except TensorUnavailable:
            return None
        wide = values.astype(np.float64) if values.dtype.kind not in "fiub" else values
        return int(np.count_nonzero((wide >= low) & (wide <= high)))


def _evidence(page: Page, before: Page | None, lately: Lately, shift: int) -> Callable[[int], _Evidence]:
    earlier: dict[tuple[Any, ...], Entry] = {}
    if before is not None and before.step == page.step - 1:
        earlier = {(one.name, one.role, one.slot, one.call): one for one in before.entries}

    def of(row: int) -> _Evidence:
        entry = page.entries[row]
        known = earlier.get((entry.name, entry.role, entry.slot, entry.call))
        return _Evidence(
            _stats(page, row),
            page.step + shift,
            lambda: lately.array(entry),
            None if known is None else lambda: lately.array(known),
        )

    return of


def _stats(page: Page, row: int) -> TensorStats:
    entry = page.entries[row]
    code = int(page.rows["dtype"][row])
    name = entry.dtype or (DTYPE_NAMES[code] if code < len(DTYPE_NAMES) else "unknown")
    return TensorStats.of(page.rows[row], dtype=name, shape=entry.shape)


def _shelf(thing: object) -> Shelf:
    if isinstance(thing, Run):
        return RunShelf(thing)
    if isinstance(thing, str | Path):
        path = Path(thing)
        try:
            if looks_like_run(path) or is_bundle(path) or looks_like_summary(path) or not path.exists():
                return RunShelf(open_run(thing))
        except RunNotFound:
            pass  # run@120, or nothing at all: source_of knows, or says so
    return SourceShelf(source_of(thing))


def _address(tensor: Address | str) -> Address:
    return Address.parse(tensor) if isinstance(tensor, str) else tensor


def _wanted(step: int, steps: Iterable[int] | None) -> bool:
    return steps is None or step in steps


def _matcher(query: str, *, regex: bool, by: By, any_case: bool) -> Callable[[str], bool]:
    if regex:
        try:
            compiled = re.compile(query, re.IGNORECASE if any_case else 0)
        except re.error as error:
            raise CompareError(f"{query!r} is no regular expression: {error}") from None
        return lambda text: compiled.search(text) is not None
    wanted = query.lower() if any_case else query
    if by == "line":
        return lambda text: wanted in (text.lower() if any_case else text)
    pattern = Pattern(node=wanted)
    return lambda text: pattern.matches_node(text.lower() if any_case else text)
