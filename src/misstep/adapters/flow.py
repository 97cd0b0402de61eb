"""The bookkeeping of one training step in an eager framework: who is running, what flowed in and out, and from where.

    enter(fc) ──► input rows ──► (children) ──► leave(outputs) ──► output rows, computed from inputs and children
                                                      │ backward
                                                      ▼
                        grad_output rows, computed from the gradients of whoever consumed the output

A framework's adapter finds the seams and calls these verbs; nothing here knows a framework. A tensor that passes
several places is summarised at the first and aliased at the others, while it is the same object at the same memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from misstep.adapters.base import Listener, Place
from misstep.core.address import Role
from misstep.core.graph import NodeKind, Phase, Source
from misstep.core.stats import DTYPE_CODES
from misstep.kernels import nonfinite_many, summarize_many, summarize_memory

LOSS = "loss"


class Memory(NamedTuple):
    """Where a tensor's values lie; `keep` holds a contiguous copy alive while it is read."""

    address: int
    count: int
    dtype: int
    shape: tuple[int, ...]
    keep: Any = None


class Measure(Protocol):
    def __call__(self, tensor: Any, /) -> Memory: ...


class Call:
    """One run of a module or an operator within the step."""

    __slots__ = ("call", "gradients", "inputs", "made", "name", "node", "parent")

    def __init__(self, node: int, name: str, call: int, parent: Call | None) -> None:
        self.node = node
        self.name = name
        self.call = call
        self.parent = parent
        self.inputs: tuple[int, ...] = ()
        self.made: list[int] = []
        """Output rows of what ran directly inside."""
        self.gradients: list[int] = []
        """Rows of the gradients of its outputs, once backward came by."""


