"""The network as it really ran: places that compute, the scopes they live in, and the data that flows between them.

Nothing here is traced from a copy: nodes and edges are told by the adapter while a step runs. A node's name is its
scope path; operators stand below the module that ran them (`encoder.0/log`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from misstep.core.address import Address, Role

NodeKind = Literal["module", "operator", "parameter", "buffer", "loss", "optimizer", "input"]
Phase = Literal["input", "forward", "loss", "backward", "optimizer"]


@dataclass(frozen=True, slots=True)
class Source:
    """A line of the user's program."""

    file: str
    line: int
    code: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" `{self.code}`" if self.code else "")


@dataclass(frozen=True, slots=True)
class Node:
    """One place that computes."""

    index: int
    name: str
    kind: NodeKind
    type: str
    """`Linear`, `aten.log`, `Parameter` …"""
    phase: Phase = "forward"
    source: Source | None = None
    order: int = 0
    """Position at which it first ran in a step; 0 for what does not run."""
    graph: str = ""
    """Which of several networks it belongs to (generator, discriminator, a compiled region)."""
    forward: str = ""
    """For a backward node: the forward node whose derivative it computes."""
    settings: dict[str, str] = field(default_factory=dict)
    """How a module, an optimizer or a call was set up: eps, momentum, padding, a plain argument."""

    @property
    def scope(self) -> str:
        """The name of the enclosing scope; empty for the outermost."""
        return scope_of(self.name)


@dataclass(frozen=True, slots=True)
class TensorKey:
    """One tensor of the run at any step: its row in the tensor table."""

    node: int
    role: Role
    slot: int = 0
    call: int = 1


@dataclass(frozen=True, slots=True)
class Edge:
    """Data that flows from one node's output to another's input."""

    source: int
    target: int
    source_slot: int = 0
    target_slot: int = 0
    dtype: str = ""
    shape: tuple[int, ...] = ()


def scope_of(name: str) -> str:
    """`encoder.0/log` → `encoder.0` → `encoder` → ``."""
    cut = max(name.rfind("/"), name.rfind("."))
    return name[:cut] if cut > 0 else ""


@dataclass(slots=True)
class Graph:
    """Nodes by index and by name, tensors by index, edges."""

    nodes: list[Node] = field(default_factory=list)
    tensors: list[TensorKey] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    _by_name: dict[str, int] = field(default_factory=dict)

    def add_node(self, node: Node) -> None:
        """Nodes arrive in the order of their index; a repeated index replaces: it learnt its name or source line."""
        if node.index < len(self.nodes):
            if self._by_name.get(self.nodes[node.index].name) == node.index:
                del self._by_name[self.nodes[node.index].name]
            self.nodes[node.index] = node
        else:
            self.nodes.append(node)
        self._by_name[node.name] = node.index

    def node(self, name: str) -> Node | None:
        index = self._by_name.get(name)
        return None if index is None else self.nodes[index]

    def names(self) -> Iterable[str]:
        return self._by_name.keys()

    def address(self, tensor: int, *, step: int | None = None, rank: int | None = None) -> Address:
        key = self.tensors[tensor]
        return Address(self.nodes[key.node].name, key.role, key.slot, step, rank, key.call)

    def children(self, scope: str) -> Iterator[Node]:
        """Nodes directly inside a scope, in execution order."""
        inside = [node for node in self.nodes if node.scope == scope and node.name != scope]
        yield from sorted(inside, key=lambda node: node.order)

    def producers(self, node: int) -> list[Edge]:
        return [edge for edge in self.edges if edge.target == node]

    def consumers(self, node: int) -> list[Edge]:
        return [edge for edge in self.edges if edge.source == node]
