"""A graph as the page gets it: by column, every name and shape once."""

from __future__ import annotations

from typing import Any

from misstep.core.address import ROLE_CODES, ROLES
from misstep.core.graph import Graph, scope_of
from misstep.protocol.payloads import EdgeColumns, GraphColumns, NodeColumns, ScopeColumns, TensorColumns
from misstep.store.reading.reader import Run


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
