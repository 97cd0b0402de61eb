r"""The search box: words that narrow a graph down to the nodes meant, all of which must fit.

attn softmax               both words in the name, capitals ignored
/layers\.[0-3]\./          a regular expression on the name
op:Softmax type:Linear     the operator's or module's type
dtype:float16 shape:8,12   a tensor of the node has it; * in a shape is any size, ... any axes
file:train.py:87           its source line
watched: hit: hit:2        under a watchpoint, with hits (of watchpoint 2)
category:gradient phase:backward kind:operator graph:generator
-op:Add                    a minus turns any of them round
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from misstep.core.address import ROLES_OF_CATEGORY, Pattern
from misstep.core.graph import Graph, Node
from misstep.core.watching.watch import Watchpoint
from misstep.errors import AddressError, nearest

Question = Callable[[Node], bool]
KEYS = ("op", "type", "dtype", "shape", "file", "watched", "hit", "category", "phase", "kind", "graph", "scope", "name")
_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a search may know besides the graph itself, by node number or name."""

    shapes: Mapping[int, set[tuple[int, ...]]] = field(default_factory=dict)
    dtypes: Mapping[int, set[str]] = field(default_factory=dict)
    watchpoints: tuple[Watchpoint, ...] = ()
    hits: Mapping[str, set[int]] = field(default_factory=dict)
    """Node name → the watchpoints that hit there."""


def search(graph: Graph, query: str, around: Surroundings | None = None) -> list[Node]:
    """The nodes that fit every word of the query, in execution order.

    >>> search(graph, "op:Softmax hit:")
    """
    questions = list(_questions(query, graph, around or Surroundings()))
    found = [node for node in graph.nodes if all(question(node) for question in questions)]
    return sorted(found, key=lambda node: node.order or len(graph.nodes) + node.index)


def _questions(query: str, graph: Graph, around: Surroundings) -> Iterable[Question]:
    if len(query) > _LONGEST:
        raise AddressError(f"the search has {len(query)} characters; {_LONGEST} are the most")
    for word in _words(query):
        inverted = word.startswith("-") and len(word) > 1
        bare = word[1:] if inverted else word
        question = _question(bare, graph, around)
        yield _not(question) if inverted else question


def _not(question: Question) -> Question:
    return lambda node: not question(node)


def _words(query: str) -> list[str]:
    """Split at spaces, but not inside quotes or a /regular expression/."""
    pieces = re.findall(r"-?/(?:\\.|[^/\\])*/|\S*\"[^\"]*\"\S*|\S+", query)
    return [piece if piece.lstrip("-").startswith("/") else "".join(_unquoted(piece)) for piece in pieces]


def _unquoted(piece: str) -> list[str]:
    try:
        return shlex.split(piece)
    except ValueError:
        return [piece]


def _question(word: str, graph: Graph, around: Surroundings) -> Question:
    if len(word) > 1 and word.startswith("/") and word.endswith("/"):
        pattern = _expression(word[1:-1])
        return lambda node: pattern.search(node.name) is not None
    key, colon, value = word.partition(":")
    if not colon or "/" in key or "." in key:
        return _by_name(word)
    if key not in KEYS:
        raise AddressError(f"cannot search by {key!r}{nearest(key, KEYS)}", address=word)
    return _BY_KEY[key](value, graph, around)


def _by_name(value: str) -> Question:
    low = value.lower()
    if any(mark in value for mark in "*?["):
        pattern = Pattern(node=value)
        return lambda node: pattern.matches_node(node.name)
    return lambda node: low in node.name.lower()


def _by_type(value: str, graph: Graph, around: Surroundings) -> Question:
    low = value.lower()
    if any(mark in low for mark in "*?["):
        return lambda node: fnmatchcase(node.type.lower(), low)
    return lambda node: low in node.type.lower()


def _by_op(value: str, graph: Graph, around: Surroundings) -> Question:
    of_type = _by_type(value, graph, around)
    return lambda node: node.kind in ("operator", "module", "optimizer", "loss") and of_type(node)


def _by_dtype(value: str, graph: Graph, around: Surroundings) -> Question:
    low = value.lower()
    low = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i64": "int64"}.get(low, low)
    known = _edge_facts(graph, lambda edge: edge.dtype)
    return lambda node: low in around.dtypes.get(node.index, set()) or low in known.get(node.index, set())


