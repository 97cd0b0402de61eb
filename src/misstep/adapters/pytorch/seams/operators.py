"""Every aten operator of a step, forward, backward and optimizer, with its line in the user's program.

A dispatch mode at the bottom of torch's stack sees each call below autograd. Memory is known by its address: every
write passes here, so the newest row for an address is the value it holds. A view costs nothing. The line of a backward
operator is the line of the forward operator whose graph node has the same sequence number.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from misstep.adapters.base import Place, TrainingStopped
from misstep.adapters.pytorch.compiled.lines import is_generated, runs_kernels, traced_line
from misstep.adapters.pytorch.names import source_line, user_frame
from misstep.adapters.pytorch.tensors import has_memory, leaves
from misstep.adapters.settings import call_settings
from misstep.core.graph import Phase

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter

MOST_CALLS = 4096

UNSEEN, UNINITIALISED = -1, -2
"""In place of a row: nobody summarised this memory yet; it holds whatever lay there before."""

_UNINITIALISED = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "empty_permuted")
"""Their outputs hold whatever lay in memory before: never evidence of anything."""


@dataclass(slots=True)
class Traits:
    """What is worth knowing of an operator, worked out once from its schema."""

    name: str
    view: bool
    blind: bool
    writes: tuple[int, ...]
    """Positions of the arguments it writes into."""


def operands(args: Sequence[Any], kwargs: dict[str, Any] | None) -> list[torch.Tensor]:
    """The tensors handed to an operator: below autograd they stand flat, or in one list."""
    found = []
    for value in args if not kwargs else (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif type(value) is list or type(value) is tuple:
            found.extend(item for item in value if isinstance(item, torch.Tensor))
    return found


class OperatorWatch(TorchDispatchMode):
    """Sees every operator while it is on torch's stack."""

    def __init__(self, adapter: PyTorchAdapter) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.adapter = adapter
        self.on = False
        self._traits: dict[Any, Traits] = {}
        self._nodes: dict[tuple[int | str, Any, Any, int], int] = {}
        self._taken: dict[str, int] = {}
        self._calls: dict[int, int] = {}
        self._rows: dict[int, int] = {}
        """The newest row of the memory that begins at an address."""
        self._begins: dict[int, int] = {}
        """Where the memory of a row begins; a view may begin further on."""
        self._parts: dict[tuple[Any, ...], int] = {}
        self._by_sequence: dict[int, tuple[int | str, Any, int, int]] = {}
        """Forward sequence number → (scope, code object, line, node): where a graph node came from."""
        self._edges: set[tuple[int, int]] = set()
        self._weights: dict[int, torch.Tensor] | None = None
        """By where it begins: every parameter; None until one is looked for in this step."""

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled code stays compiled while we watch: without this, Dynamo leaves every frame to the interpreter."""
        return True

    def start(self) -> None:
        """Go to the bottom of the stack, so that whatever the user pushes and pops stays in order above us."""
        if self.on:
            return
        above = []
        while torch._C._len_torch_dispatch_stack() > 0:
            above.append(torch._C._pop_torch_dispatch_stack(None))
        torch._C._push_on_torch_dispatch_stack(self)
        for mode in reversed(above):
            torch._C._push_on_torch_dispatch_stack(mode)
        self.on = True

    def stop(self) -> None:
        if not self.on:
            return
        above = []
        while torch._C._len_torch_dispatch_stack() > 0:
            mode = torch._C._pop_torch_dispatch_stack(None)
            if mode is self:
                break
            above.append(mode)
        for mode in reversed(above):
            torch._C._push_on_torch_dispatch_stack(mode)
        self.on = False

    def share_names(self, other: OperatorWatch) -> None:
        """Call operators as the other watch does: a name is given once in a run."""
        self._traits, self._nodes, self._taken, self._edges = other._traits, other._nodes, other._taken, other._edges

    def begin_step(self) -> None:
        self._weights = None
        self._calls.clear()
        self._rows.clear()
        self._begins.clear()
        self._parts.clear()
        self._by_sequence.clear()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        adapter = self.adapter
        if adapter.inert or not adapter.recording():
            return func(*args, **(kwargs or {}))
        by_hand = adapter.steps.by_hand
        if by_hand.pending and not adapter.replaying and by_hand.reads_a_weight(args):
            adapter.guarded("when a step by hand ends", by_hand.close)
        start = perf_counter_ns()
        listener = adapter.listener
        node = -1
        call = 0
        phase: Phase = "forward"
        inputs: tuple[int, ...] = ()
        traits = self._traits.get(func) or self._learn(func)
        try:
            if not traits.view and not traits.blind:
                node, call, phase = self._place(func, traits, args, kwargs or {})
                inputs = self._inputs(node, call, args, kwargs)
                if listener.stepping:
                    listener.at_node(Place(node, phase, "before", "operator", call))
        except TrainingStopped:
            raise
        except Exception as error:
            listener.trouble(f"before {traits.name}", error)
        adapter.cost_ns += perf_counter_ns() - start
        out = func(*args, **(kwargs or {}))
        start = perf_counter_ns()
        try:
            if traits.view:
                self._view(args, out)
            elif traits.blind:
                self.forget(out)
            elif node >= 0:
                self._outputs(node, call, traits, args, out, inputs)
                if listener.stepping:
                    listener.at_node(Place(node, phase, "after", "operator", call))
        except TrainingStopped:
            raise
        except Exception as error:
            listener.trouble(f"after {traits.name}", error)
        adapter.cost_ns += perf_counter_ns() - start
        return out

    def _learn(self, func: Any) -> Traits:
        name = str(func.overloadpacket.__name__)
        schema = func._schema
        writes = tuple(
            place
            for place, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        )
        view = not writes and any(value.alias_info is not None for value in schema.returns)
        blind = name in _UNINITIALISED or func.namespace == "profiler"  # a mark in a profile computes nothing
        traits = Traits(name, view, blind, writes)
        self._traits[func] = traits
        return traits

    def _place(self, func: Any, traits: Traits, args: Any, kwargs: Any) -> tuple[int, int, Phase]:
        """The node of this call: its scope, operator and line."""
        adapter = self.adapter
        phase: Phase = "forward"
        scope: int | str
        forward = -1
        graph_node = torch._C._current_autograd_node() if adapter.in_backward else None
        if graph_node is not None:
            phase = "backward"
            title = graph_node.name().rpartition("::")[2]
            origin = self._by_sequence.get(graph_node._sequence_nr() + 1)
            if origin is None:
                scope, code, line = f"backward/{title}", None, 0
            else:
                inside, code, line, forward = origin
                above = inside if isinstance(inside, str) else adapter.catalog.graph.nodes[inside].name
                scope = f"{above}/{title}" if above else title
            if title.startswith("CompiledFunction") and runs_kernels(user_frame(sys._getframe(2))):
                return -1, 0, phase
            written_by = getattr(graph_node, "_forward_cls", None)
            if written_by is not None and not written_by.__module__.startswith("torch."):
                # A backward the user wrote has lines of its own.
                frame = user_frame(sys._getframe(2))
                code, line = (code, line) if frame is None else (frame.f_code, frame.f_lineno)
        else:
            frame = user_frame(sys._getframe(2))
            if runs_kernels(frame):
                return -1, 0, phase
            if adapter.replaying and frame is adapter.outer and adapter.stand_in is not None:
                code, line = adapter.stand_in
            else:
                code, line = _line_of(frame)
            if adapter.updating is not None:
                phase, scope = "optimizer", adapter.updating
            elif adapter.in_backward:
                phase, scope = "backward", "backward"
            else:
                stack = adapter.modules.stack
                scope = stack[-1] if stack and stack[-1] >= 0 else "script"
                if isinstance(scope, int):
                    phase = adapter.catalog.graph.nodes[scope].phase
                elif adapter.network_ran:
                    phase = "loss"
        key = (scope, func, code, line)
        node = self._nodes.get(key, -1)
        if node < 0:
            node = self._new(key, traits, phase, forward, lambda: call_settings(func, args, kwargs))
        if phase in ("forward", "loss"):
            self._by_sequence.setdefault(torch._C._autograd._get_sequence_nr(), (scope, code, line, node))
        call = self._calls.get(node, 0) + 1
        self._calls[node] = call
        return (node if call <= MOST_CALLS else -1), call, phase

    def _new(
        self,
        key: tuple[int | str, Any, Any, int],
        traits: Traits,
        phase: Phase,
        forward: int,
        settings: Callable[[], dict[str, str]],
    ) -> int:
        scope, func, code, line = key
        catalog = self.adapter.catalog
        above = scope if isinstance(scope, str) else catalog.graph.nodes[scope].name
        name = f"{above}/{traits.name}"
        count = self._taken[name] = self._taken.get(name, 0) + 1
        if count > 1:
            name = f"{name}_{count}"
        namespace = func.namespace
        node = catalog.node(
            name,
            "operator",
            f"{namespace}.{traits.name}",
            phase=phase,
            source=None if code is None else source_line(code.co_filename, line),
            forward="" if forward < 0 else catalog.graph.nodes[forward].name,
            settings=settings,
        )
        self._nodes[key] = node
        return node

    def _inputs(self, node: int, call: int, args: Any, kwargs: Any) -> tuple[int, ...]:
        """Rows of what goes in; memory nobody has seen yet (weights, the batch) is summarised here, once."""
        if node < 0:
            return ()
        adapter, rows = self.adapter, []
        known = self._rows
        for slot, tensor in enumerate(operands(args, kwargs)):
            if tensor.layout is not torch.strided:
                continue
            address = tensor.data_ptr()
            if address == 0:  # no elements, or no memory (a meta tensor)
                continue
            row = known.get(address, UNSEEN)
            if row == UNINITIALISED:
                continue
            if row < 0:
                weight = self._weight_at(address, tensor)
                if weight is None:
                    number = adapter.catalog.tensor(node, "input", slot, call)
                else:  # by its own name: `head.weight:input` is what the step began with, `:param` what it left
                    owner = adapter.catalog.node(adapter.names.parameter(weight), "parameter", "Parameter")
                    number, tensor = adapter.catalog.tensor(owner, "input"), weight
                # What a compiled network gave was seen when it returned, and only there.
                row = adapter.seer.given(tensor) if weight is None else -1
                if row < 0:
                    row = adapter.seer.fresh(number, tensor, None, weakref.ref(tensor))
                if row < 0:
                    continue
                if weight is not None and adapter.frame.names_inputs:
                    self._name_input(adapter.catalog.tensor(node, "input", slot, call), row, tensor)
                known[address] = row
                self._begins[row] = address
                want = adapter.seer.wants.get(number)
                if want is not None:
                    want(row, tensor)
            else:
                producer = adapter.frame.tensors[row]
                if (producer, node) not in self._edges:
                    self._edge(producer, node, slot, tensor)
                if adapter.frame.names_inputs:
                    self._name_input(adapter.catalog.tensor(node, "input", slot, call), row, tensor)
            rows.append(row)
        return tuple(rows)

    def _weight_at(self, address: int, tensor: torch.Tensor) -> torch.Tensor | None:
        """The parameter whose whole memory this is, transposed perhaps."""
        if self._weights is None:
            every = self.adapter.all_weights()
            self._weights = {one.data_ptr(): one for one in every if one.layout is torch.strided and has_memory(one)}
        weight = self._weights.get(address)
        return weight if weight is not None and weight.numel() == tensor.numel() else None

    def _name_input(self, number: int, row: int, tensor: torch.Tensor) -> None:
        """A dump wants this input, whose memory row `row` has seen: a second name for it, or for a part of it."""
        seer = self.adapter.seer
        want = seer.wants.get(number)
        if want is None:
            return
        address = tensor.data_ptr()
        if self._begins.get(row) != address:  # half of a chunk begins elsewhere, and is a value of its own
            part = (row, address, tensor.shape, tensor.stride())
            if part not in self._parts:
                self._parts[part] = seer.fresh(number, tensor, None, weakref.ref(tensor))
            row = self._parts[part]
        if row >= 0:
            want(row, tensor)

    def _edge(self, producer: int, node: int, slot: int, tensor: torch.Tensor) -> None:
        self._edges.add((producer, node))
        catalog = self.adapter.catalog
        source = catalog.graph.tensors[producer]
        if source.role == "output" and source.node != node:
            catalog.edge(
                source.node, node, source.slot, slot, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)
            )

    def _outputs(self, node: int, call: int, traits: Traits, args: Any, out: Any, inputs: tuple[int, ...]) -> None:
        adapter = self.adapter
        written: Iterable[torch.Tensor]
        if traits.writes:
            written = operands([args[place] for place in traits.writes if place < len(args)], None)
        else:
            written = (out,) if isinstance(out, torch.Tensor) else leaves(out)
        for slot, tensor in enumerate(written):
            number = adapter.catalog.tensor(node, "output", slot, call)
            row = adapter.seer.fresh(number, tensor, inputs, weakref.ref(tensor))
            if row >= 0 and tensor.layout is torch.strided:
                self._rows[tensor.data_ptr()] = row
                self._begins[row] = tensor.data_ptr()
                if adapter.modules.made:
                    adapter.modules.made[-1].append(row)
                if traits.writes:  # written through a view: whoever reads the whole reads this too
                    self._rows[tensor.untyped_storage().data_ptr()] = row
                want = adapter.seer.wants.get(number)
                if want is not None:
                    want(row, tensor)

    def _view(self, args: Any, out: Any) -> None:
        """A view holds what its base holds."""
        base = next(iter(operands(args, None)), None)
        if base is None or base.layout is not torch.strided:
            return
        row = self._rows.get(base.data_ptr(), UNSEEN)
        if row != UNSEEN:
            for tensor in (out,) if isinstance(out, torch.Tensor) else leaves(out):
                if tensor.layout is torch.strided and (
                    row == UNINITIALISED or row > self._rows.get(tensor.data_ptr(), UNSEEN)
                ):
                    self._rows[tensor.data_ptr()] = row

    def forget(self, out: Any) -> None:
        """Nobody knows what this memory holds."""
        for tensor in leaves(out):
            if tensor.layout is torch.strided:
                self._rows[tensor.data_ptr()] = UNINITIALISED

    def came_from(self, tensor: torch.Tensor, source: torch.Tensor, node: int, slot: int) -> None:
        """A node that cannot be watched made this tensor of another."""
        before = self.row_of(source)
        if before >= 0 and tensor.layout is torch.strided:
            number = self.adapter.catalog.tensor(node, "grad_input", slot)
            row = self.adapter.seer.fresh(number, tensor, (before,), weakref.ref(tensor))
            if row >= 0:
                self._rows[tensor.data_ptr()] = row

    def row_of(self, tensor: torch.Tensor) -> int:
        """The newest row of a tensor's memory in this step, or -1."""
        return self._rows.get(tensor.data_ptr(), UNSEEN) if self.on and tensor.layout is torch.strided else -1


def _line_of(frame: FrameType | None) -> tuple[Any, int]:
    """The user's code object and line: for generated code, those it was traced from."""
    if frame is None:
        return None, 0
    if is_generated(frame):
        return traced_line(frame) or (None, 0)
    return frame.f_code, frame.f_lineno
