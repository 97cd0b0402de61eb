"""What REST answers, made from a run directory: the same for a live run and for one that ended years ago.

Nothing here knows HTTP. A run is opened once and refreshed at most a few times a second; graphs travel by column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from misstep.core.address import ROLE_CODES, ROLES, Address
from misstep.core.conditions import CONDITIONS
from misstep.core.graph import Graph, scope_of
from misstep.core.payloads import (
    ConditionView,
    EdgeColumns,
    FoundNode,
    GraphColumns,
    HitList,
    Neighbour,
    NodeColumns,
    NodeInfo,
    ParameterView,
    ScalarSeries,
    ScopeColumns,
    SearchResult,
    SourceLine,
    SourceList,
    StatsHistory,
    StepTable,
    TensorBrief,
    TensorColumns,
)
from misstep.core.search import Surroundings, search, watches
from misstep.core.stats import DTYPE_NAMES, INPUTS_BAD, SUMMARY, TensorStats
from misstep.core.views import HitView, Number, hit_view, number, source_view, stats_view
from misstep.core.watch import Watchpoint
from misstep.errors import AddressError, nearest
from misstep.store.reader import Run

TAGS = ("loss", "learning_rate", "gradient_norm", "seconds", "loss_scale", "overhead")
SPARK = 64


def graph_columns(run: Run, rank: int) -> GraphColumns:
    """The graph of one rank, a list for each field."""
    return columns_of(run.graph(rank), run.name, rank)


def columns_of(graph: Graph, name: str, rank: int) -> GraphColumns:
    """Everything of a graph, wherever it comes from."""
    types, files, graphs, dtypes, shapes = _Numbers(), _Numbers(), _Numbers(), _Numbers(), _Numbers()
    scopes = _Scopes()
    nodes = graph.nodes
    return GraphColumns(
        run=name,
        rank=rank,
        rev=len(nodes) + len(graph.edges),
        nodes=NodeColumns(
            name=tuple(node.name for node in nodes),
            scope=tuple(scopes.number(node.scope) for node in nodes),
            kind=tuple(node.kind for node in nodes),
            phase=tuple(node.phase for node in nodes),
            type=tuple(types.number(node.type) for node in nodes),
            order=tuple(node.order for node in nodes),
            file=tuple(-1 if node.source is None else files.number(node.source.file) for node in nodes),
            line=tuple(0 if node.source is None else node.source.line for node in nodes),
            graph=tuple(graphs.number(node.graph) for node in nodes),
            forward=tuple(_index(graph, node.forward) for node in nodes),
        ),
        edges=EdgeColumns(
            source=tuple(edge.source for edge in graph.edges),
            target=tuple(edge.target for edge in graph.edges),
            source_slot=tuple(edge.source_slot for edge in graph.edges),
            target_slot=tuple(edge.target_slot for edge in graph.edges),
            dtype=tuple(dtypes.number(edge.dtype) for edge in graph.edges),
            shape=tuple(shapes.number(tuple(edge.shape)) for edge in graph.edges),
        ),
        tensors=TensorColumns(
            node=tuple(key.node for key in graph.tensors),
            role=tuple(ROLE_CODES[key.role] for key in graph.tensors),
            slot=tuple(key.slot for key in graph.tensors),
            call=tuple(key.call for key in graph.tensors),
        ),
        scopes=scopes.columns(),
        types=types.texts(),
        files=files.texts(),
        graphs=graphs.texts(),
        dtypes=dtypes.texts(),
        shapes=shapes.texts(),
        roles=ROLES,
    )


def scalars(run: Run, tag: str, rank: int, *, points: int) -> ScalarSeries:
    """A curve of the steps, thinned so that every bucket keeps its least and its greatest."""
    if tag not in TAGS:
        raise AddressError(f"no curve is called {tag!r}{nearest(tag, TAGS)}", address=tag)
    # Step 0 is what was there before training: it took no time, and a curve that begins at zero would hide the rest.
    all_steps = [step for step in run.steps(rank) if step.seconds or tag not in ("seconds", "overhead")]
    steps = [(step.number, getattr(step, tag)) for step in all_steps if getattr(step, tag) is not None]
    kept = _thinned(steps, points)
    return ScalarSeries(
        tag=tag,
        rank=rank,
        x=tuple(x for x, _ in kept),
        y=tuple(number(y) for _, y in kept),
        total=len(steps),
        method="all" if len(kept) == len(steps) else "min-max",
    )


def history(run: Run, address: str, *, first: int | None, last: int | None, points: int) -> StatsHistory:
    """The statistics of one tensor over the steps; thinned evenly when there are too many."""
    wanted = Address.parse(address)
    rows = run.history(Address(wanted.node, wanted.role, wanted.slot, None, wanted.rank, wanted.call))
    if first is not None:
        rows = rows[rows["step"] >= first]
    if last is not None:
        rows = rows[rows["step"] <= last]
    total = len(rows)
    if total > points:
        rows = rows[np.unique(np.linspace(0, total - 1, points).astype(int))]
    shapes = run.graph(wanted.rank).shapes
    shape = int(rows["shape"][-1]) if total else 0
    return StatsHistory(
        address=address,
        step=tuple(int(step) for step in rows["step"]),
        columns=_columns(rows),
        dtype=DTYPE_NAMES[int(rows["dtype"][-1])] if total else "unknown",
        shape=tuple(shapes[shape]) if shape < len(shapes) else (),
        total=total,
    )


def step_table(run: Run, step: int, rank: int) -> StepTable:
    """Every tensor of a step, in execution order."""
    graph, facts = run.graph(rank), run.step(step, rank)
    rows = run._ranks[rank].stats.of_step(step) if rank in run._ranks else np.zeros(0, SUMMARY)
    rows = rows[np.argsort(rows["order"], kind="stable")] if len(rows) else rows
    known = len(graph.shapes)
    return StepTable(
        run=run.name,
        rank=rank,
        step=step,
        tensor=tuple(int(value) for value in rows["tensor"]) if len(rows) else (),
        dtype=tuple(DTYPE_NAMES[int(value)] for value in rows["dtype"]) if len(rows) else (),
        shape=tuple(graph.shapes[int(at)] if at < known else () for at in rows["shape"]) if len(rows) else (),
        inputs_bad=tuple(bool(flags & INPUTS_BAD) for flags in rows["flags"]) if len(rows) else (),
        columns=_columns(rows),
        loss=number(facts.loss) if facts is not None else None,
        seconds=facts.seconds if facts is not None else 0.0,
    )


def hit_list(
    hits: Sequence[HitView],
    *,
    watchpoint: int | None,
    step: int | None,
    node: str,
    offset: int,
    limit: int,
    birth: str = "",
) -> HitList:
    """Hits narrowed down, in the order of step and execution."""
    chosen = [
        hit
        for hit in hits
        if (watchpoint is None or hit.watchpoint == watchpoint)
        and (step is None or hit.step == step)
        and birth in ("", hit.birth)
        and (not node or hit.node == node or hit.node.startswith((node + ".", node + "/")))
    ]
    chosen.sort(key=lambda hit: (hit.step, hit.rank, hit.order, hit.id))
    counts: dict[str, int] = {}
    for hit in hits:
        counts[str(hit.watchpoint)] = counts.get(str(hit.watchpoint), 0) + 1
    return HitList(
        hits=tuple(chosen[offset : offset + limit]),
        total=len(chosen),
        by_watchpoint=counts,
        origins=sum(hit.birth == "origin" for hit in chosen),
    )


def stored_hits(run: Run) -> list[HitView]:
    return [hit_view(hit) for hit in run.hits()]


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


def conditions(lang: str = "en") -> list[ConditionView]:
    """Everything a watchpoint can ask, for an editor."""
    return [
        ConditionView(
            name=condition.name,
            title=condition.name.replace("_", " "),
            help=condition.summary_zh if lang.startswith("zh") else condition.summary,
            category=condition.category,
            parameters=tuple(
                ParameterView(
                    parameter.name,
                    "flag" if parameter.kind == "switch" else "number",
                    parameter.default if isinstance(parameter.default, bool) else number(parameter.default),
                    bool(parameter.required),
                )
                for parameter in condition.parameters
                if not parameter.hidden
            ),
            needs=tuple(sorted(condition.needs)),
        )
        for condition in CONDITIONS.values()
    ]


def _brief(run: Run, rank: int, index: int, step: int) -> TensorBrief:
    address = run.graph(rank).address(index, step=step, rank=rank)
    rows = run._ranks[rank].stats.of_tensors(index)
    now = rows[rows["step"] == step]
    stats: TensorStats | None = run._ranks[rank].as_stats(now[-1]) if len(now) else None
    stored = run._ranks[rank].stored_tensor(address) is not None
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
    if last is not None and ("shape:" in query or "dtype:" in query) and rank in run._ranks:
        graph = run.graph(rank)
        for row in run._ranks[rank].stats.of_step(last.number):
            if row["tensor"] < len(graph.tensors) and row["shape"] < len(graph.shapes):
                node = graph.tensors[int(row["tensor"])].node
                shapes.setdefault(node, set()).add(graph.shapes[int(row["shape"])])
                dtypes.setdefault(node, set()).add(DTYPE_NAMES[int(row["dtype"])])
    return shapes, dtypes


def _columns(rows: Any) -> dict[str, tuple[Number, ...]]:
    out: dict[str, tuple[Number, ...]] = {}
    for name in SUMMARY.names or ():
        values = rows[name].tolist() if len(rows) else []
        out[name] = tuple(value if isinstance(value, int) else number(value) for value in values)  # type: ignore[misc]
    return out


def _thinned(points: list[tuple[int, Any]], most: int) -> list[tuple[int, Any]]:
    if len(points) <= most or most < 4:
        return points
    buckets = most // 2
    size = math.ceil(len(points) / buckets)
    kept: list[tuple[int, Any]] = []
    for start in range(0, len(points), size):
        bucket = points[start : start + size]
        bad = [point for point in bucket if not math.isfinite(point[1])]
        finite = [point for point in bucket if math.isfinite(point[1])] or bad
        chosen = {min(finite, key=lambda point: point[1]), max(finite, key=lambda point: point[1]), *bad[:1]}
        kept += sorted(chosen, key=lambda point: point[0])
    return kept


def _index(graph: Graph, name: str) -> int:
    node = graph.node(name) if name else None
    return -1 if node is None else node.index


class _Numbers:
    """Things by the order in which they were first met."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def number(self, thing: Any) -> int:
        return self._numbers.setdefault(thing, len(self._numbers))

    def texts(self) -> tuple[Any, ...]:
        return tuple(self._numbers)


class _Scopes:
    """Scopes by number, parents before children; scope 0 is the outermost."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}
        self._parents: list[int] = [-1]

    def number(self, name: str) -> int:
        if name not in self._numbers:
            parent = self.number(scope_of(name))
            self._numbers[name] = len(self._parents)
            self._parents.append(parent)
        return self._numbers[name]

    def columns(self) -> ScopeColumns:
        names = tuple(self._numbers)
        labels = tuple(name[len(scope_of(name)) :].lstrip("./") if name else "" for name in names)
        return ScopeColumns(tuple(self._parents), labels, names)
