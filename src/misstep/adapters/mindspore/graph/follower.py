"""Compiled MindSpore code, seen through the files MindSpore itself can write about it.

    first compiled call ── MINDSPORE_DUMP_CONFIG for this call only ──► MindSpore reads it once, when it compiles
    a graph was compiled ── .ir, execution order ──► nodes, edges and source lines of the run
    a compiled call ended ── .npy per input and output ──► rows of the step, then removed

At module level the iterations asked for are never reached: MindSpore writes the graph and no data, at no cost
(measured: bit-identical training, CPU time within noise). At op level every chosen step is dumped, and is
about 2.3 times slower. A MINDSPORE_DUMP_CONFIG of the user's own stays as it is, and so do its files; they are only
read.

Inputs are dumped after the operator ran: slots it writes in place (a weight, a moment) hold the new value and are left
out. `Parameter` files hold what the graph left behind, which is what `:param` means everywhere: the value after the
step's update.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from misstep.adapters.base import Adapter, SessionPort
from misstep.adapters.mindspore.graph.dump_files import PARAMETERS, CompiledGraph, DumpedFile, NodeFiles, read_graph
from misstep.adapters.mindspore.graph.dump_names import files_by_operator
from misstep.adapters.mindspore.graph.dump_request import NEVER, VARIABLE, dump_config, iterations_for, path_in
from misstep.adapters.mindspore.graph.listeners import follow_compiled_code, tensor_of
from misstep.adapters.mindspore.graph.unwritten_outputs import unwritten
from misstep.core.address import Role
from misstep.core.stats import DTYPE_CODES
from misstep.kernels import summarize_memory
from misstep.sentences import journal
from misstep.store.foreign.mindspore.ir import Feed
from misstep.store.foreign.npyfile import read_npy
from misstep.store.scratch import remove_folder, scratch_folder


class GraphFollower:
    """Reads what MindSpore writes about compiled code into the session's catalog and frame."""

    def __init__(self, session: SessionPort, adapter: Adapter) -> None:
        self.session, self.adapter = session, adapter
        self.root: Path | None = None
        """Below which MindSpore writes; None until compiled code is met at a level that wants it."""
        self.keep = False
        """The files are the user's own."""
        self._asked = False
        self._wants_data = False
        self._graphs: dict[Path, CompiledGraph] = {}
        self._looked_at: dict[Path, int] = {}
        self._read: set[Path] = set()
        self._spent: list[Path] = []
        self._calls: dict[int, int] = {}
        self._weights: dict[str, int] = {}
        """By parameter, the row of whoever read it first in this step: its value before the update."""
        self._results: list[int] = []
        """Rows of what the graphs of this step returned."""
        self._bad: set[str] = set()
        """Parameters that held NaN or Inf when last written."""
        self._attempt = (0, 0)
        self._told: set[str] = set()

    @property
    def ended(self) -> bool:
        return self.session.ended

    @property
    def reads(self) -> bool:
        return self.root is not None

    # ── what the adapter's seam tells ─────────────────────────────────────────────────────────────────────────

    def before_compiled(self, *, update_only: bool) -> None:
        self._guarded("before compiled code", lambda: self._before(update_only))

    def after_compiled(self, *, update_only: bool, training: bool) -> None:
        self._guarded("after compiled code", lambda: self._after(update_only, training))

    def compiled_failed(self, error: Exception) -> None:
        self._guarded("after compiled code failed", self._failed)

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────

    def _before(self, update_only: bool) -> None:
        self._remove_spent()
        level = self.session.level
        # The compiled update of an eager training has no line of the user's, and dumping it costs every weight.
        if not self._asked and level in ("module", "op") and not update_only:
            self._asked = True
            given = os.environ.get(VARIABLE, "")
            if given:
                self.root, self.keep, self._wants_data = path_in(given), True, True
            else:
                self._prepare(iterations_for(self.session.settings.steps) if level == "op" else NEVER)

    def _prepare(self, iterations: str) -> None:
        self._wants_data = iterations != NEVER
        home = self.session.run_directory
        folder = scratch_folder(home if home is not None else Path(tempfile.gettempdir()))
        atexit.register(remove_folder, folder)
        scratch = folder.resolve()
        self.root = scratch / "dump"
        config = scratch / "dump.json"
        config.write_text(json.dumps(dump_config(self.root, iterations)), encoding="utf-8")
        os.environ[VARIABLE] = str(config)

    def _after(self, update_only: bool = False, training: bool = True) -> None:
        if self.root is None:
            return
        if not self.keep and os.environ.get(VARIABLE, "").startswith(str(self.root.parent)):
            del os.environ[VARIABLE]  # MindSpore has read it; processes started from here must not
            if not self.root.exists():
                self._note(journal.COMPILED_BEFORE.of())
        self._read_graphs(learn=not update_only)
        if self._wants_data:
            self._read_data(wanted=training and not update_only)

    def _failed(self) -> None:
        self._after()
        if self.session.run_directory is None:
            # A training whose first graph does not compile is a run too, and its failure the most wanted line of it.
            self.session.going_live(self.adapter)

    def _read_graphs(self, *, learn: bool) -> None:
        assert self.root is not None
        for folder in self.root.glob("rank_*/graphs"):
            changed = folder.stat().st_mtime_ns
            if self._looked_at.get(folder) == changed:
                continue  # nothing was compiled since: the usual step
            self._looked_at[folder] = changed
            for file in sorted(folder.glob("*.ir")):
                if file not in self._graphs:
                    graph = self._graphs[file] = read_graph(file)
                    if learn:
                        self._learn(graph)

    def _learn(self, graph: CompiledGraph) -> None:
        """Nodes, lines and edges of a graph that was just compiled."""
        catalog = self.session.catalog
        taken = {node.name for node in catalog.graph.nodes if node.graph and node.graph != graph.title}
        graph.keep_apart_from(taken)
        for name in graph.order:
            catalog.node(
                graph.shown(name),
                "operator",
                graph.type_of(name),
                phase=graph.phases.get(name, "forward"),
                source=graph.sources.get(name),
                graph=graph.title,
                forward=graph.forwards.get(name, ""),
            )
        for name in graph.order:
            for slot, feed in enumerate(graph.wiring.feeds.get(name, ())):
                if feed is not None and not feed.parameter and feed.name in graph.positions:
                    source, target = (catalog.graph.node(graph.shown(one)) for one in (feed.name, name))
                    if source is not None and target is not None:
                        catalog.edge(source.index, target.index, feed.slot, slot)

    def _read_data(self, *, wanted: bool) -> None:
        assert self.root is not None
        step = self.session.step
        attempt = (step, self.session.frame.begun)  # after a skipped update the same step begins anew
        if attempt != self._attempt:
            self._attempt, self._calls, self._weights, self._results = attempt, {}, {}, []
        wanted = wanted and (self.session.level_for(step) == "op" or self.keep)
        for folder in sorted(self.root.glob("rank_*/*/*/*"), key=_by_number):
            if folder in self._read or not folder.name.isdecimal() or not folder.parent.name.isdecimal():
                continue
            self._read.add(folder)
            if wanted:
                self._read_run(folder, step)
            if not self.keep:
                self._spent.append(folder)

    def _read_run(self, folder: Path, step: int) -> None:
        """One run of one graph: rows in its execution order, what it left in the parameters last."""
        number = folder.parent.name
        graph = next((one for file, one in self._graphs.items() if file.stem.endswith(f"_{number}")), None)
        if graph is None:
            self._note(journal.DATA_WITHOUT_GRAPH.of(number=number))
            return
        files = files_by_operator(folder, graph)
        made: dict[tuple[str, int], int] = {}
        for name in graph.order:
            node = self.session.catalog.graph.node(graph.shown(name))
            if node is not None and name in files:
                self._read_node(node.index, name, graph, files[name], made)
        self._parameters(graph, files.get(PARAMETERS), made)
        self._join(graph, made)

    def _read_node(
        self, node: int, name: str, graph: CompiledGraph, files: NodeFiles, made: dict[tuple[str, int], int]
    ) -> None:
        call = self._calls[node] = self._calls.get(node, 0) + 1
        feeds, writes = graph.wiring.feeds.get(name, ()), graph.wiring.writes.get(name, {})
        inputs: list[int] = []
        bad_before = False
        for file in files.inputs:
            feed = feeds[file.slot] if file.slot < len(feeds) else None
            if file.slot in writes:
                parameter = writes[file.slot]
                inputs += [self._weights[parameter]] if parameter in self._weights else []
                # Moving means are kept by BatchNorm and, when it trains, not used by it.
                bad_before = bad_before or (parameter in self._bad and graph.type_of(name) != "BatchNorm")
                self._look_at(parameter, file)
            elif not file.is_setting and not self._holds_nothing(feed, graph):
                sources = made_by(feed, graph, made)
                row = self._row(node, "input", file, call, sources or None)
                inputs.append(row)
                # Written after the operator ran: its memory may hold something else by then.
                inputs += [one for one in sources if self.session.frame.nonfinite(one)]
                if feed is not None and graph.parameters.get(feed.name):
                    self._weights.setdefault(feed.name, row)
                elif feed is not None and feed.parameter and self._results:
                    self.session.frame.expect(self.session.frame.tensors[row], self._results)
        for file in files.outputs:
            if self._holds_nothing(Feed(name, file.slot), graph):
                continue
            # What was bad before and is written in place explains itself: no origin is claimed.
            row = self._row(node, "output", file, call, None if bad_before else tuple(inputs))
            made[name, file.slot] = row
            if file.slot == 0:
                made.update({(parameter, -1): row for parameter in writes.values()})

    def _holds_nothing(self, made: Feed | None, graph: CompiledGraph) -> bool:
        """Whether an operator's output is memory it never wrote to."""
        if made is None or made.parameter:
            return False
        flags = graph.wiring.arguments.get(made.name, ())
        return made.slot in unwritten(graph.type_of(made.name), training=flags[5:6] != ("Bool(0)",))

    def _look_at(self, parameter: str, file: DumpedFile) -> None:
        """Remember whether a parameter is bad from here on."""
        values = read_npy(file.path, dtype=file.dtype)
        if file.is_float and not np.isfinite(values.astype(np.float64)).all():
            self._bad.add(parameter)
        else:
            self._bad.discard(parameter)

    def _parameters(self, graph: CompiledGraph, files: NodeFiles | None, made: dict[tuple[str, int], int]) -> None:
        """What the graph was given, and what it left in parameters nobody else tells of (moments, statistics)."""
        catalog = self.session.catalog
        known = {name for name, _ in self.adapter.parameters()}
        for file in files.outputs if files is not None else ():
            weight = graph.parameters.get(file.node, True)
            if (weight and file.node in known) or not file.is_float:
                continue
            kind, role, phase = ("parameter", "param", "forward") if weight else ("input", "input", "input")
            name = file.node if weight else f"{graph.title}/{file.node}"
            node = catalog.node(name, kind, "Parameter", phase=phase, graph=graph.title)  # type: ignore[arg-type]
            row = made.get((file.node, -1))
            self._row(node, role, file, 1, None if row is None else (row,))  # type: ignore[arg-type]

    def _row(self, node: int, role: Role, file: DumpedFile, call: int, inputs: tuple[int, ...] | None) -> int:
        session = self.session
        values = read_npy(file.path, dtype=file.dtype)
        values = values if values.flags.c_contiguous else values.copy()
        code = DTYPE_CODES.get(file.dtype or str(values.dtype), DTYPE_CODES["unknown"])
        number = session.catalog.tensor(node, role, file.slot, call)
        row = session.frame.reserve(number, session.catalog.shape(values.shape), code, inputs, _reader(file))
        summarize_memory(values.ctypes.data, values.size, code, session.frame.summary, row)
        want = session.wants.get(number)
        if want is not None:
            want(row, tensor_of(values))
        return row

    def _join(self, graph: CompiledGraph, made: dict[tuple[str, int], int]) -> None:
        """Rows the adapter will add (loss, gradients, weights) hold what operators of this graph made."""
        catalog, frame = self.session.catalog, self.session.frame
        results = [made[feed.name, feed.slot] for feed in graph.wiring.results if (feed.name, feed.slot) in made]
        self._results += results
        if results:
            frame.expect(catalog.tensor(catalog.node("loss", "loss", "Loss", phase="loss"), "loss"), results)
        if len(results) > 1:  # a loss and gradients: the graph of value_and_grad
            for name in (name for name, weight in graph.parameters.items() if weight):
                frame.expect(catalog.tensor(catalog.node(name, "parameter", "Parameter"), "grad"), results)
        for (name, slot), row in made.items():
            if slot < 0:
                frame.expect(catalog.tensor(catalog.node(name, "parameter", "Parameter"), "param"), [row])

    def _note(self, text: str) -> None:
        if text not in self._told and self.session.run_directory is not None:
            self._told.add(text)
            self.session.event("note", text=text)

    def _remove_spent(self) -> None:
        while self._spent:
            folder = self._spent.pop()
            shutil.rmtree(folder, ignore_errors=True)
            self._read.discard(folder)

    def _guarded(self, where: str, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception as error:
            self.session.trouble(where, error)


def made_by(
    feed: Feed | None, graph: CompiledGraph, made: dict[tuple[str, int], int], depth: int = 8
) -> tuple[int, ...]:
    """The rows an input was computed from; through operators of which MindSpore wrote nothing."""
    if feed is None or feed.parameter:
        return ()
    if (feed.name, feed.slot) in made:
        return (made[feed.name, feed.slot],)
    behind = graph.wiring.feeds.get(feed.name, ()) if depth else ()
    return tuple(dict.fromkeys(row for one in behind for row in made_by(one, graph, made, depth - 1)))


def _reader(file: DumpedFile) -> Callable[[], Any]:
    def read() -> Any:
        return tensor_of(read_npy(file.path, dtype=file.dtype).copy()) if file.path.exists() else None

    return read


def _by_number(folder: Path) -> tuple[str, int, int]:
    graph, iteration = folder.parent.name, folder.name
    return (
        folder.parents[1].name,
        int(iteration) if iteration.isdecimal() else -1,
        int(graph) if graph.isdecimal() else -1,
    )


def follow_graphs(session: SessionPort, adapter: Adapter) -> None:
    """Have compiled MindSpore code read into this session; call it before the adapter is attached."""
    follow_compiled_code(GraphFollower(session, adapter))
