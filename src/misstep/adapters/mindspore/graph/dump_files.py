"""One compiled graph and the files of one run of it, as MindSpore wrote them.

graphs/ms_output_trace_code_graph_0.ir             operators, their lines, who feeds whom
execution_order/ms_execution_order_graph_0.csv     operators in the order they run
net/0/3/Log.Default_network_Log-op0.0.0.17….output.0.DefaultFormat.Float32.npy
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from misstep.adapters.source import source_line
from misstep.core.graph import Phase, Source
from misstep.store.foreign.elements import from_mindspore, is_float
from misstep.store.foreign.mindspore.dump import FILE_NAME
from misstep.store.foreign.mindspore.graph import read_execution_order, read_ir
from misstep.store.foreign.mindspore.ir import Wiring, read_wiring

_LOST = re.compile(r"[./\\ ]")
_UPDATES = ("Apply", "Adam", "SGD", "Momentum", "Fused", "Sparse", "Assign", "Lamb")
"""How the names of operators begin that write weights."""
_GRADIENT_OF = re.compile(r"Gradients/(?P<scope>.*)/Grad_(?P<type>[^/]+)/")
PARAMETERS = ""
"""In place of an operator's name: what the graph was given and left behind."""


@dataclass(slots=True)
class CompiledGraph:
    """A graph that MindSpore compiled."""

    title: str
    order: list[str] = field(default_factory=list)
    sources: dict[str, Source] = field(default_factory=dict)
    parameters: dict[str, bool] = field(default_factory=dict)
    """By name, whether it is a weight; the others are what the graph is called with."""
    wiring: Wiring = field(default_factory=Wiring)
    phases: dict[str, Phase] = field(default_factory=dict)
    forwards: dict[str, str] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    dumped_as: dict[str, str] = field(default_factory=dict)
    """By operator, the name its files have; known once there are some."""
    matched: int = 0
    """In how many runs of the graph those names were looked for."""
    _shown: dict[str, str] = field(default_factory=dict)

    def type_of(self, name: str) -> str:
        return name.rpartition("/")[2].rpartition("-op")[0] or name

    def shown(self, name: str) -> str:
        """The node's name in the run: MindSpore's, with the graph in front when another graph has it too."""
        return self._shown.get(name, name)

    def keep_apart_from(self, taken: set[str]) -> None:
        self._shown = {name: f"{self.title}/{name}" for name in self.order if name in taken}
        self.forwards = {name: self.shown(forward) for name, forward in self.forwards.items()}


@dataclass(frozen=True, slots=True)
class DumpedFile:
    """One tensor on disk."""

    path: Path
    node: str
    slot: int
    dtype: str
    time: int
    scalar: bool = False

    @property
    def is_float(self) -> bool:
        return is_float(self.dtype)

    @property
    def is_setting(self) -> bool:
        """A flag or an axis handed to an operator, not data."""
        return self.scalar and not self.is_float


@dataclass(slots=True)
class NodeFiles:
    inputs: list[DumpedFile] = field(default_factory=list)
    outputs: list[DumpedFile] = field(default_factory=list)


def read_graph(ir: Path) -> CompiledGraph:
    """A graph from its .ir, and from the execution order that stands beside it when there is one."""
    number = ir.stem.rpartition("_")[2]
    text, wiring = read_ir(ir), read_wiring(ir)
    graph = CompiledGraph(f"graph_{number}", parameters=text.parameters, wiring=wiring)
    listed = ir.parents[1] / "execution_order" / f"ms_execution_order_graph_{number}.csv"
    # The file goes on with the numbers of the iterations that ran.
    names = [name for name in read_execution_order(listed) if not name.isdecimal()] if listed.exists() else []
    graph.order = list(dict.fromkeys(names or wiring.feeds))
    graph.positions = {name: place for place, name in enumerate(graph.order)}
    graph.sources = {name: _here(source) for name, source in text.sources.items()}
    for name in graph.order:
        graph.phases[name] = _phase(name, graph)
    graph.forwards = {
        name: forward
        for name, phase in graph.phases.items()
        if phase == "backward" and (forward := _forward(name, graph))
    }
    return graph


def dumped_files(folder: Path, graph: CompiledGraph) -> dict[str, NodeFiles]:
    """The files of one run of a graph, by the names they have; what belongs to no operator stands under PARAMETERS."""
    found: dict[str, NodeFiles] = {}
    parameters = {lost(name): name for name in graph.parameters}
    for entry in os.scandir(folder):
        said = FILE_NAME.fullmatch(entry.name)
        if said is None:
            continue
        name = lost(said["name"])
        name = parameters.get(name, name)
        file = DumpedFile(
            path=Path(entry.path),
            node=name,
            slot=int(said["slot"]),
            dtype=from_mindspore(said["dtype"] or "") or "",
            time=int(said["time"]),
            scalar=entry.stat().st_size <= 128 + 16,  # a header of 128 bytes and one number
        )
        files = found.setdefault(PARAMETERS if said["type"] == "Parameter" else name, NodeFiles())
        (files.inputs if said["io"] == "input" else files.outputs).append(file)
    for files in found.values():
        files.inputs.sort(key=lambda file: file.slot)
        files.outputs.sort(key=lambda file: (file.time if file.node in graph.parameters else 0, file.slot))
    return found


def lost(name: str) -> str:
    """A name as it stands in the names of files."""
    return _LOST.sub("_", name)


def _here(source: Source) -> Source:
    """The same line, its file relative to where the program runs, as everywhere in a run."""
    found = source_line(source.file, source.line)
    return found if found.code else Source(found.file, source.line, source.code)


def _phase(name: str, graph: CompiledGraph) -> Phase:
    kind = graph.type_of(name)
    if "/optimizer-" in name or (kind.startswith(_UPDATES) and graph.wiring.writes.get(name)):
        return "optimizer"
    feeds = [graph.phases.get(feed.name) for feed in graph.wiring.feeds.get(name, ()) if feed is not None]
    if name.startswith("Gradients/") or "backward" in feeds:  # an expanded operator has lost its scope
        return "backward"
    return "loss" if "/_loss_fn-" in name else "forward"


def _forward(name: str, graph: CompiledGraph) -> str:
    """`Gradients/Default/net/Grad_Log/Div-op0` computes the derivative of `Default/net/Log-op0`, at the same line."""
    said = _GRADIENT_OF.match(name)
    if said is None:
        return ""
    beginning = f"{said['scope']}/{said['type']}-op"
    candidates = [one for one in graph.order if one.startswith(beginning)]
    same_line = [one for one in candidates if graph.sources.get(one) == graph.sources.get(name)]
    return next(iter(same_line or candidates), "")
