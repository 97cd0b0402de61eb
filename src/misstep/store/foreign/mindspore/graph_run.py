"""A graph that MindSpore wrote (.ir, .pb, or a folder of them) as a run without steps, which every command shows.

24_execute_0140.ir              operators by full name with their lines, parameters, who feeds whom
ms_output_optimize.pb           the same without lines (anf_ir.ModelProto)
MS_DEV_SAVE_GRAPHS_PATH         the last graph of the folder that names its operators: what is run in the end
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

from misstep.core.graph import Edge, Graph, Node, NodeKind, Phase
from misstep.core.run import RunInfo
from misstep.errors import FormatError
from misstep.store.foreign.mindspore.graph import phase_of, read_ir, read_pb
from misstep.store.foreign.mindspore.ir import read_wiring
from misstep.store.writing.writer import RunWriter

GRAPH = "graph"
"""Among the settings of such a run: the file its graph was read from."""
_SUFFIXES = (".ir", ".pb")
_MOST_TRIED = 20


def looks_like_graph(path: Path) -> bool:
    """True for a graph file, and for a folder of MS_DEV_SAVE_GRAPHS."""
    if path.is_file():
        return path.suffix in _SUFFIXES
    return path.is_dir() and any(file.suffix in _SUFFIXES for file in path.iterdir())


def graph_run(path: str | Path) -> Path:
    """The run directory made of a graph file or a folder of them.

    >>> open_run(graph_run("graphs/24_execute_0140.ir")).graph().node("fc1.weight").kind
    'parameter'
    """
    where = Path(path)
    file, graph = _last_graph(where) if where.is_dir() else (where, read_graph(where))
    home = Path(tempfile.mkdtemp(prefix="misstep-graph-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    info = RunInfo(
        name=where.name,
        command=(),
        started=file.stat().st_mtime,
        directory=str(where.parent),
        versions={"mindspore": "graph"},
        settings={GRAPH: str(file)},
    )
    writer = RunWriter(home / where.name, 0, info)
    for node in graph.nodes:
        writer.add_node(node)
    for edge in graph.edges:
        writer.add_edge(edge)
    writer.end("finished")
    return home / where.name


def read_graph(path: Path) -> Graph:
    """Operators, parameters and edges of one file."""
    if path.name == "analyze_fail.ir":
        raise FormatError(
            f"{path} is of a network that did not compile, and its operators have no names yet; the node and your line:"
            "  misstep run python train.py",
            path=str(path),
        )
    graph = read_pb(path) if path.suffix == ".pb" else _from_ir(path)
    if not any(node.kind != "parameter" for node in graph.nodes):
        raise FormatError(
            f"{path} names no operator: it was written before MindSpore names them, or is no graph; open a later one,"
            " like NN_validate or NN_execute",
            path=str(path),
        )
    return graph


def _from_ir(path: Path) -> Graph:
    text, wiring, graph = read_ir(path), read_wiring(path), Graph()
    index: dict[str, int] = {}

    def add(name: str, *, parameter: bool) -> int:
        if name not in index:
            index[name] = number = len(graph.nodes)
            kind: NodeKind = "parameter" if parameter else "optimizer" if "/optimizer-" in name else "operator"
            type = "Parameter" if parameter else name.rpartition("/")[2].partition("-op")[0]
            phase: Phase = "input" if parameter else phase_of(name)
            graph.add_node(Node(number, name, kind, type, phase=phase, source=text.sources.get(name)))
        return index[name]

    for name in text.parameters:
        add(name, parameter=True)
    for name, feeds in wiring.feeds.items():
        target = add(name, parameter=False)
        for slot, feed in enumerate(feeds):
            if feed is not None:
                source = add(feed.name, parameter=feed.parameter)
                graph.edges.append(Edge(source, target, feed.slot, slot))
    return graph


def _last_graph(folder: Path) -> tuple[Path, Graph]:
    """What is run in the end, where MindSpore came so far; else the newest file that names its operators."""
    files = [file for file in folder.iterdir() if file.suffix in _SUFFIXES]
    newest = sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.name), reverse=True)
    for file in sorted(newest, key=lambda file: "_execute_" not in file.name)[:_MOST_TRIED]:
        try:
            return file, read_graph(file)
        except FormatError:
            continue
    raise FormatError(f"no .ir or .pb file in {folder} names its operators", path=str(folder))