class Flow:
    """The step under way, as calls and rows."""

    def __init__(self, listener: Listener, measure: Measure) -> None:
        self.listener = listener
        self.measure = measure
        self.outside = Call(-1, "", 1, None)
        self.stack: list[Call] = [self.outside]
        self._sites: dict[tuple[str, str, str, int], int] = {}
        self._clear()

    def _clear(self) -> None:
        self._seen: dict[int, tuple[weakref.ref[Any], int, int]] = {}
        self._counts: dict[int, int] = {}
        self._calls: dict[int, list[Call]] = {}
        self._consumers: dict[int, list[Call]] = {}
        self._gradients: dict[str, int] = {}
        self.losses: list[int] = []
        self.outside.made.clear()

    def end_step(self) -> None:
        """Forget everything of the step; the listener has begun the next frame."""
        self._clear()
        del self.stack[1:]

    @property
    def scope(self) -> Call:
        return self.stack[-1]

    # ---- forward ----

    def enter(self, node: int, name: str, tensors: Sequence[Any], *, place: bool = True) -> Call:
        """A module begins: rows for what it was given."""
        call = self._new_call(node, name)
        if place and self.listener.stepping:
            self.listener.at_node(Place(node, "forward", "before", "module", call.call))
        call.inputs = self._take(call, tensors)
        self.stack.append(call)
        return call

    def leave(self, call: Call, tensors: Sequence[Any]) -> list[int]:
        """A module is done: rows for what it returned."""
        self.unwind(call)
        rows = self._give(call, tensors, (*call.inputs, *call.made))
        if self.listener.stepping:
            self.listener.at_node(Place(call.node, "forward", "after", "module", call.call))
        return rows

    def unwind(self, call: Call) -> None:
        """Forget a call and everything above it, also when it ended by an exception."""
        if call in self.stack:
            del self.stack[self.stack.index(call) :]

    def operator_node(self, type: str, source: Source | None, *, phase: Phase = "forward") -> tuple[int, str]:
        """The node of an operator at a line, below the module that runs it; a second line gets a name of its own."""
        scope = self.scope.name
        site = (scope, type, source.file if source else "", source.line if source else 0)
        node = self._sites.get(site)
        graph = self.listener.catalog.graph
        if node is None:
            name, number = f"{scope}/{type}", 1
            while graph.node(name) is not None:
                number += 1
                name = f"{scope}/{type}_{number}"
            node = self._sites[site] = self.listener.catalog.node(name, "operator", type, phase=phase, source=source)
        return node, graph.nodes[node].name

    def before_operator(self, node: int, name: str, tensors: Sequence[Any], phase: Phase = "forward") -> Call:
        call = self._new_call(node, name)
        if self.listener.stepping:
            self.listener.at_node(Place(node, phase, "before", "operator", call.call))
        call.inputs = self._take(call, tensors)
        return call

    def after_operator(self, call: Call, tensors: Sequence[Any], phase: Phase = "forward") -> list[int]:
        rows = self._give(call, tensors, call.inputs)
        if self.listener.stepping:
            self.listener.at_node(Place(call.node, phase, "after", "operator", call.call))
        return rows

    def loss(self, tensor: Any) -> int:
        """What backward is about to start from."""
        call = self._new_call(self.listener.catalog.node(LOSS, "loss", "loss", phase="loss"), LOSS)
        row = self.put(call, "loss", 0, tensor, tuple(self.outside.made))
        self.losses.append(row)
        return row

    # ---- backward and update ----

    def gradient_of(self, row: int, owners: Sequence[tuple[Call, int]], tensor: Any) -> None:
        """The gradient of an output has arrived; `owners` are the calls that returned it, innermost first."""
        first: int | None = None
        for call, slot in reversed(owners):
            inputs = (first,) if first is not None else self._gradient_inputs(row, call)
            first_seen = self.put(call, "grad_output", slot, tensor, inputs)
            first = first_seen if first is None else first
            call.gradients.append(first_seen)
            if self.listener.stepping:
                kind = "operator" if "/" in call.name else "module"
                self.listener.at_node(Place(call.node, "backward", "after", kind, call.call))  # type: ignore[arg-type]

    def gradients(self, named: Iterable[tuple[str, Any, Sequence[int]]]) -> list[int]:
        """Rows for parameter gradients: (parameter, gradient, nodes that use the parameter), in one kernel call."""
        batch = []
        for name, tensor, users in named:
            inputs = tuple(row for user in users for call in self._calls.get(user, ()) for row in call.gradients)
            batch.append((name, "grad", tensor, inputs or None))
        rows = self._put_many(batch, "backward")
        self._gradients.update({entry[0]: row for entry, row in zip(batch, rows)})
        return rows

    def weights(self, named: Iterable[tuple[str, Any]]) -> list[int]:
        """Rows for weights after an update, each computed from its gradient."""
        batch = []
        for name, tensor in named:
            gradient = self._gradients.get(name)
            batch.append((name, "param", tensor, None if gradient is None else (gradient,)))
        return self._put_many(batch, "optimizer")

    def bad_only(self, named: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Those of the tensors that hold NaN or Inf: all that the guard level keeps."""
        if not named:
            return []
        memories = [self.measure(tensor) for _, tensor in named]
        bad = nonfinite_many([m.address for m in memories], [m.count for m in memories], [m.dtype for m in memories])
        return [pair for pair, is_bad in zip(named, bad) if is_bad]

    # ---- rows ----

    def put(self, call: Call, role: Role, slot: int, tensor: Any, inputs: tuple[int, ...] | None) -> int:
        """A row for one tensor: an alias when it was summarised already in this step."""
        listener = self.listener
        number = listener.catalog.tensor(call.node, role, slot, call.call)
        memory = self.measure(tensor)
        seen = self._seen.get(id(tensor))
        if seen is not None and seen[0]() is tensor and seen[2] == memory.address:
            row = listener.frame.alias(number, seen[1], (*(inputs or ()), seen[1]), seen[0])
        else:
            reference = weakref.ref(tensor)
            row = listener.frame.reserve(number, listener.catalog.shape(memory.shape), memory.dtype, inputs, reference)
            summarize_memory(memory.address, memory.count, memory.dtype, listener.frame.summary, row)
            self._seen[id(tensor)] = (reference, row, memory.address)
        want = listener.wants.get(number)
        if want is not None:
            want(row, tensor)
        return row

    def producer(self, tensor: Any) -> int | None:
        """The row that first saw this tensor in this step."""
        seen = self._seen.get(id(tensor))
        return seen[1] if seen is not None and seen[0]() is tensor else None

    def _new_call(self, node: int, name: str) -> Call:
        count = self._counts[node] = self._counts.get(node, 0) + 1
        call = Call(node, name, count, self.scope)
        self._calls.setdefault(node, []).append(call)
        return call

    def _take(self, call: Call, tensors: Sequence[Any]) -> tuple[int, ...]:
        """Input rows. What the enclosing code made of earlier rows and handed in counts as computed from them."""
        scope = self.scope
        around: tuple[int, ...] | None = (*scope.inputs, *scope.made) or None
        rows = []
        for slot, tensor in enumerate(tensors):
            source = self.producer(tensor)
            rows.append(self.put(call, "input", slot, tensor, None if source is not None else around))
            if source is not None:
                self._consumers.setdefault(source, []).append(call)
                self._connect(source, call, slot)
        return tuple(rows)

    def _give(self, call: Call, tensors: Sequence[Any], inputs: tuple[int, ...]) -> list[int]:
        rows = [self.put(call, "output", slot, tensor, inputs) for slot, tensor in enumerate(tensors)]
        if call.parent is not None:
            call.parent.made.extend(rows)
        return rows

    def _connect(self, source: int, call: Call, slot: int) -> None:
        catalog = self.listener.catalog
        key = catalog.graph.tensors[self.listener.frame.tensors[source]]
        if key.role == "output" and key.node != call.node:
            catalog.edge(key.node, call.node, key.slot, slot)

    def _gradient_inputs(self, row: int, call: Call) -> tuple[int, ...] | None:
        """Gradients this one was computed from: those of its consumers, else of the enclosing code, else the loss."""
        found = tuple(gradient for user in self._consumers.get(row, ()) for gradient in user.gradients)
        around = call.parent
        while not found and around is not None:
            found = tuple(around.gradients) if around is not self.outside else tuple(self.losses)
            around = around.parent
        return found or None

    def _put_many(self, batch: Sequence[tuple[str, Role, Any, tuple[int, ...] | None]], phase: Phase) -> list[int]:
        """Parameter rows: consecutive, so that one kernel call fills them all."""
        if not batch:
            return []
        listener, catalog, frame = self.listener, self.listener.catalog, self.listener.frame
        memories = [self.measure(tensor) for _, _, tensor, _ in batch]
        rows = []
        for (name, role, tensor, inputs), memory in zip(batch, memories):
            number = catalog.tensor(catalog.node(name, "parameter", "Parameter"), role)
            rows.append(frame.reserve(number, catalog.shape(memory.shape), memory.dtype, inputs, weakref.ref(tensor)))
        summarize_many(
            [m.address for m in memories],
            [m.count for m in memories],
            [m.dtype for m in memories],
            frame.summary,
            rows[0],
        )
        if listener.wants:
            for row, (_, _, tensor, _) in zip(rows, batch):
                want = listener.wants.get(frame.tensors[row])
                if want is not None:
                    want(row, tensor)
        return rows


def tensors_in(value: Any, is_tensor: Callable[[Any], bool], *, depth: int = 6) -> list[Any]:
    """Every tensor in nested tuples, lists, dicts and dataclasses, in order: their slots."""
    if is_tensor(value):
        return [value]
    if depth == 0 or value is None or isinstance(value, str | bytes | int | float):
        return []
    if isinstance(value, dict):
        inside: Iterable[Any] = value.values()
    elif isinstance(value, tuple | list):
        inside = value
    elif hasattr(value, "__dataclass_fields__"):
        inside = [getattr(value, name, None) for name in value.__dataclass_fields__]
    else:
        return []
    return [tensor for item in inside for tensor in tensors_in(item, is_tensor, depth=depth - 1)]


def dtype_code(name: str) -> int:
    return DTYPE_CODES.get(name, 0)


__all__ = ["LOSS", "Call", "Flow", "Measure", "Memory", "NodeKind", "dtype_code", "tensors_in"]
