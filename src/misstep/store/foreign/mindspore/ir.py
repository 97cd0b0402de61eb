"""Who feeds whom in a compiled MindSpore graph, and which parameters an operator writes in place, from its .ir text.

    %26(success) = ApplyMomentum(%para1_fc2.bias, %para8_moments.fc2.bias, %para9_learning_rate, %25, …)
        : (<Ref[Tensor[Float32]], (4), ref_key=fc2.bias, is_parameter, is_inplace>, …) -> (<Tensor[Float32], (4)>)
        # Fullname with scope: (Default/optimizer-Momentum/ApplyMomentum-op0)

Operators that compute nothing (Load, Depend, tuples) are looked through, so that an operator's feed is the operator or
parameter whose values it reads. MindSpore dumps an operator's inputs after it ran: those it writes in place hold the
new values by then, and must not be taken for what went in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

_CNODE = re.compile(r"^\s*(?:%(?P<number>\d+)\([^)]*\) = )?(?P<type>[A-Z][^\s(:]*)\((?P<arguments>.*)$")
"""The last one of a graph, Return, has no number."""
_SIGNATURE = re.compile(r"^\s*: \((?P<types><.*?)\) -> \((?P<made>.*)\)\s*$")
_SHAPE = re.compile(r"\(([\d, ]*)\)")
_FULL_NAME = re.compile(r"^\s*# Fullname with scope: \((.*)\)\s*$")
_PASS_ON = frozenset({"Load", "Depend", "Identity", "StopGradient"})
_ITEM = re.compile(r"I64\((\d{1,9})\)")
_MOST_RESULTS = 10_000
"""A tuple of tuples of tuples may name one node a million times."""
_DEEPEST = 64
_WRITES: dict[str, tuple[int, ...]] = {"BatchNorm": (3, 4), "BatchNormGrad": ()}
"""Every parameter that is handed over without a Load is marked in place; these only read some of theirs."""


@dataclass(frozen=True, slots=True)
class Feed:
    """What an input slot reads: output `slot` of an operator, or a parameter."""

    name: str
    slot: int = 0
    parameter: bool = False


@dataclass(slots=True)
class Wiring:
    """Feeds and in-place writes of every operator, by full name."""

    feeds: dict[str, tuple[Feed | None, ...]] = field(default_factory=dict)
    writes: dict[str, dict[int, str]] = field(default_factory=dict)
    """By operator, the input slots it writes in place and the parameters behind them."""
    results: list[Feed] = field(default_factory=list)
    """What the graph returns, tuples laid flat: a loss first, then gradients."""
    arguments: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By operator, its arguments as they are written: `%12`, `Bool(1)`."""
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """By operator, how many elements each of its outputs has, where that is known when it is compiled."""


@dataclass(slots=True)
class _CNode:
    type: str
    arguments: list[str]
    name: str = ""
    in_place: tuple[int, ...] = ()
    made: str | None = None


def read_wiring(path: str | Path) -> Wiring:
    """Of one .ir file; what cannot be read in it is left out."""
    wiring = Wiring()
    nodes: dict[str, _CNode] = {}
    current: _CNode | None = None
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("subgraph @"):
                _close(wiring, nodes)
                nodes, current = {}, None
                continue
            made = _CNODE.match(line)
            if made:
                current = nodes[made["number"] or "return"] = _CNode(
                    _plain(made["type"]), _arguments(made["arguments"])
                )
                continue
            if current is None:
                continue
            signature = _SIGNATURE.match(line) if current.made is None else None
            if signature:
                current.made = signature["made"]
                types = signature["types"].split(">, <")
                current.in_place = tuple(slot for slot, one in enumerate(types) if "is_inplace" in one)
            named = _FULL_NAME.match(line)
            if named:
                current.name = named[1]
    _close(wiring, nodes)
    return wiring


def _close(wiring: Wiring, nodes: dict[str, _CNode]) -> None:
    for node in nodes.values():
        if not node.name or node.type in _PASS_ON:
            continue
        if node.type == "Return":
            wiring.results = list(islice(_leaves(node.arguments[0], nodes), _MOST_RESULTS)) if node.arguments else []
            continue
        feeds = tuple(_feed(argument, nodes) for argument in node.arguments)
        wiring.feeds[node.name] = feeds
        wiring.arguments[node.name] = tuple(node.arguments)
        wiring.sizes[node.name] = _sizes(node.made or "")
        written = {
            slot: feed.name
            for slot in _WRITES.get(node.type, node.in_place)
            if slot < len(feeds)
            and (feed := feeds[slot]) is not None
            and feed.parameter
            # Behind a Load stands a copy of the value as it was; only the parameter itself is written.
            and node.arguments[slot].startswith("%para")
        }
        if written:
            wiring.writes[node.name] = written


def _feed(argument: str, nodes: dict[str, _CNode], slot: int = 0, depth: int = 0) -> Feed | None:
    if argument.startswith("%para"):
        return Feed(argument.partition("_")[2], parameter=True)
    if not argument.startswith("%") or depth > _DEEPEST:
        return None
    node = nodes.get(argument[1:])
    if node is None:
        return None
    if node.type == "TupleGetItem" and len(node.arguments) > 1 and (which := _ITEM.fullmatch(node.arguments[1])):
        return _feed(node.arguments[0], nodes, int(which[1]), depth + 1)
    if node.type == "MakeTuple":
        return _feed(node.arguments[slot], nodes, 0, depth + 1) if slot < len(node.arguments) else None
    if node.type in _PASS_ON and node.arguments:
        return _feed(node.arguments[0], nodes, slot, depth + 1)
    return Feed(node.name, slot) if node.name else None


def _leaves(argument: str, nodes: dict[str, _CNode], depth: int = 0) -> Iterator[Feed]:
    node = nodes.get(argument[1:]) if argument.startswith("%") else None
    if node is not None and node.type in ("MakeTuple", *_PASS_ON) and depth < _DEEPEST:
        for inner in node.arguments if node.type == "MakeTuple" else node.arguments[:1]:
            yield from _leaves(inner, nodes, depth + 1)
        return
    feed = _feed(argument, nodes)
    if feed is not None:
        yield feed


def _sizes(made: str) -> tuple[int, ...]:
    """`<Tuple[Tensor[Float32]*2], TupleShape((4, 8), ())>` is 32 elements and 1; nothing where a dimension is open."""
    if "-1" in made or "-2" in made:
        return ()
    shapes = [[size.strip() for size in found.split(",") if size.strip()] for found in _SHAPE.findall(made)]
    if not all(size.isdecimal() and len(size) < 20 for shape in shapes for size in shape):
        return ()
    return tuple(math.prod(map(int, shape)) for shape in shapes)


def _arguments(text: str) -> list[str]:
    """The arguments up to the parenthesis that closes the call; nested ones (a constant tuple) count as one."""
    found, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        if letter in "([{<":
            depth += 1
        elif letter in ")]}>":
            if depth == 0:
                found.append(text[start:place])
                break
            depth -= 1
        elif letter == "," and depth == 0:
            found.append(text[start:place])
            start = place + 1
    return [one.strip() for one in found if one.strip()]


def _plain(type: str) -> str:
    return type.removeprefix("PrimFunc_")
