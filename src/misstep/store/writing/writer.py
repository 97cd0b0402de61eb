"""The training process's side of the run directory: one writer per rank, on the training thread, never in its way.

Within a flush the graph goes first, then the rows, then the journal, so that a step in the journal is a promise that
its rows can be read and named. Nothing here raises for trouble with the disk: it is told once through `on_problem`,
what is lost is counted in `lost`, and the file is tried again some hundred steps later. Graph records and hits wait
for that in memory; rows and tensors are dropped.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from misstep import kernels
from misstep.core.address import Address
from misstep.core.finding import Finding, Verdict
from misstep.core.graph import Edge, Node, TensorKey
from misstep.core.run import RunInfo, Step
from misstep.core.watching.watch import Hit, Watchpoint
from misstep.sentences import journal
from misstep.store import pack, statsfile
from misstep.store.codec import encode, encode_facts
from misstep.store.journal import seal
from misstep.store.layout import claim_rank, rank_paths
from misstep.store.modes import make_run_directory
from misstep.store.reading.liveness import birth_of
from misstep.store.runs import write_run_file
from misstep.store.stepline import loss_interval, quiet_line, step_line
from misstep.store.writing.append import KEPT_BACK, RETRY_SECONDS, RETRY_STEPS, AppendFile, records_of, whole_lines
from misstep.store.writing.scrubbed import scrubber

MB = 1 << 20
_WAITING_MB = 16
"""Journal and graph records kept in memory while the disk is in trouble."""
_NEVER_DROPPED = frozenset({"start", "hit", "verdict", "finding", "watchpoint", "level", "state", "end"})
_URGENT = frozenset({"start", "verdict", "finding", "lost", "end"})
"""What the blocks kept back are for."""

_THIS_PROCESS = [os.getpid()]
"""Asked for every tensor, and a system call each time it is really asked: so only a fork asks."""
os.register_at_fork(after_in_child=lambda: _THIS_PROCESS.__setitem__(0, os.getpid()))

EndReason = Literal["finished", "failed", "stopped", "detached"]


class RunWriter:
    """Appends one rank's facts to a run directory.
    >>> writer = RunWriter(Path("missteps/try-7"), 0, info)
    >>> writer.step(Step(number=1, loss=0.7), head, summary)
    >>> writer.end("finished", 0)
    """

    def __init__(
        self,
        directory: Path,
        rank: int,
        info: RunInfo,
        *,
        stats_mb: float = 2048,
        pack_mb: float = 16384,
        on_problem: Callable[[str], None] | None = None,
    ) -> None:
        self.directory = Path(directory)
        self.rank = rank
        """The rank written under: the wanted one, or a free number when another process has it (see layout)."""
        self.lost: dict[str, int] = {}
        """Records that could not be kept, by kind."""
        self.interval = 1
        """Rows are kept of every step whose number it divides."""
        self._info = info
        self._wanted_rank = rank
        self._on_problem = on_problem or _say
        self._stats_limit = int(stats_mb * MB)
        self._next_doubling = self._stats_limit
        self._pack_limit = int(pack_mb * MB)
        self._pack_full = self._pack_full_told = self._problem_told = False
        self._lost_told = 0
        self._pid = _THIS_PROCESS[0]
        self._rows = statsfile.RowBuilder()
        self._tensors = self._shapes = self._waiting_bytes = 0
        self._waiting: list[tuple[str, bytes]] = []
        self._waiting_graph: list[bytes] = []
        self._retry_open_steps = 0
        self._retry_open_time = 0.0
        self._closed = False
        self._files: tuple[AppendFile, ...] = ()
        self._open()

    # ── the graph ────────────────────────────────────────────────────────────────────────────────────────────────────

    def add_node(self, node: Node) -> None:
        """A node, or a later and better word on the node of the same index."""
        self._graph_line({"kind": "node", "index": node.index, "node": encode(node)})

    def add_tensor(self, key: TensorKey) -> int:
        """The next row of the tensor table; its index."""
        self._graph_line({"kind": "tensor", "index": self._tensors, "tensor": encode(key)})
        self._tensors += 1
        return self._tensors - 1

    def add_shape(self, shape: tuple[int, ...]) -> int:
        """The next row of the shape table; its index."""
        self._graph_line({"kind": "shape", "index": self._shapes, "shape": list(shape)})
        self._shapes += 1
        return self._shapes - 1

    def add_edge(self, edge: Edge) -> None:
        self._graph_line({"kind": "edge", "edge": encode(edge)})

    # ── what happens ─────────────────────────────────────────────────────────────────────────────────────────────────

    def step(
        self, step: Step, head: npt.NDArray[np.void], summary: npt.NDArray[np.void], *, keep: bool = False
    ) -> None:
        """A step is done: its rows in one write, its facts, and everything that waited. `keep` for a step with hits."""
        if self._inert():
            return
        for file in self._files if self._problem_told else ():
            file.tick()
        rows = len(head)
        if rows and (keep or self._keeps_rows(step, rows)):
            self._flush_graph()
            rows = self._write_rows(head, summary)
        else:
            rows = 0
        line = step_line(step, rows) or seal({"kind": "step", "time": time.time(), "step": encode(step), "rows": rows})
        self._waiting.append(("step", line))
        self._waiting_bytes += len(line)
        if self._pack_full or self.lost:
            self._tell_losses(every_step=step.number)
        self.flush()

    def quiet_step(self, *facts: Any) -> bool:
        """A step without rows (as `quiet_line` takes it), straight into the journal; False when that will not do."""
        if self._waiting or self._waiting_graph or self._problem_told or self.lost or not self._files or self._inert():
            return False
        line = quiet_line(*facts)
        return line is not None and self._files[2].put(line)

    def _keeps_rows(self, step: Step, rows: int) -> bool:
        if rows == 1 and step.captured == "guard":
            return self.shows_loss(step.number)
        return step.number % self.interval == 0

    def shows_loss(self, step: int) -> bool:
        return step % loss_interval(step, self.interval) == 0

    def hit(self, hit: Hit) -> None:
        """Waits for the end of the step, or for flush()."""
        self._line("hit", {"kind": "hit", "time": time.time(), "hit": encode(hit)})

    def verdict(self, verdict: Verdict) -> None:
        """Replaces an earlier verdict on the same step of this rank."""
        self.event("verdict", verdict=verdict)

    def finding(self, finding: Finding) -> None:
        self.event("finding", finding=finding)

    def watchpoint(self, action: Literal["add", "update", "delete"], watchpoint: Watchpoint) -> None:
        self.event("watchpoint", action=action, watchpoint=watchpoint)

    def event(self, kind: str, **facts: Any) -> None:
        """Anything else that happened; in the file when this returns. `facts` may hold records of the domain."""
        self._line(kind, {"kind": kind, "time": time.time(), **scrubber().plain(encode_facts(facts))})
        self.flush()

    def tensor(self, address: Address, tensor: Any, dtype: str, shape: tuple[int, ...]) -> bool:
        """Keep a whole tensor (an array or any buffer, in C order); False when it could not be kept."""
        if self._inert():
            return False
        data = pack.bytes_of(tensor)
        pack.check_size(dtype, shape, len(data))
        return self.place(pack.name_of(address), data, dtype, shape) is not None

    def place(self, name: bytes, data: memoryview, dtype: str, shape: tuple[int, ...]) -> pack.Place | None:
        """Put bytes into the pack under a name of pack.name_of(), and tell where they lie.

        From any thread, but pack and index belong to one at a time.
        """
        if self._inert():
            return None
        if not self._files:
            self._lose("tensor")
            return None
        packed = self._files[3]
        begin = packed.size or pack.HEADER_BYTES
        gap = pack.padding(begin)
        size = len(data)
        if begin + gap + size > self._pack_limit:
            self._lose("tensor")
            self._pack_full = True
            return None
        if packed.append(data, before=bytes(gap) if gap else b"") < size or packed.error is not None:
            self._lost_tensor(packed)
            return None
        return self._index(name, (begin + gap, size, kernels.digest_bytes(data)), dtype, shape)

    def name_place(self, name: bytes, place: pack.Place, dtype: str, shape: tuple[int, ...]) -> pack.Place | None:
        """Another name for bytes that are in the pack already."""
        return None if self._inert() else self._index(name, place, dtype, shape)

    def _index(self, name: bytes, place: pack.Place, dtype: str, shape: tuple[int, ...]) -> pack.Place | None:
        record = pack.named_record(name, place, dtype, shape)
        index = self._files[4]
        if index.append(record) < len(record):
            self._lost_tensor(index)
            return None
        return place

    @property
    def mine(self) -> bool:
        """False after the end, and in a forked child: its words would land among ours."""
        return not self._inert()

    def heartbeat(self) -> None:
        """This process lives, though no step has ended: for readers on other machines. From any thread."""
        if self._files and not self._inert():
            self._files[2].touch()

    def flush(self) -> None:
        """Everything that waits goes into the files."""
        if self._inert():
            return
        if not (self._files or self._open()):
            self._shed()
            return
        self._flush_graph()
        self._flush_journal()

    def end(self, reason: EndReason, exit_code: int | None = None, **facts: Any) -> None:
        """The last word of the run, made durable."""
        if self._inert():
            return
        for file in self._files:
            file.retry_now()
        self._retry_open_steps = 0
        self._tell_losses()
        self.event("end", reason=reason, exit=exit_code, **facts)
        self.close()

    def close(self) -> None:
        """Without an end, for a process that goes on; the run counts as lost when the process is gone."""
        if self._inert():
            return
        self.flush()
        for file in self._files:
            file.close(sync=True)
        self._closed = True

    # ── underneath ───────────────────────────────────────────────────────────────────────────────────────────────────
    def _inert(self) -> bool:
        # A forked child (a DataLoader worker) has the same file descriptors; its records would land among ours.
        return self._closed or _THIS_PROCESS[0] != self._pid

    def _open(self) -> bool:
        if self._inert():
            return False
        self._retry_open_steps -= 1
        if self._retry_open_steps > 0 and time.monotonic() < self._retry_open_time:
            return False
        try:
            make_run_directory(self.directory)
            write_run_file(self.directory, self._info)
            self.rank = claim_rank(self.directory, self._wanted_rank, world_size=self._info.world_size)
        except OSError as error:
            self._retry_open_steps, self._retry_open_time = RETRY_STEPS, time.monotonic() + RETRY_SECONDS
            self._problem(error, self.directory)
            return False
        paths = rank_paths(self.directory, self.rank)
        self._files = (
            AppendFile(paths.graph, cut=whole_lines),
            AppendFile(paths.stats, header=statsfile.header(), cut=records_of(statsfile.ROW_BYTES)),
            AppendFile(paths.journal, cut=whole_lines, kept_back=KEPT_BACK),
            AppendFile(paths.pack, header=pack.header(pack.PACK_MAGIC), ahead=True),
            AppendFile(paths.index, header=pack.header(pack.INDEX_MAGIC)),
        )
        facts = {"rank": self.rank, "wanted_rank": self._wanted_rank, "world_size": self._info.world_size}
        process = {"host": socket.gethostname(), "pid": self._pid, "birth": birth_of(self._pid)}
        start = {"kind": "start", "time": time.time(), **facts, **process}
        self._waiting.insert(0, ("start", seal(start)))
        self._flush_journal()
        return True

    def _graph_line(self, plain: dict[str, Any]) -> None:
        if not self._inert():
            line = seal(plain)
            self._waiting_graph.append(line)
            self._waiting_bytes += len(line)

    def _line(self, kind: str, plain: dict[str, Any]) -> None:
        if not self._inert():
            line = seal(plain)
            self._waiting.append((kind, line))
            self._waiting_bytes += len(line)

    def _write_rows(self, head: npt.NDArray[np.void], summary: npt.NDArray[np.void]) -> int:
        if not self._files:
            self._lose("row", len(head))
            return 0
        stats = self._files[1]
        kept = stats.append(self._rows.build(head, summary)) // statsfile.ROW_BYTES
        if kept < len(head):
            self._lose("row", len(head) - kept)
            self._problem(stats.error, stats.path)
        if stats.size > self._next_doubling:
            self._thin_out(stats.size)
        return kept

    def _thin_out(self, size: int) -> None:
        # Each doubling waits for half a limit more, so the file grows with the logarithm of the number of steps.
        self._next_doubling = size + max(self._stats_limit // 2, 1)
        self.interval *= 2
        text = journal.STATS_FULL.of(size=size / MB, interval=self.interval)
        facts = encode_facts({"interval": self.interval, "text": text})
        self._line("level", {"kind": "level", "time": time.time(), **facts})

    def _flush_graph(self) -> None:
        if not self._waiting_graph or not self._files:
            return
        graph = self._files[0]
        data = b"".join(self._waiting_graph)
        kept = graph.append(data)
        if kept == len(data):
            self._waiting_graph.clear()
            self._waiting_bytes -= kept
            return
        self._problem(graph.error, graph.path)
        while self._waiting_graph and kept >= len(self._waiting_graph[0]):
            kept -= len(self._waiting_graph.pop(0))
        self._shed()

    def _flush_journal(self) -> None:
        if not self._waiting:
            return
        journal = self._files[2]
        data = b"".join([line for _, line in self._waiting])
        kept = journal.append(data, urgent=any(kind in _URGENT for kind, _ in self._waiting))
        if kept == len(data):
            self._waiting.clear()
            self._waiting_bytes = sum(map(len, self._waiting_graph))
            return
        self._problem(journal.error, journal.path)
        while self._waiting and kept >= len(self._waiting[0][1]):
            kept -= len(self._waiting.pop(0)[1])
        self._shed()

    def _shed(self) -> None:
        """While the disk is in trouble, what may be dropped is dropped and counted; the rest up to a limit."""
        kept = []
        for kind, line in self._waiting:
            if kind in _NEVER_DROPPED and self._waiting_bytes < _WAITING_MB * MB:
                kept.append((kind, line))
            elif kind == "lost":
                self._lost_told = 0  # to be told again when there is room
            else:
                self._lose(kind)
        self._waiting = kept
        self._waiting_bytes = sum(len(line) for _, line in kept) + sum(map(len, self._waiting_graph))
        if self._waiting_bytes > _WAITING_MB * MB:
            self._lose("graph", len(self._waiting_graph))
            self._waiting_graph.clear()
            self._waiting_bytes = sum(len(line) for _, line in kept)

    def _lose(self, kind: str, count: int = 1) -> None:
        self.lost[kind] = self.lost.get(kind, 0) + count

    def _lost_tensor(self, file: AppendFile) -> None:
        self._lose("tensor")
        self._problem(file.error, file.path)

    def _tell_losses(self, *, every_step: int = 0) -> None:
        if self._pack_full and not self._pack_full_told:
            self._pack_full_told = True
            facts = encode_facts({"text": journal.PACK_FULL.of(limit=self._pack_limit / MB)})
            self._line("warning", {"kind": "warning", "time": time.time(), **facts})
        total = sum(self.lost.values())
        if total > self._lost_told and (not self._lost_told or every_step % RETRY_STEPS == 0):
            self._lost_told = total
            self._line("lost", {"kind": "lost", "time": time.time(), "counts": dict(self.lost)})

    def _problem(self, error: OSError | None, path: Path) -> None:
        if self._problem_told:
            return
        self._problem_told = True
        why = (error.strerror or str(error)) if error is not None else "unknown trouble"
        with contextlib.suppress(Exception):  # the user's callable must not stop the user's training
            self._on_problem(journal.CANNOT_WRITE.of(path=str(path), why=why))


def _say(message: str) -> None:
    print(f"misstep: {message}", file=sys.stderr)
