"""Nodes of a run: one with its tensors and neighbours, those a search finds, and the source lines that made them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from misstep.core.graph import Graph
from misstep.core.search import Surroundings, search, watches
from misstep.core.stats import DTYPE_NAMES
from misstep.core.watching.watch import Watchpoint
from misstep.errors import AddressError, nearest
from misstep.protocol.payloads import FoundNode, Neighbour, NodeInfo, SearchResult, SourceLine, SourceList, TensorBrief
from misstep.protocol.views import HitView, number, source_view, stats_view
from misstep.store.reading.reader import Run

SPARK = 64


def node_info(run: Run, name: str, rank: int, step: int | None, *, hits: Iterable[HitView] = ()) -> NodeInfo:
    """A node with its tensors, neighbours and source line."""
    graph = run.graph(rank)
    node = graph.node(name)
    if node is None:
        raise AddressError(f"no node {name!r} in {run.name}{nearest(name, graph.names())}", address=name)
    last = run.last_step
    at = step if step is not None else (last.number if last is not None else 0)
    tensors = [(index, key) for index, key in enumerate(graph.tensors) if key.node == node.index]
    on_line = [
        other.name
        for other in graph.nodes
        if node.source is not None
        and other.source is not None
        and (other.source.file, other.source.line) == (node.source.file, node.source.line)
        and other is not node
    ]
    return NodeInfo(
        name=node.name,
        type=node.type,
        kind=node.kind,
        phase=node.phase,
        scope=node.scope,
        order=node.order,
        graph=node.graph,
        forward=node.forward,
        backward=tuple(other.name for other in graph.nodes if other.forward == name),
        source=source_view(node.source),
        tensors=tuple(_brief(run, rank, index, at) for index, _ in tensors),
        producers=tuple(_neighbours(graph, graph.producers(node.index), "source")),
        consumers=tuple(_neighbours(graph, graph.consumers(node.index), "target")),
        children=sum(other.scope == name for other in graph.nodes),
        watched_by=tuple(watch.id for watch in run.watchpoints if watch.enabled and watches(watch, name)),
        hits=tuple(hit.id for hit in hits if hit.node == name),
        same_line=tuple(on_line[:100]),
    )


def search_nodes(
    run: Run, query: str, rank: int, *, limit: int, offset: int, hits: Iterable[HitView], watch: Sequence[Watchpoint]
) -> SearchResult:
    """The search language over the graph of one rank."""
    graph = run.graph(rank)
    by_node: dict[str, set[int]] = {}
    counts: dict[str, int] = {}
    for hit in hits:
        by_node.setdefault(hit.node, set()).add(hit.watchpoint)
        counts[hit.node] = counts.get(hit.node, 0) + 1
    around = Surroundings(*_shapes_and_dtypes(run, rank, query), watchpoints=tuple(watch), hits=by_node)
    found = search(graph, query, around)
    return SearchResult(
        query=query,
        total=len(found),
        nodes=tuple(
            FoundNode(
                node.name,
                node.type,
                node.kind,
                node.order,
                node.index,
                counts.get(node.name, 0),
                any(watches(one, node.name) for one in watch if one.enabled),
                source_view(node.source),
            )
            for node in found[offset : offset + limit]
        ),
    )


def source_list(run: Run, rank: int, *, limit: int, offset: int) -> SourceList:
    """Source lines with the nodes they made, by file and line."""
    lines: dict[tuple[str, int], tuple[str, list[str]]] = {}
    for node in run.graph(rank).nodes:
        if node.source is not None:
            key = (node.source.file, node.source.line)
            lines.setdefault(key, (node.source.code, []))[1].append(node.name)
    ordered = sorted(lines.items())
    return SourceList(
        lines=tuple(
            SourceLine(file, line, code, tuple(names[:50]), len(names))
            for (file, line), (code, names) in ordered[offset : offset + limit]
        ),
        total=len(ordered),
    )


def _brief(run: Run, rank: int, index: int, step: int) -> TensorBrief:
    address = run.graph(rank).address(index, step=step, rank=rank)
    kept = run.rank(rank)
    assert kept is not None, f"{run.name} has no rank {rank}"
    rows = kept.stats.of_tensors(index)
    now = rows[rows["step"] == step]
    stats = kept.as_stats(now[-1]) if len(now) else None
    stored = kept.stored_tensor(address) is not None
    return TensorBrief(
        address=str(address),
        role=address.role,
        slot=address.slot,
        call=address.call,
        stats=None if stats is None else stats_view(stats),
        available=stored,
        reason="" if stored else "not_captured",
        spark=tuple(number(float(row["abs_mean"])) for row in rows[-SPARK:]),
    )


def _neighbours(graph: Graph, edges: Iterable[Any], side: str) -> Iterable[Neighbour]:
    for edge in edges:
        other = graph.nodes[getattr(edge, side)]
        yield Neighbour(other.name, getattr(edge, f"{side}_slot"), edge.dtype, tuple(edge.shape))


def _shapes_and_dtypes(run: Run, rank: int, query: str) -> tuple[dict[int, Any], dict[int, Any]]:
    """What the last step showed of every node; read only when the query asks."""
    shapes: dict[int, set[tuple[int, ...]]] = {}
    dtypes: dict[int, set[str]] = {}
    last = run.last_step
    if last is not None and ("shape:" in query or "dtype:" in query):
        graph = run.graph(rank)
        for row in run.rows(last.number, rank):
            if row["tensor"] < len(graph.tensors) and row["shape"] < len(graph.shapes):
                node = graph.tensors[int(row["tensor"])].node
                shapes.setdefault(node, set()).add(graph.shapes[int(row["shape"])])
                dtypes.setdefault(node, set()).add(DTYPE_NAMES[int(row["dtype"])])
    return shapes, dtypes
