"""Is a compiled graph computed right? Every operator of it, checked by itself against the uncompiled one and float64.

    the graph, compiled once more so that each value comes out      c₁ = relu(c₀), c₂ = log1p(c₁), …
    each operator again, uncompiled, on the compiled inputs         e₂ = log1p(c₁)
    and in float64                                                  r₂ = log1p(double(c₁))

An operator is given what compiled code gave it, so errors never accumulate: the compiler is wrong where c₂ is further
from r₂ than rounding explains, which e₂ shows, and nowhere else. Values that are drawn at random are taken as they are.
To have each value come out changes what is fused; a graph whose own results are off although every operator is right
is compiled piece by piece, up to the first value that is off.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

Backend = Callable[[fx.GraphModule, list[Any]], Callable[..., Any]]
Measured = Callable[[Callable[..., Any], Sequence[Any]], list[Any]]
"""What is compared of a graph when it is run: its values, or its gradients."""

_ROUNDINGS = 64.0
"""Compiled code may be this many roundings of its type away from float64 …"""
_ROUNDINGS_OF_ALL = 1024.0
"""… a whole graph, where roundings add up, this many …"""
_TIMES_EAGER = 16.0
"""… or this many times as far as uncompiled code is: other orders of summation, fused multiply-adds, fast formulas."""
_UNSTABLE = 1e-3
"""Relative error of uncompiled float32 code from which the formula is to blame, whoever computes it."""
_RANDOM = ("dropout", "rand", "bernoulli", "multinomial", "normal_", "uniform_", "exponential_")


@dataclass(frozen=True, slots=True)
class Judged:
    """How far the compiled and the uncompiled result of an operator are from float64, relative to the largest value."""

    name: str
    operator: str
    compiled: float
    eager: float
    allowed: float
    node: fx.Node

    @property
    def wrong(self) -> bool:
        return self.compiled > self.allowed

    @property
    def unstable(self) -> bool:
        return self.eager > _UNSTABLE


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one graph."""

    compared: int
    random: int
    worst: Judged | None
    """The first operator that is wrong; the one that comes closest when none is."""
    backward: bool = False
    """Its value is right, its gradient is not."""


def check(graph: fx.GraphModule, inputs: Sequence[Any], backend: Backend) -> Outcome:
    """Every operator of a graph that Dynamo captured, forward and backward, with the inputs of one call."""
    kept = [node for node in graph.graph.nodes if _is_value(node)]
    # Only what is compiled here: both sides draw the same random numbers then, as they do not in training.
    with torch.random.fork_rng(), torch._inductor.config.patch(fallback_random=True):
        with torch.no_grad():
            apart = _compiled_values(graph, kept, inputs, backend)
            judged = list(_judged(graph, inputs, apart))
            wrong = next((one for one in judged if one.wrong), None)
            wrong = wrong or _first_off(graph, kept, inputs, backend, values)
        backward = None if wrong else _first_off(graph, kept, inputs, backend, gradients)
    closest = max(judged, key=lambda one: one.compiled / one.allowed, default=None)
    return Outcome(len(judged), sum(map(is_random, kept)), wrong or backward or closest, backward is not None)


# ── each operator by itself ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Values:
    """What compiled code made of every node, and what each was given where values are written to in between."""

    made: dict[fx.Node, Any]
    given: dict[fx.Node, dict[fx.Node, Any]]


def _compiled_values(graph: fx.GraphModule, kept: list[fx.Node], inputs: Sequence[Any], backend: Backend) -> Values:
    """Each value is copied at the place where it is made, or used: it may be written to later."""
    all_out = fx.GraphModule(graph, fx.Graph())
    new = all_out.graph
    copies: list[tuple[fx.Node, fx.Node | None, fx.Node]] = []
    writes = any(map(_writes, graph.graph.nodes))
    renamed: dict[fx.Node, fx.Node] = {}
    for node in graph.graph.nodes:
        if node.op == "output":
            continue
        if writes and node in kept:
            copies += [
                (node, one, new.call_function(torch.clone, (renamed[one],)))
                for one in filter(_is_tensor, node.all_input_nodes)
            ]
        renamed[node] = new.node_copy(node, lambda old: renamed[old])
        if node in kept:
            copies.append((node, None, new.call_function(torch.clone, (renamed[node],))))
    new.output(tuple(copy for _, _, copy in copies))
    all_out.recompile()
    torch.manual_seed(0)
    found = Values({}, {node: {} for node in kept})
    for (node, one, _), value in zip(copies, _results(backend(all_out, copied(inputs)), copied(inputs))):
        if one is None:
            found.made[node] = value
        else:
            found.given[node][one] = value
    return found


