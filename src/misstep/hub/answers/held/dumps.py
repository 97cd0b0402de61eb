"""The dump browser's answers: what was kept of a step, found by the search language, with statistics.

One code for our own runs and for the folders of others: both are a source of tensors. Statistics of our own come from
the rows of the run; others are measured, a page of the table at a time, and kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from misstep.compare.offline import offline
from misstep.core.graph import Graph, Node, Source
from misstep.core.search import Surroundings, search
from misstep.core.stats import TensorStats
from misstep.core.watching.watch import Hit
from misstep.hub.answers.held.things import Opened, bytes_of
from misstep.hub.jobs import Progress
from misstep.protocol.payloads import HitList
from misstep.protocol.things import CheckAsk, DumpRow, DumpTable
from misstep.protocol.views import hit_view, stats_view
from misstep.store.foreign.mindspore.dump import MindSporeDump
from misstep.store.foreign.source import Entry
from misstep.store.reading.reader import Run

MOST_ROWS = 500
MOST_HITS = 2000
_BACKWARD = ("grad", "grad_input", "grad_output")


def dump_table(
    opened: Opened, run: Run | None, *, step: int | None, rank: int | None, query: str, offset: int, limit: int
) -> DumpTable:
    """One step of one rank; the first training step when none is said."""
    moments = opened.moments()
    of_rank = [one for one in moments if rank is None or one.rank == rank] or moments
    chosen = next((one for one in of_rank if one.step == step), None)
    chosen = chosen or next((one for one in of_rank if one.step), of_rank[0] if of_rank else None)
    at, place = (chosen.step, chosen.rank) if chosen is not None else (None, rank or 0)
    entries = [one for one in opened.source.entries() if one.step == at and (one.rank or 0) == place]
    known = _recorded(run, at, place) if run is not None else {}
    fitting = _search(entries, query, run)
    shown = fitting[offset : offset + min(limit, MOST_ROWS)]
    asked, dropped, names = _journal(run)
    return DumpTable(
        of=opened.found.name,
        kind=opened.found.kind,
        format=opened.found.format,
        moments=tuple(moments),
        step=at,
        rank=place,
        query=query,
        total=len(fitting),
        offset=offset,
        rows=tuple(_row(opened, entry, known) for entry in shown),
        asked=asked,
        dropped=dropped,
        dropped_names=names,
    )


def graph_of(opened: Opened, run: Run | None, rank: int) -> Graph:
    """The graph of a thing: its own, that of the dump, or the names of its tensors as places without lines."""
    if run is not None:
        return run.graph(rank)
    own = opened.source.graph if isinstance(opened.source, MindSporeDump) else None
    return own if own is not None and own.nodes else _places(opened.source.entries(), {})


def check(opened: Opened, run: Run | None, asked: CheckAsk, progress: Progress) -> list[Hit]:
    """The hits of some watchpoints over a thing, in the order of time."""
    dump = offline(run if run is not None else opened.source)
    steps = None
    if asked.first is not None or asked.last is not None:
        first, last = asked.first or 0, asked.last
        steps = [step for step in dump.iterations() if step >= first and (last is None or step <= last)]
    return dump.check(*asked.watch, steps=steps, rank=asked.rank, progress=progress)


def hits_found(hits: Sequence[Hit]) -> HitList:
    """As the hits of a live run are told, counted by condition."""
    return HitList(
        hits=tuple(hit_view(hit) for hit in hits[:MOST_HITS]),
        total=len(hits),
        by_watchpoint=dict(Counter(hit.condition for hit in hits)),
        origins=sum(hit.birth == "origin" for hit in hits),
    )


def _row(opened: Opened, entry: Entry, known: Mapping[str, TensorStats]) -> DumpRow:
    address = str(entry.address)
    stats = known.get(address) or opened.stats(entry)
    return DumpRow(
        address=address,
        node=entry.name,
        role=entry.role,
        slot=entry.slot,
        call=entry.call,
        type=entry.node_type,
        dtype=entry.dtype or (stats.dtype if stats is not None else ""),
        shape=entry.shape,
        bytes=bytes_of(entry),
        order=entry.order,
        source=entry.source_line,
        stats=None if stats is None else stats_view(stats),
    )


def _recorded(run: Run, step: int | None, rank: int) -> dict[str, TensorStats]:
    if step is None or rank not in run.ranks:
        return {}
    return {str(address.at(step=step, rank=rank)): stats for address, stats in run.step_rows(step, rank)}


def _search(entries: list[Entry], query: str, run: Run | None) -> list[Entry]:
    if not query.strip():
        return entries
    nodes = {node.name: node for node in run.graph(entries[0].rank or 0).nodes} if run is not None and entries else {}
    graph = _places(entries, nodes)
    shapes: dict[int, set[tuple[int, ...]]] = {}
    dtypes: dict[int, set[str]] = {}
    for entry in entries:
        node = graph.node(entry.name)
        assert node is not None
        shapes.setdefault(node.index, set()).add(entry.shape)
        dtypes.setdefault(node.index, set()).add(entry.dtype)
    hits: dict[str, set[int]] = {}
    for hit in run.hits() if run is not None else ():
        hits.setdefault(hit.address.node, set()).add(hit.watchpoint)
    watch = tuple(run.watchpoints) if run is not None else ()
    found = search(graph, query, Surroundings(shapes, dtypes, watch, hits))
    names = {node.name for node in found}
    return [entry for entry in entries if entry.name in names]


def _places(entries: Iterable[Entry], known: Mapping[str, Node]) -> Graph:
    """A node for each name among the tensors, as the run knows it or as far as the entry tells."""
    graph = Graph()
    for entry in entries:
        if graph.node(entry.name) is not None:
            continue
        index = len(graph.nodes)
        node = known.get(entry.name)
        graph.add_node(replace(node, index=index) if node is not None else _place(entry, index))
    return graph


def _place(entry: Entry, index: int) -> Node:
    file, _, line = entry.source_line.split(" `")[0].rpartition(":")
    return Node(
        index,
        entry.name,
        "parameter" if entry.role == "param" else "buffer" if entry.role == "buffer" else "operator",
        entry.node_type,
        phase="backward" if entry.role in _BACKWARD and "/" in entry.name else "forward",
        source=Source(file, int(line)) if file and line.isdecimal() else None,
        order=index + 1,
    )


def _journal(run: Run | None) -> tuple[tuple[str, ...], int, tuple[str, ...]]:
    """What was asked to be kept, how many tensors could not be, and the names of the first of them."""
    if run is None:
        return (), 0, ()
    asked = dict.fromkeys(str(event.facts.get("text", "")) for event in run.events("dump"))
    names = [str(name) for event in run.events("lost") for name in event.facts.get("tensors", ())]
    return tuple(text for text in asked if text), run.lost.get("tensor", 0), tuple(names[:200])
