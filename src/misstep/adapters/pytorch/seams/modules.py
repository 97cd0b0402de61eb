"""The module seam: one patched `nn.Module.__call__` sees every module, its inputs, outputs and their gradients.

Nothing is stored on the user's objects, so hooks, state_dict, deepcopy and pickling are as before. Gradients of outputs
are read by a pre-hook on the output's graph node: it costs less than a tensor hook and leaves the tensor untouched.

    __call__ ─► input rows ─► the module runs ─► output rows ─┐
                                                              └─ graph node ◄─ backward: grad_output, grad_input rows
"""

from __future__ import annotations

import sys
import weakref
from threading import get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch._C._dynamo import eval_frame

from misstep.adapters.base import Place, TrainingStopped
from misstep.adapters.pytorch.compiled.calls import wraps_compiled
from misstep.adapters.pytorch.replay.entries import Entry
from misstep.adapters.pytorch.seams.functional import inside as transforming
from misstep.adapters.pytorch.tensors import leaves
from misstep.core import segments
from misstep.core.cells import BETWEEN, ENTERED, FORWARD, PHASE, TRAIL, TRAIL_MASK

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter

MOST_CALLS = 64
"""Calls of one module in one step that get rows of their own: an evaluation loop that forgot no_grad, or a cell called
for every token, must not make the run directory grow without bound."""

_MODULE: Any = nn.Module


