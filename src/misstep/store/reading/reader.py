"""A run as every reader sees it: the command line, the web page, a notebook; alive or years later.

    run = open_run("last")
    run.state, run.last_step, run.verdict
    run.history("encoder.0.attn:output")["abs_mean"]
    run.tensor("encoder.0.attn:output@412")

The answers are those of the last refresh(); opening is one. poll() refreshes and tells what is new.
"""

from __future__ import annotations

import heapq
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from misstep.core.address import Address, Pattern
from misstep.core.finding import Finding, Verdict
from misstep.core.graph import Graph
from misstep.core.run import RunInfo, RunState, Step
from misstep.core.stats import ROW, TensorStats
from misstep.core.watching.watch import Hit, Watchpoint
from misstep.errors import AddressError, RunError, TensorUnavailable, nearest
from misstep.store.journal import Event
from misstep.store.layout import is_run, ranks_in
from misstep.store.pack import StoredTensor
from misstep.store.reading.liveness import process_exists
from misstep.store.reading.rank import Rank, same_tensor
from misstep.store.runs import read_run_file, resolve, state_of
from misstep.store.statsfile import Rows


def open_run(run: Path | str | Run = "last", base: Path | str | None = None) -> Run:
    """The run of that path, name, beginning of a name, or `last`; a run already open is returned as it is.

    A summary folder of MindSpore is a run too, and so are its graph files and a flight record.
    """
    if isinstance(run, Run):
        return run
    if run != "last" and Path(run).exists() and not is_run(Path(run)):
        from misstep.store.bundle.open import bundle_run
        from misstep.store.bundle.write import is_bundle
        from misstep.store.foreign.mindspore.graph_run import graph_run, looks_like_graph
        from misstep.store.foreign.mindspore.summary import looks_like_summary
        from misstep.store.foreign.mindspore.summary_run import summary_run

        if looks_like_summary(Path(run)):
            return Run(summary_run(run), called=str(run))
        if looks_like_graph(Path(run)):
            return Run(graph_run(run), called=str(run))
        if is_bundle(Path(run)):
            return Run(bundle_run(run), called=str(run))
    return Run(resolve(run, base))