def _by_shape(value: str, graph: Graph, around: Surroundings) -> Question:
    pattern = _shape_pattern(value)
    known = _edge_facts(graph, lambda edge: ",".join(map(str, edge.shape)))

    def fits(node: Node) -> bool:
        own = (",".join(map(str, shape)) for shape in around.shapes.get(node.index, ()))
        return any(pattern.fullmatch(text) for text in (*own, *known.get(node.index, ())))

    return fits


def _by_file(value: str, graph: Graph, around: Surroundings) -> Question:
    path, _, line = value.rpartition(":") if re.search(r":\d+$", value) else (value, "", "")
    return lambda node: (
        node.source is not None and path in node.source.file and (not line or node.source.line == int(line))
    )


def _by_watched(value: str, graph: Graph, around: Surroundings) -> Question:
    wanted = [point for point in around.watchpoints if point.enabled and (not value or str(point.id) == value)]
    return lambda node: any(watches(point, node.name) for point in wanted)


def watches(point: Watchpoint, node: str) -> bool:
    """Whether a watchpoint looks at some tensor of this node."""
    if point.nodes:
        return node in point.nodes
    return not point.on or any(pattern.matches_node(node) for pattern in point.on)


def _by_hit(value: str, graph: Graph, around: Surroundings) -> Question:
    if value and not value.isdecimal():
        raise AddressError(f"hit: takes the number of a watchpoint, not {value!r}; try hit: or hit:2", address=value)
    return lambda node: bool(around.hits.get(node.name)) and (not value or int(value) in around.hits[node.name])


def _by_category(value: str, graph: Graph, around: Surroundings) -> Question:
    categories = {str(category): roles for category, roles in ROLES_OF_CATEGORY.items()}
    if value not in categories:
        raise AddressError(f"no category is called {value!r}{nearest(value, categories)}", address=value)
    having = {key.node for key in graph.tensors if key.role in categories[value]}
    return lambda node: node.index in having


def _by_attribute(attribute: str) -> Callable[[str, Graph, Surroundings], Question]:
    def make(value: str, graph: Graph, around: Surroundings) -> Question:
        return lambda node: str(getattr(node, attribute)) == value

    return make


def _by_scope(value: str, graph: Graph, around: Surroundings) -> Question:
    inside = (value + ".", value + "/")
    return lambda node: node.name == value or node.name.startswith(inside)


_BY_KEY: dict[str, Callable[[str, Graph, Surroundings], Question]] = {
    "op": _by_op,
    "type": _by_type,
    "dtype": _by_dtype,
    "shape": _by_shape,
    "file": _by_file,
    "watched": _by_watched,
    "hit": _by_hit,
    "category": _by_category,
    "phase": _by_attribute("phase"),
    "kind": _by_attribute("kind"),
    "graph": _by_attribute("graph"),
    "scope": _by_scope,
    "name": lambda value, graph, around: _by_name(value),
}


def _edge_facts(graph: Graph, fact: Callable[..., str]) -> dict[int, set[str]]:
    known: dict[int, set[str]] = {}
    for edge in graph.edges:
        for node in (edge.source, edge.target):
            known.setdefault(node, set()).add(fact(edge))
    return known


def _shape_pattern(value: str) -> re.Pattern[str]:
    inside = value.strip("[]() ")
    if not re.fullmatch(r"(\d+|\*|\.\.\.)([,x ]+(\d+|\*|\.\.\.))*", inside):
        raise AddressError(
            f"cannot read the shape {value!r}; it looks like shape:8,12,* or shape:...,512", address=value
        )
    parts = re.split(r"[,x ]+", inside)
    text = ",".join({"*": r"\d+", "...": r".*"}.get(part, part) for part in parts)
    return re.compile(text.replace(",.*", ",?.*").replace(".*,", ".*,?"))


def _expression(text: str) -> re.Pattern[str]:
    # A pattern that backtracks for ever would hang the hub: repeats of repeats are not taken.
    if len(text) > 200 or re.search(r"[*+}]\)?[*+{]|\([^)]*[*+|][^)]*\)[*+{]", text):
        raise AddressError(f"the regular expression /{text[:60]}/ is too long or nests repeats; make it simpler")
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise AddressError(f"cannot read the regular expression /{text}/: {error}") from None