class ModuleSeam:
    """Stands in for `nn.Module.__call__` while attached."""

    def __init__(self, adapter: PyTorchAdapter) -> None:
        self.adapter = adapter
        self.stack: list[int] = []
        """Nodes of the modules under way, outermost first."""
        self.made: list[list[int]] = []
        """For each of them, the rows its children and operators have made so far."""
        self.watching = False
        """Whether rows are wanted; off below module level."""
        self.skipped_calls = 0
        self._calls: dict[int, int] = {}
        self._hooked: dict[int, tuple[Any, Any, list[tuple[int, int]]]] = {}
        self._edges: set[tuple[int, int]] = set()
        self._original: Any = None
        self.within = False
        """Inside an outermost module, below module level."""
        self._output_rows: dict[int, tuple[int, ...]] = {}
        """By module node: the rows of its output gradients in this step."""
        self._awaited: dict[tuple[int, int], int] = {}
        """By (node, call): inputs whose gradient has not arrived yet."""
        self._in_backward: dict[tuple[int, int], None] = {}
        """Calls whose backward has begun and is not known to be over, in that order."""

    def install(self) -> None:
        original = self._original = nn.Module.__call__
        adapter = self.adapter
        is_compiling = torch.compiler.is_compiling
        opened, active = adapter.compiled.opened, eval_frame.get_eval_frame_callback

        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            # Checked first: Dynamo traces this line and must find nothing else to trace.
            if is_compiling():
                return original(module, *args, **kwargs)
            # In compiled code whatever we call would be compiled; code excluded from compilation is seen as any other.
            if opened and active() is not None:
                return original(module, *args, **kwargs)
            if adapter.inert or adapter.in_backward or adapter.thread not in (0, get_ident()):
                return original(module, *args, **kwargs)
            if transforming() is not None:  # tensors of torch.func have no memory to read here
                return original(module, *args, **kwargs)
            seam = adapter.modules
            if not seam.watching:
                cells = adapter.cells
                cells[ENTERED] = entered = cells[ENTERED] + 1
                cells[TRAIL + (entered & TRAIL_MASK)] = id(module)
                if seam.within:
                    return original(module, *args, **kwargs)
                if not torch.is_grad_enabled():
                    return seam.evaluate(original, module, args, kwargs)
                return seam.pass_by(original, module, args, kwargs)
            if not torch.is_grad_enabled():
                return seam.evaluate(original, module, args, kwargs)
            return seam.call(original, module, args, kwargs)

        __call__.__misstep__ = True  # type: ignore[attr-defined]
        _MODULE.__call__ = __call__

    def remove(self) -> None:
        if getattr(nn.Module.__call__, "__misstep__", False):
            _MODULE.__call__ = self._original

    def begin_step(self) -> None:
        if not self._calls:
            return
        self._calls.clear()
        self._hooked.clear()
        self._output_rows.clear()
        self._awaited.clear()
        self._in_backward.clear()

    def double(self, *, watching: bool) -> ModuleSeam:
        """Another seam for a replay: it keeps its own account of the step."""
        double = ModuleSeam(self.adapter)
        double.watching = watching
        double._edges = self._edges
        return double

    def evaluate(self, original: Any, module: nn.Module, args: Any, kwargs: Any) -> Any:
        """A network without gradients: between steps, only what comes out of it is looked at."""
        tape, facts = self.adapter.tape, self.adapter.facts
        if facts.evaluating and not self.stack:
            facts.evaluated(module, sys._getframe(2))
        if not tape.prelude.on or self.adapter.replaying:
            return original(module, *args, **kwargs)
        with tape.prelude.inside():
            output = original(module, *args, **kwargs)
        self.adapter.guarded(
            "after an evaluation", tape.prelude.evaluated, module, args, kwargs, output, sys._getframe(2)
        )
        return output

    def pass_by(self, original: Any, module: nn.Module, args: Any, kwargs: Any) -> Any:
        """Guard level: only notice that a network runs, which one it is, and with what it was called."""
        adapter = self.adapter
        frame = sys._getframe(2)
        adapter.network_called(module, frame)
        if self.watching:  # going live raised the level
            return self.call(original, module, args, kwargs, told=True)
        self.within = True
        try:
            return self._taped(original, module, args, kwargs, frame)
        finally:
            self.within = False

    def _taped(self, original: Any, module: nn.Module, args: Any, kwargs: Any, frame: Any) -> Any:
        """Run an outermost module, and put the call on the tape."""
        adapter = self.adapter
        entry = None
        start = perf_counter_ns()
        try:
            entry, args, kwargs = self._tape_begins(module, args, kwargs, frame)
        except Exception as error:
            adapter.listener.trouble("before a network", error)
        adapter.cost_ns += perf_counter_ns() - start
        output = original(module, *args, **kwargs)
        adapter.cells[PHASE] = BETWEEN
        adapter.clock.switch(segments.LOSS)
        adapter.facts.network_ends(module, output)
        if entry is not None:
            start = perf_counter_ns()
            try:
                adapter.tape.module_ends(entry, output)
            except Exception as error:
                adapter.listener.trouble("after a network", error)
            adapter.cost_ns += perf_counter_ns() - start
        return output

    def _tape_begins(self, module: nn.Module, args: Any, kwargs: Any, frame: Any) -> tuple[Entry | None, Any, Any]:
        """The call's entry on the tape, and what to call with: a capsule may have something else in store."""
        adapter = self.adapter
        if adapter.replaying:
            return None, args, kwargs
        adapter.cells[PHASE] = FORWARD
        adapter.clock.switch(segments.FORWARD)
        if adapter.on_network is not None:
            adapter.on_network(args, kwargs, frame)
        adapter.facts.network_begins(module, args, kwargs, frame)
        tape = adapter.tape
        if not tape.armed:
            return None, args, kwargs
        entry = tape.module_begins(module, args, kwargs, frame)
        if entry is not None and tape.swap is not None:
            args, kwargs = tape.swapped(entry, args, kwargs)
        return entry, args, kwargs

    def call(self, original: Any, module: nn.Module, args: Any, kwargs: Any, *, told: bool = False) -> Any:
        adapter = self.adapter
        if adapter.replaying and wraps_compiled(module):  # uncompiled, it is nothing but the module inside
            return original(module, *args, **kwargs)
        start = perf_counter_ns()
        listener = adapter.listener
        node = -1
        call = 0
        inputs: tuple[int, ...] = ()
        entry: Entry | None = None
        try:
            if not self.stack and not told:
                adapter.network_called(module, sys._getframe(2))
            node = adapter.names.node(module, sys._getframe(2))
            if not self.stack:
                entry, args, kwargs = self._tape_begins(module, args, kwargs, sys._getframe(2))
            call = self._calls.get(node, 0) + 1
            self._calls[node] = call
            if call <= MOST_CALLS:
                inputs = self._inputs(node, call, args, kwargs)
                if listener.stepping:
                    listener.at_node(Place(node, "forward", "before", "module", call))
            else:
                self.skipped_calls += 1
        except TrainingStopped:
            raise
        except Exception as error:
            listener.trouble("before a module", error)
        cells = adapter.cells
        cells[ENTERED] = entered = cells[ENTERED] + 1
        cells[TRAIL + (entered & TRAIL_MASK)] = id(module)
        self.stack.append(node)
        inside: list[int] = []
        self.made.append(inside)
        adapter.cost_ns += perf_counter_ns() - start
        try:
            output = original(module, *args, **kwargs)
        except BaseException as error:
            adapter.user_raised(error, node)
            raise
        finally:
            self.stack.pop()
            self.made.pop()
        start = perf_counter_ns()
        try:
            if not self.stack:
                cells[PHASE] = BETWEEN
                adapter.clock.switch(segments.LOSS)
                adapter.facts.network_ends(module, output)
            if entry is not None:
                adapter.tape.module_ends(entry, output)
            if 0 < call <= MOST_CALLS:
                self._outputs(node, call, output, inputs, inside)
                if listener.stepping:
                    listener.at_node(Place(node, "forward", "after", "module", call))
        except TrainingStopped:
            raise
        except Exception as error:
            listener.trouble("after a module", error)
        adapter.cost_ns += perf_counter_ns() - start
        return output

    def _inputs(self, node: int, call: int, args: Any, kwargs: Any) -> tuple[int, ...]:
        seer, catalog = self.adapter.seer, self.adapter.catalog
        rows = []
        for slot, tensor in enumerate(leaves((args, kwargs) if kwargs else args)):
            producer = seer.seen(tensor)
            number = catalog.tensor(node, "input", slot, call)
            row = seer.see(number, tensor)
            if row < 0:
                continue
            rows.append(row)
            if producer >= 0:
                self._edge(seer.frame.tensors[producer], node, number, slot, tensor)
            if tensor.requires_grad and tensor.grad_fn is not None:
                self._awaited[node, call] = self._awaited.get((node, call), 0) + 1
                self._hook(tensor, catalog.tensor(node, "grad_input", slot, call), node)
        return tuple(rows)

    def _outputs(self, node: int, call: int, output: Any, inputs: tuple[int, ...], inside: list[int]) -> None:
        seer, catalog = self.adapter.seer, self.adapter.catalog
        for slot, tensor in enumerate(leaves(output)):
            row = seer.see(catalog.tensor(node, "output", slot, call), tensor, inputs, inside)
            if row >= 0 and self.made:
                self.made[-1].append(row)
            if tensor.requires_grad and tensor.grad_fn is not None:
                self._hook(tensor, catalog.tensor(node, "grad_output", slot, call), node)

    def _edge(self, producer: int, node: int, number: int, slot: int, tensor: torch.Tensor) -> None:
        if (producer, number) in self._edges:
            return
        self._edges.add((producer, number))
        catalog = self.adapter.catalog
        source = catalog.graph.tensors[producer]
        if source.role == "output" and source.node != node:
            catalog.edge(
                source.node, node, source.slot, slot, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)
            )

    def _hook(self, tensor: torch.Tensor, number: int, node: int) -> None:
        """Have the gradient of this tensor recorded under one more name; the graph node is hooked once."""
        graph_node: Any = tensor.grad_fn
        known = self._hooked.get(id(tensor))
        if known is not None and known[0]() is tensor and known[1] is graph_node:
            known[2].append((number, node))
            return
        names = [(number, node)]
        self._hooked[id(tensor)] = (weakref.ref(tensor), graph_node, names)
        slot = tensor.output_nr
        adapter = self.adapter
        frame_step = adapter.listener.step

        def gradient_arrives(gradients: tuple[torch.Tensor | None, ...]) -> None:
            # A graph kept from an earlier step, or one replayed by us, must not write into this frame.
            if adapter.inert or not self.watching or adapter.listener.step != frame_step:
                return
            gradient = gradients[slot]
            if gradient is not None:
                self._gradient(gradient, names)

        graph_node.register_prehook(gradient_arrives)

    def _gradient(self, gradient: torch.Tensor, names: list[tuple[int, int]]) -> None:
        start = perf_counter_ns()
        adapter = self.adapter
        listener = adapter.listener
        try:
            graph = adapter.catalog.graph
            for number, node in names:
                if graph.tensors[number].role == "grad_output":
                    row = adapter.seer.see(number, gradient)
                    if row >= 0:
                        self._output_rows[node] = (*self._output_rows.get(node, ()), row)
                else:
                    # What the module's backward made of the gradients of its outputs.
                    adapter.seer.see(number, gradient, self._output_rows.get(node))
            places = self._passed(names)
            if listener.stepping:
                for place in places:
                    listener.at_node(place)
        except TrainingStopped:
            raise
        except Exception as error:
            listener.trouble("at the gradient of a module", error)
        adapter.cost_ns += perf_counter_ns() - start

    def _passed(self, names: list[tuple[int, int]]) -> list[Place]:
        """Backward leaves the modules that took this tensor, the innermost first, and enters those that gave it."""
        tensors = self.adapter.catalog.graph.tensors
        places = []
        for number, node in reversed(names):
            call = tensors[number].call
            key = (node, call)
            if tensors[number].role == "grad_output":
                if key not in self._in_backward:
                    self._in_backward[key] = None
                    places.append(Place(node, "backward", "before", "module", call))
                continue
            self._awaited[key] = left = self._awaited.get(key, 0) - 1
            if left == 0 and self._in_backward.pop(key, key) is None:
                places.append(Place(node, "backward", "after", "module", call))
        return places

    def backward_ends(self) -> None:
        """Modules whose inputs need no gradient (the first of a network) are done when all of backward is."""
        listener = self.adapter.listener
        while self._in_backward:
            (node, call), _ = self._in_backward.popitem()
            if listener.stepping and self.watching:
                listener.at_node(Place(node, "backward", "after", "module", call))

    def output_gradients(self, node: int) -> tuple[int, ...] | None:
        """Rows of a module's output gradients in this step; what its parameters' gradients were computed from."""
        return self._output_rows.get(node)
