"""One rank of a run as its files tell it, taken in bit by bit while the writer adds to them.

A refresh reads the journal first, then the rows and the index, and the graph last, when it is asked for: the opposite
of the writer's order, so that whatever the journal promises is there, and whatever a row names is known.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from misstep.core.address import Address, Pattern
from misstep.core.finding import Finding, Verdict
from misstep.core.graph import Edge, Graph, Node, TensorKey
from misstep.core.run import RunState, Step
from misstep.core.stats import DTYPE_NAMES, TensorStats
from misstep.core.watching.watch import Hit, Watchpoint
from misstep.errors import RunDamaged
from misstep.store.codec import decode, decode_all, decode_facts, number
from misstep.store.journal import Event, LineReader, collector_at_rest
from misstep.store.layout import rank_paths
from misstep.store.pack import PackReader, StoredTensor
from misstep.store.reading.liveness import writer_lives
from misstep.store.runs import rank_state
from misstep.store.statsfile import Rows, StatsReader

_GRAPH_KINDS: dict[str, type[Any]] = {"node": Node, "tensor": TensorKey, "edge": Edge}


class Rank:
    """Everything one rank has written so far."""

    def __init__(self, run: Path, rank: int) -> None:
        paths = rank_paths(run, rank)
        self.number = rank
        self.events: list[Event] = []
        self.last_step_number = -1
        self.hits: dict[int, Hit] = {}
        self.verdicts: dict[int, Verdict] = {}
        """By step: a later word on the same step (after a replay) replaces the first."""
        self.findings: list[Finding] = []
        self.watchpoints: dict[int, Watchpoint] = {}
        self._graph = Graph()
        self.stats = StatsReader(paths.stats)
        self._pack = PackReader(paths.pack, paths.index)
        self._pack_stale = True
        self._journal = LineReader(paths.journal)
        self._graph_lines = LineReader(paths.graph)
        self._graph_stale = True
        self._graph_lock = threading.Lock()
        self._start: dict[str, Any] = {}
        self._end: dict[str, Any] | None = None
        self._paused = False
        self._broken: dict[str, str] = {}
        self._steps: dict[int, Step] = {}
        self._unread_steps: list[dict[str, Any]] = []
        self._ids: dict[Address, int] = {}

    def refresh(self) -> None:
        """Take in what was added since the last look."""
        for plain in self._journal.new_lines():
            self._take_in(plain)
        self._guarded("stats", self.stats.refresh)
        self._pack_stale = self._graph_stale = True

    @property
    def graph(self) -> Graph:
        """Read when first asked for: the list of hits or the loss need none of fifty thousand operators."""
        with self._graph_lock:  # a hub reads it in a thread while its loop goes on
            if self._graph_stale:
                self._graph_stale = False
                with collector_at_rest():
                    self._take_in_graphs(self._graph_lines.new_lines())
        return self._graph

    @property
    def steps(self) -> dict[int, Step]:
        """By number; a step told twice (trained again from a checkpoint) is the later one."""
        for plain in self._unread_steps:
            try:
                self._steps[plain["number"]] = decode(Step, plain)
            except (TypeError, ValueError) as error:
                self._broken["step"] = (
                    f"rank-{self.number}/journal.jsonl: step {plain['number']} makes no sense ({error})"
                )
        self._unread_steps.clear()
        return self._steps

    @property
    def pack(self) -> PackReader:
        """Read when first asked for: a run may hold many thousand tensors that nobody wants today."""
        if self._pack_stale:
            self._pack_stale = False
            self._guarded("pack", self._pack.refresh)
        return self._pack

    @property
    def state(self) -> RunState:
        return rank_state(end=self._end, paused=self._paused, steps=self.last_step_number >= 0, alive=self.alive)

    @property
    def alive(self) -> bool:
        """No end was written and the process is there."""
        return self._end is None and writer_lives(self._start, self._journal.path)

    @property
    def broken_off(self) -> bool:
        """The process that recorded is gone, and its last word is missing."""
        return self._end is None and self.last_step_number >= 0 and not self.alive

    def addresses(self, pattern: Pattern) -> list[tuple[int, Address]]:
        """Tensors that fit, without a step, by their index."""
        fitting = {node.index for node in self.graph.nodes if pattern.matches_node(node.name)}
        return [
            (index, self.graph.address(index, rank=self.number))
            for index, key in enumerate(self.graph.tensors)
            if key.node in fitting and pattern.matches(self.graph.address(index, rank=self.number))
        ]

    def tensor_index(self, address: Address) -> int | None:
        """The row of the tensor table, whatever the step."""
        for index in range(len(self._ids), len(self.graph.tensors)):
            self._ids[self.graph.address(index)] = index
        return self._ids.get(Address(address.node, address.role, address.slot, call=address.call))

    def as_stats(self, row: Any) -> TensorStats:
        shapes = self.graph.shapes
        dtype, shape = int(row["dtype"]), int(row["shape"])
        return TensorStats.of(
            row,
            dtype=DTYPE_NAMES[dtype] if dtype < len(DTYPE_NAMES) else "unknown",
            shape=shapes[shape] if shape < len(shapes) else (),
        )

    def named_rows(self, rows: Rows) -> list[tuple[Address, TensorStats]]:
        known = len(self.graph.tensors)
        return [
            (self.graph.address(int(row["tensor"]), step=int(row["step"]), rank=self.number), self.as_stats(row))
            for row in rows
            if row["tensor"] < known
        ]

    def stored_tensors(self) -> list[StoredTensor]:
        """The whole tensors this rank kept, their addresses with its number."""
        return [replace(stored, address=stored.address.at(rank=self.number)) for stored in self.pack.stored.values()]

    def stored_tensor(self, address: Address) -> StoredTensor | None:
        """The tensor of that address; of the latest step when it names none."""
        kept = self.pack.stored
        if address.step is not None:
            return kept.get(replace(address, rank=None))
        fitting = [stored for stored in kept.values() if same_tensor(stored.address, address)]
        return max(fitting, key=lambda stored: stored.address.step or 0, default=None)

    def damage(self) -> list[str]:
        alive = self.alive
        _ = self.graph
        parts = (self._journal, self._graph_lines, self.stats, self.pack)
        return list(self._broken.values()) + [sentence for part in parts for sentence in part.damage(alive=alive)]

    def _guarded(self, name: str, refresh: Callable[[], None]) -> None:
        try:
            refresh()
        except (RunDamaged, OSError) as error:
            self._broken[name] = str(error)

    # ── taking in ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _take_in(self, plain: dict[str, Any]) -> None:
        kind = str(plain.pop("kind", ""))
        time = plain.pop("time", 0.0)
        try:
            event = Event(kind, self.number, number(time), decode_facts(plain), len(self.events))
            reader = _EVENTS.get(kind)
            if reader is not None:
                reader(self, plain)
        except (KeyError, TypeError, ValueError) as error:
            self._broken[f"event {kind}"] = (
                f"rank-{self.number}/journal.jsonl: a {kind or 'nameless'} event makes no sense ({error})"
            )
            return
        self.events.append(event)

    def _take_in_graphs(self, lines: list[dict[str, Any]]) -> None:
        """All of one kind are made in one call, in a third of the time; one by one when one of them is odd."""
        try:
            made = {name: iter(decode_all(kind, [line[name] for line in lines if line.get("kind") == name]))
                    for name, kind in _GRAPH_KINDS.items()}  # fmt: skip
        except (KeyError, ValueError):
            made = {}
        for line in lines:
            self._take_in_graph(line, made.get(str(line.get("kind", "")), iter(())))

    def _take_in_graph(self, plain: dict[str, Any], made: Iterator[Any]) -> None:
        graph, kind = self._graph, plain.get("kind")
        try:
            index = self._plausible(plain.get("index", 0))
            if kind == "node":
                node = next(made, None) or decode(Node, plain["node"])
                _fill(graph.nodes, index, self._lost_node)
                graph.add_node(node)
            elif kind == "tensor":
                key = next(made, None) or decode(TensorKey, plain["tensor"])
                _fill(graph.tensors, index, self._lost_tensor)
                _fill(graph.nodes, self._plausible(key.node) + 1, self._lost_node)
                graph.tensors.append(key)
            elif kind == "shape":
                _fill(graph.shapes, index, tuple)
                graph.shapes.append(decode(tuple[int, ...], plain["shape"]))
            elif kind == "edge":
                graph.edges.append(next(made, None) or decode(Edge, plain["edge"]))
        except (KeyError, TypeError, ValueError) as error:
            self._broken[f"graph {kind}"] = f"rank-{self.number}/graph.jsonl: a {kind} makes no sense ({error})"

    def _plausible(self, index: Any) -> int:
        """An index the file has room for: no line is shorter than forty bytes, so a larger one is damage."""
        if type(index) is not int or not 0 <= index <= self._graph_lines.offset // _SHORTEST_LINE:
            raise ValueError(f"an index of {index!r:.40}")
        return index

    def _lost_node(self) -> Node:
        index = len(self._graph.nodes)
        return Node(index, f"(lost {index})", "module", "")

    def _lost_tensor(self) -> TensorKey:
        self._graph.add_node(self._lost_node())
        return TensorKey(len(self._graph.nodes) - 1, "output")

    def _started(self, facts: dict[str, Any]) -> None:
        self._start = facts

    def _ended(self, facts: dict[str, Any]) -> None:
        self._end = facts

    def _state(self, facts: dict[str, Any]) -> None:
        self._paused = facts.get("state") == "paused"

    def _step(self, facts: dict[str, Any]) -> None:
        # Read when first asked for: a week of training is a million of them, and most readers want the last.
        self.last_step_number = max(self.last_step_number, int(facts["step"]["number"]))
        self._unread_steps.append(facts["step"])

    def _hit(self, facts: dict[str, Any]) -> None:
        hit = decode(Hit, facts["hit"])
        self.hits[hit.id] = hit

    def _verdict(self, facts: dict[str, Any]) -> None:
        verdict = decode(Verdict, facts["verdict"])
        self.verdicts[verdict.step] = verdict

    def _finding(self, facts: dict[str, Any]) -> None:
        self.findings.append(decode(Finding, facts["finding"]))

    def _watchpoint(self, facts: dict[str, Any]) -> None:
        watchpoint = decode(Watchpoint, facts["watchpoint"])
        if facts.get("action") == "delete":
            self.watchpoints.pop(watchpoint.id, None)
        else:
            self.watchpoints[watchpoint.id] = watchpoint


_SHORTEST_LINE = 40

_EVENTS: dict[str, Callable[[Rank, dict[str, Any]], None]] = {
    "start": Rank._started,
    "end": Rank._ended,
    "state": Rank._state,
    "step": Rank._step,
    "hit": Rank._hit,
    "verdict": Rank._verdict,
    "finding": Rank._finding,
    "watchpoint": Rank._watchpoint,
}


def same_tensor(one: Address, other: Address) -> bool:
    """The same tensor, whatever the step and rank."""
    return (one.node, one.role, one.slot, one.call) == (other.node, other.role, other.slot, other.call)


def _fill(table: list[Any], length: int, stand_in: Callable[[], Any]) -> None:
    """A damaged line took its record with it; a stand-in keeps the indices of the others right."""
    while len(table) < length:
        table.append(stand_in())
