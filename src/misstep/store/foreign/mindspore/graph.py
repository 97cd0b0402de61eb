"""The graph MindSpore ran, from the files beside its dump, without MindSpore.

graphs/ms_output_trace_code_graph_0.ir    per operator its full name and the source lines it came from
graphs/ms_output_trace_code_graph_0.pb    operators, parameters and edges (anf_ir.ModelProto)
execution_order/ms_execution_order_graph_0.csv    full names, one a line, in the order of execution
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from misstep.core.graph import Edge, Graph, Node, NodeKind, Phase, Source
from misstep.store.boundary import reading
from misstep.store.foreign import protobuf as pb

_FULL_NAME = re.compile(r"^\s*# Fullname with scope: \((.*)\)\s*$")
_IN_FILE = re.compile(r"^\s*# In file (?P<file>.+?):(?P<line>\d+)(?:~\d+)?, \d+~\d+/(?P<code>.*)/?\s*$")
_PARAMETER = re.compile(r"^%para\d+_(?P<name>[^\s:]+)\s*:.*IsWeight: (?P<weight>true|false)")
INSIDE_PACKAGE = re.compile(
    r"[/\\](?:site-packages|dist-packages|python)[/\\]mindspore[/\\]"
    r"|[/\\]mindspore[/\\](?:_extends|common|graph|mint|nn|numpy|ops|parallel|train|utils)[/\\]"
)
"""Files of MindSpore itself. A user's own folder may bear its name too."""


@dataclass(slots=True)
class IrText:
    """What a .ir file tells: source lines by full name, and the parameters with whether they are weights."""

    sources: dict[str, Source] = field(default_factory=dict)
    parameters: dict[str, bool] = field(default_factory=dict)


def read_ir(path: str | Path) -> IrText:
    """Source lines per operator: the innermost frame that is the user's own."""
    found = IrText()
    name = ""
    frames: list[Source] = []
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("%para"):
                said = _PARAMETER.match(line)
                if said:
                    found.parameters[said["name"]] = said["weight"] == "true"
                continue
            full = _FULL_NAME.match(line)
            if full:
                _close(found, name, frames)
                name, frames = full[1], []
                continue
            frame = _IN_FILE.match(line)
            if frame:
                frames.append(Source(frame["file"], int(frame["line"]), frame["code"].strip().rstrip("/").strip()))
    _close(found, name, frames)
    return found


def read_execution_order(path: str | Path) -> list[str]:
    """Full names in the order the graph was run; the header line is no name."""
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("NodeExecutionOrder")]


def read_pb(path: str | Path) -> Graph:
    """Operators, parameters and the edges between them.

    >>> read_pb("rank_0/graphs/ms_output_trace_code_graph_0.pb").node("fc1.weight").kind
    'parameter'
    """
    graph = Graph()
    with reading(path, "MindSpore graph"):
        data = Path(path).read_bytes()
        inner = next((one for one in pb.fields(data) if one.number == 4 and one.kind == pb.BYTES), None)
        if inner is None:
            raise pb.Malformed("no graph inside")
        _fill(graph, data, inner)
    return graph


def graph_from(data: bytes, message: pb.Field) -> Graph:
    """The graph in a message of a larger file (an event of SummaryCollector)."""
    graph = Graph()
    _fill(graph, data, message)
    return graph


def user_line(frames: list[Source]) -> Source | None:
    """The last frame outside the framework; the last of all when every frame is inside it."""
    outside = [frame for frame in frames if not INSIDE_PACKAGE.search(frame.file)]
    # A frame that starts `def construct` only says which function we are in; the call inside it comes after.
    return outside[-1] if outside else frames[-1] if frames else None


def _close(found: IrText, name: str, frames: list[Source]) -> None:
    source = user_line(frames)
    if name and source is not None:
        found.sources[name] = source


def _fill(graph: Graph, data: bytes, inner: pb.Field) -> None:
    index_of: dict[str, int] = {}
    wiring: list[tuple[int, list[str]]] = []
    order = 0
    for part in pb.fields(data, inner.value, inner.end):
        if part.number == 3:
            name = _words(data, part).get(1, "")
            index_of[name] = len(graph.nodes)
            graph.add_node(Node(len(graph.nodes), name, "parameter", "Parameter", phase="input"))
        elif part.number == 1:
            words = _words(data, part)
            order += 1
            full = words.get(8) or f"{words.get(4, '')}/{words.get(3, '')}-op{words.get(2, '')}".lstrip("/")
            index_of[words.get(2, "")] = len(graph.nodes)
            kind: NodeKind = "optimizer" if "/optimizer-" in full else "operator"
            graph.add_node(Node(len(graph.nodes), full, kind, words.get(3, ""), phase=phase_of(full), order=order))
            feeds = [_words(data, one).get(1, "") for one in pb.fields(data, part.value, part.end) if one.number == 1]
            wiring.append((len(graph.nodes) - 1, feeds))
    for target, feeds in wiring:
        for slot, feed in enumerate(feeds):
            source = index_of.get(feed)
            if source is not None:
                graph.edges.append(Edge(source, target, target_slot=slot))


def _words(data: bytes, message: pb.Field) -> dict[int, str]:
    """The string fields of a message by number."""
    return {
        one.number: pb.text(data, one)
        for one in pb.fields(data, message.value, message.end)
        if one.kind == pb.BYTES and one.number in (1, 2, 3, 4, 8)
    }


def phase_of(name: str) -> Phase:
    """By the full name of an operator."""
    if name.startswith("Gradients/"):
        return "backward"
    return "optimizer" if "/optimizer-" in name else "forward"