def _judged(graph: fx.GraphModule, inputs: Sequence[Any], compiled: Values) -> Iterator[Judged]:
    walk = fx.Interpreter(graph)
    arguments = iter(inputs)
    known: dict[fx.Node, Any] = {}
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            known[node] = next(arguments)
        elif node.op == "get_attr":
            known[node] = walk.fetch_attr(str(node.target))
        elif node.op != "output":
            given = {**known, **compiled.given.get(node, {})}
            eager = _apply(walk, node, given, double=False)
            value = known[node] = compiled.made.get(node, eager)
            if node in compiled.made and not is_random(node):
                yield _judge(node, value, eager, _apply(walk, node, given, double=True))


def _apply(walk: fx.Interpreter, node: fx.Node, known: dict[fx.Node, Any], *, double: bool) -> Any:
    """One operator, uncompiled, on copies: it may write to what it is given."""

    def given(one: fx.Node) -> Any:
        return _map(known[one], lambda tensor: _doubled(tensor) if double else tensor.detach().clone())

    args, kwargs = fx.map_arg((node.args, node.kwargs), given)
    if double:
        args, kwargs = _wide(args, kwargs)
    torch.manual_seed(0)
    return getattr(walk, node.op)(node.target, args, kwargs)


def _judge(node: fx.Node, compiled: Any, eager: Any, exact: Any, *, roundings: float = _ROUNDINGS) -> Judged:
    unit = torch.finfo(compiled.dtype).eps
    if not isinstance(exact, torch.Tensor) or exact.shape != eager.shape:
        exact = eager
    far_eager = _distance(eager, exact)
    return Judged(
        name=node.name,
        operator=_operator(node),
        compiled=_distance(compiled, exact),
        eager=far_eager,
        allowed=max(roundings * unit, _TIMES_EAGER * far_eager),
        node=node,
    )


# ── the graph as it is fused, and its gradients ──────────────────────────────────────────────────────────────────────


def _first_off(
    graph: fx.GraphModule, kept: list[fx.Node], inputs: Sequence[Any], backend: Backend, measured: Measured
) -> Judged | None:
    """The first value whose piece of the graph, compiled up to it, is off; None while the whole graph is right."""
    if not kept or not _off(graph, kept[-1], inputs, backend, measured).wrong:
        return None
    low, high = 0, len(kept) - 1
    found: Judged | None = None
    while low <= high:
        middle = (low + high) // 2
        judged = _off(_up_to(graph, kept[middle]), kept[middle], inputs, backend, measured)
        if judged.wrong:
            found, high = judged, middle - 1
        else:
            low = middle + 1
    return found


def _off(piece: fx.GraphModule, last: fx.Node, inputs: Sequence[Any], backend: Backend, measured: Measured) -> Judged:
    """How far what is measured of a piece is from uncompiled code, errors of everything before included."""
    compiled = measured(backend(piece, copied(inputs)), copied(inputs))
    eager = measured(piece, copied(inputs))
    random = any(is_random(node) for node in piece.graph.nodes)
    exact = eager if random else measured(_Double(piece).run, [_map(one, _doubled) for one in inputs])
    pairs = [one for one in zip(compiled, eager, exact) if all(part is not None for part in one)]
    judged = [_judge(last, *one, roundings=_ROUNDINGS_OF_ALL) for one in pairs]
    return max(judged, key=lambda one: one.compiled / one.allowed, default=Judged(last.name, "", 0.0, 0.0, 1.0, last))