class Run:
    """One training, first step to last."""

    def __init__(self, path: Path, *, called: str = "") -> None:
        self.path = Path(path)
        self.called = called or self.path.name
        """How a command names it: a file it was unpacked from, else its name."""
        self.info: RunInfo
        self._ranks: dict[int, Rank] = {}
        self._told: dict[int, int] = {}
        self.refresh()

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def name(self) -> str:
        return self.path.name

    # ── as a whole ───────────────────────────────────────────────────────────────────────────────────────────────────

    def refresh(self) -> Run:
        """Take in what was written since the last look."""
        self.info, self._run_file_damage = read_run_file(self.path)
        for rank in ranks_in(self.path):
            self._ranks.setdefault(rank, Rank(self.path, rank)).refresh()
        return self

    def poll(self) -> list[Event]:
        """What has happened since the last poll (the first tells everything), in the order of time."""
        self.refresh()
        news = [rank.events[self._told.get(rank.number, 0) :] for rank in self._chosen(None)]
        self._told = {rank.number: len(rank.events) for rank in self._chosen(None)}
        return _by_time(news)

    @property
    def state(self) -> RunState:
        if not self._ranks and self.info.host == socket.gethostname() and process_exists(self.info.pid):
            return "starting"
        return state_of([rank.state for rank in self._ranks.values()])

    @property
    def alive(self) -> bool:
        return self.state in ("starting", "running", "paused")

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(sorted(self._ranks))

    @property
    def damage(self) -> list[str]:
        """What could not be read, a sentence each; rows count when they were looked at, verify() looks at all."""
        sentences = [self._run_file_damage] if self._run_file_damage else []
        return sentences + [sentence for rank in self._ranks.values() for sentence in rank.damage()]

    def verify(self) -> list[str]:
        """Read every row and every tensor, and tell all the damage."""
        sentences = []
        for rank in self._ranks.values():
            rank.stats.verify()
            for stored in rank.pack.stored.values():
                try:
                    rank.pack.array(stored)
                except TensorUnavailable as error:
                    sentences.append(str(error))
        return self.damage + sentences

    @property
    def lost(self) -> dict[str, int]:
        """Records the writers could not keep (a full disk), by kind, over all ranks."""
        total: dict[str, int] = {}
        for rank in self._ranks.values():
            told = [event.facts.get("counts", {}) for event in rank.events if event.kind == "lost"]
            for kind, count in (told[-1] if told else {}).items():
                total[kind] = total.get(kind, 0) + count
        return total

    # ── what happened ────────────────────────────────────────────────────────────────────────────────────────────────

    def steps(self, rank: int | None = None) -> list[Step]:
        """The steps of a rank (the first one unless told), in order."""
        found = self.rank(rank)
        return sorted(found.steps.values(), key=lambda step: step.number) if found else []

    def step(self, number: int, rank: int | None = None) -> Step | None:
        """One step; None when it was not recorded."""
        found = self.rank(rank)
        return found.steps.get(number) if found else None

    @property
    def last_step(self) -> Step | None:
        """The furthest step any rank has finished."""
        furthest = max(self._ranks.values(), key=lambda rank: rank.last_step_number, default=None)
        return furthest.steps.get(furthest.last_step_number) if furthest else None

    def hits(self, rank: int | None = None) -> list[Hit]:
        """Hits of one rank or of all, by step and execution order."""
        found = [hit for reader in self._chosen(rank) for hit in reader.hits.values()]
        return sorted(found, key=lambda hit: (hit.address.step or 0, hit.address.rank or 0, hit.order, hit.id))

    @property
    def verdict(self) -> Verdict | None:
        """Where the first bad value of the run was born; None when there was none."""
        return next(iter(self.verdicts), None)

    @property
    def verdicts(self) -> list[Verdict]:
        """The first bad values of every rank, the earliest first."""
        found = [verdict for rank in self._ranks.values() for verdict in rank.verdicts.values()]
        return sorted(found, key=lambda verdict: verdict.moment)

    @property
    def findings(self) -> list[Finding]:
        """What was noted while the run was recorded; `misstep diagnose` looks for more."""
        return [finding for rank in self._ranks.values() for finding in rank.findings]

    @property
    def watchpoints(self) -> list[Watchpoint]:
        """Those in force at the end, by id."""
        merged: dict[int, Watchpoint] = {}
        for rank in reversed(list(self._ranks.values())):
            merged.update(rank.watchpoints)
        return [merged[number] for number in sorted(merged)]

    def events(self, kind: str | None = None, rank: int | None = None) -> list[Event]:
        """The journal, of one rank or of all in the order of time."""
        return _by_time(
            [event for event in reader.events if kind is None or event.kind == kind] for reader in self._chosen(rank)
        )

    def rank(self, number: int | None = None) -> Rank | None:
        """The files of one rank (the first unless given), for readers of many rows; None before there are any."""
        return next(self._chosen(number), None)

    def graph(self, rank: int | None = None) -> Graph:
        found = self.rank(rank)
        return found.graph if found else Graph()

    # ── tensors ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def stats(
        self, which: Address | Pattern | str = "*", *, rank: int | None = None, steps: int | range | None = None
    ) -> list[tuple[Address, TensorStats]]:
        """Statistics of every tensor that fits, in the order they were recorded.

        >>> run.stats("encoder.*:grad@100:200")
        """
        pattern = as_pattern(which)
        first, last = pattern.first_step, pattern.last_step
        if steps is not None:
            chosen = range(steps, steps + 1) if isinstance(steps, int) else steps
            first = max(chosen.start, first or 0)
            last = chosen.stop - 1 if last is None else min(chosen.stop - 1, last)
        found: list[tuple[Address, TensorStats]] = []
        known = False
        for reader in self._chosen(rank if rank is not None else pattern.rank):
            tensors = reader.addresses(pattern)
            known = known or bool(tensors)
            if tensors:
                rows = reader.stats.of_tensors([index for index, _ in tensors], first=first, last=last)
                if isinstance(steps, range) and steps.step != 1:
                    rows = rows[np.isin(rows["step"], np.array(steps))]
                found += reader.named_rows(rows)
        if not known:
            raise self._unknown(which)
        return found

    def history(self, address: Address | str, *, rank: int | None = None) -> Rows:
        """One tensor over the steps: an array of rows with `step`, `order`, `dtype` and every statistic as fields."""
        wanted = Address.parse(address) if isinstance(address, str) else address
        for reader in self._chosen(rank if rank is not None else wanted.rank):
            index = reader.tensor_index(wanted)
            if index is not None:
                return reader.stats.of_tensors(index, first=wanted.step, last=wanted.step)
        raise self._unknown(wanted)

    def step_rows(self, number: int, rank: int | None = None) -> list[tuple[Address, TensorStats]]:
        """Everything recorded of one step, in execution order."""
        found = self.rank(rank)
        if found is None:
            return []
        rows = found.stats.of_step(number)
        return found.named_rows(rows[np.argsort(rows["order"], kind="stable")])

    def steps_with_rows(self, rank: int | None = None) -> list[int]:
        """The steps whose statistics were kept: all of them, or a part when the file grew large."""
        found = self.rank(rank)
        return [] if found is None else [int(step) for step in found.stats.kept_steps()]

    def rows(self, number: int, rank: int | None = None) -> Rows:
        """The rows of one step as they lie in the file, in execution order; `tensor` is a place in graph().tensors."""
        found = self.rank(rank)
        if found is None:
            return np.zeros(0, ROW)
        rows = found.stats.of_step(number)
        return rows[np.argsort(rows["order"], kind="stable")]

    def tensors(self, which: Pattern | Address | str = "*", *, rank: int | None = None) -> list[StoredTensor]:
        """The whole tensors that were kept, in the order they came; addresses with rank."""
        pattern = as_pattern(which)
        return [
            stored
            for reader in self._chosen(rank if rank is not None else pattern.rank)
            for stored in reader.stored_tensors()
            if pattern.matches(stored.address)
        ]

    def tensor(self, address: Address | str) -> npt.NDArray[Any]:
        """The values of a whole tensor, mapped and read-only; without a step, the latest that was kept."""
        wanted = Address.parse(address) if isinstance(address, str) else address
        for reader in self._chosen(wanted.rank):
            stored = reader.stored_tensor(wanted)
            if stored is not None:
                return reader.pack.array(stored)
        raise self._unavailable(wanted)

    # ── underneath ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _chosen(self, rank: int | None) -> Iterator[Rank]:
        if rank is None:
            yield from (self._ranks[number] for number in self.ranks)
        elif rank in self._ranks:
            yield self._ranks[rank]
        elif self._ranks or rank:
            raise RunError(f"{self.name} has no rank {rank}; it has {self._listed(self.ranks)}", run=str(self.path))

    @staticmethod
    def _listed(ranks: Iterable[int]) -> str:
        return ", ".join(map(str, ranks)) or "none yet"

    def _unknown(self, which: Address | Pattern | str) -> AddressError:
        """Nothing of that name: the nearest nodes, or the roles and slots the node does have."""
        pattern = as_pattern(which)
        names = {name for rank in self._ranks.values() for name in rank.graph.names()}
        if any(pattern.matches_node(name) for name in names):
            every = [
                address for rank in self._ranks.values() for _, address in rank.addresses(Pattern(node=pattern.node))
            ]
            there = sorted({str(Address(a.node, a.role, a.slot, call=a.call)) for a in every})
            shown = ", ".join(there[:6]) + (", …" if len(there) > 6 else "")
            what = f"recorded there: {shown}" if there else "nothing of it was recorded"
            return AddressError(f"no tensor {str(which)!r} in {self.name}; {what}", address=str(which))
        if not names:
            return AddressError(f"no tensor {str(which)!r}: {self.name} has recorded no nodes yet", address=str(which))
        return AddressError(
            f"no node {pattern.node!r} in {self.name}{nearest(pattern.node, names)}", address=str(which)
        )

    def _unavailable(self, wanted: Address) -> TensorUnavailable | AddressError:
        if all(rank.tensor_index(wanted) is None for rank in self._chosen(wanted.rank)) and not self._kept_steps(
            wanted
        ):
            return self._unknown(wanted)
        kept = self._kept_steps(wanted)
        where = f"; kept at step {', '.join(map(str, kept[-5:]))}" if kept else ""
        command = (
            f"misstep dump {self.name} '{wanted}'" if self.alive else f"misstep replay {self.name}@{wanted.step or 1}"
        )
        return TensorUnavailable(
            f"the values of {wanted} were not kept, only its statistics{where}. To get them:  {command}",
            address=str(wanted),
            reason="not_captured",
        )

    def _kept_steps(self, wanted: Address) -> list[int]:
        return sorted(
            {
                stored.address.step or 0
                for rank in self._chosen(wanted.rank)
                for stored in rank.stored_tensors()
                if same_tensor(stored.address, wanted)
            }
        )


def _by_time(journals: Iterable[list[Event]]) -> list[Event]:
    """Journals of several ranks as one; within a rank the order stays, whatever its clock did."""
    return list(heapq.merge(*journals, key=lambda event: event.time))


def as_pattern(which: Address | Pattern | str) -> Pattern:
    """An address fits itself only: its missing call and slot are the first ones."""
    if isinstance(which, str):
        return Pattern.parse(which)
    if isinstance(which, Pattern):
        return which
    node = which.node.replace("[", "?")  # layers[0] is a name here, not a set of characters
    return Pattern(node, which.role, which.slot, which.step, which.step, which.rank, which.call)