def values(function: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
    """The results that are floating point numbers."""
    torch.manual_seed(0)
    return [one for one in _results(function, inputs) if _floating(one)]


def gradients(function: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
    """Of a fixed sum of the results, by every input that had one in training; None where there is none."""
    torch.manual_seed(0)
    leaves = [one for one in inputs if isinstance(one, torch.Tensor) and one.requires_grad]
    total: Any = 0.0
    with torch.enable_grad():
        for one in _results(function, inputs):
            if _floating(one) and one.requires_grad:
                weights = torch.linspace(0.5, 1.5, one.numel(), dtype=torch.float64).reshape(one.shape)
                total = total + (one * weights.to(one.dtype)).sum()
    if not isinstance(total, torch.Tensor) or not leaves:
        return [None for _ in leaves]
    return list(torch.autograd.grad(total, leaves, allow_unused=True))


def _up_to(graph: fx.GraphModule, last: fx.Node) -> fx.GraphModule:
    """The graph as far as this value, which is its only result."""
    piece = fx.GraphModule(graph, fx.Graph())
    renamed: dict[fx.Node, fx.Node] = {}
    for node in graph.graph.find_nodes(op="placeholder"):
        renamed[node] = piece.graph.node_copy(node, lambda old: renamed[old])
    for node in graph.graph.nodes:
        if node not in renamed:
            renamed[node] = piece.graph.node_copy(node, lambda old: renamed[old])
        if node is last:
            break
    piece.graph.output((renamed[last],))
    piece.graph.eliminate_dead_code()
    piece.recompile()
    return piece


class _Double(fx.Interpreter):
    """A graph in float64, whatever types it names."""

    def run_node(self, n: fx.Node) -> Any:
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, *_wide(args, kwargs))


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_IN_PLACE = ("setitem", "iadd", "isub", "imul", "itruediv", "ipow", "iand", "ior", "ixor", "batch_norm")
_NARROW = (torch.float32, torch.float16, torch.bfloat16)


def is_random(node: fx.Node) -> bool:
    """Whether an operator draws: no two runs of it need agree."""
    return any(word in _operator(node) for word in _RANDOM)


def _operator(node: fx.Node) -> str:
    """
    >>> graph = fx.Graph(); _operator(graph.call_function(operator.add, (1, 2)))
    'add'
    """
    return node.target if isinstance(node.target, str) else str(getattr(node.target, "__name__", node.target))


def _writes(node: fx.Node) -> bool:
    """Whether an operator may change what it is given."""
    name = _operator(node)
    return name in _IN_PLACE or (name.endswith("_") and not name.endswith("__")) or "out" in node.kwargs


def _is_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta.get("example_value", node.meta.get("val")), torch.Tensor)


def _is_value(node: fx.Node) -> bool:
    """Whether a node makes a tensor of floating point numbers."""
    if node.op not in ("call_function", "call_method") or node.target is operator.setitem:
        return False
    value = node.meta.get("example_value", node.meta.get("val"))
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.layout == torch.strided


def _distance(value: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest difference relative to the largest exact value; infinite where only one of them is not finite."""
    a, b = value.detach().to(torch.float64), exact.detach().to(torch.float64)
    if not a.numel():
        return 0.0
    finite = a.isfinite() & b.isfinite()
    if bool(((a != b) & ~finite & ~(a.isnan() & b.isnan())).any()):
        return float("inf")
    if not bool(finite.any()):
        return 0.0
    scale = float(b[finite].abs().max())
    return float((a - b)[finite].abs().max()) / scale if scale else float((a - b)[finite].abs().max())


def _results(function: Callable[..., Any], inputs: Sequence[Any]) -> Sequence[Any]:
    result = function(*inputs)
    return result if isinstance(result, tuple | list) else (result,)


def _floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _wide(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Arguments that name a narrow type name float64 instead."""
    kwargs = {name: torch.float64 if value in _NARROW else value for name, value in kwargs.items()}
    return tuple(torch.float64 if isinstance(one, torch.dtype) and one in _NARROW else one for one in args), kwargs


def copied(inputs: Sequence[Any]) -> list[Any]:
    """Copies that nothing else writes to; those whose gradient is wanted still want it."""
    return [_map(one, lambda tensor: tensor.detach().clone().requires_grad_(tensor.requires_grad)) for one in inputs]


def _doubled(tensor: torch.Tensor) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor.detach().clone()
    return tensor.detach().to(torch.float64, copy=True).requires_grad_(tensor.requires_grad)


def _map(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple | list):
        return type(value)(_map(one, change) for one in value)
    return value
