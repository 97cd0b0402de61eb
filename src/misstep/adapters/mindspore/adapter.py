"""MindSpore, seen by misstep: where a step begins and ends, and what is read on the way.

In PyNative mode every cell is a place: inputs, outputs, and the gradients of outputs through a hook on the tensor. In
graph mode nothing inside compiled code can be observed from Python, so a compiled training step is one event: weights
before and after, the loss it returned, and the gradients where the optimizer is called by itself. An optimizer is a
cell whose first argument is the gradients, in both modes: its call is the update.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Sequence
from threading import get_ident
from types import FrameType
from typing import Any

import mindspore as ms
from mindspore import context, nn
from mindspore.graph.api import _pynative_executor

from misstep.adapters.base import Extension, Listener, SessionPort
from misstep.adapters.mindspore import tensors
from misstep.adapters.mindspore.extension import extend
from misstep.adapters.mindspore.facts import Facts
from misstep.adapters.mindspore.graph.boundary import CompiledCode
from misstep.adapters.mindspore.graph.pynative import EagerStep
from misstep.adapters.mindspore.names import OPTIMIZERS, WRAPPERS, Names
from misstep.adapters.mindspore.recording import MindSporeWitness
from misstep.adapters.mindspore.replay.replayer import MindSporeReplayer
from misstep.adapters.mindspore.replay.tape import Tape
from misstep.adapters.mindspore.seams.guard import Guard, Nothing, raised_inside
from misstep.adapters.mindspore.seams.operators import OperatorWatch
from misstep.adapters.mindspore.seams.optimizer_updates import Updates
from misstep.adapters.mindspore.seams.patches import Seams
from misstep.adapters.recording import OnNetwork
from misstep.adapters.source import source_line
from misstep.adapters.step.calls import Call
from misstep.adapters.step.flow import Flow
from misstep.core.cells import BACKWARD, BETWEEN, ENTERED, FORWARD, TRAIL, TRAIL_MASK, Cells, no_cells
from misstep.core.levels import Level


class MindSporeAdapter(Facts, MindSporeReplayer):
    """One per process; `attach` makes it live, `detach` leaves no trace."""

    name = "mindspore"

    def __init__(self) -> None:
        self.busy = True
        """Nobody wants to hear of calls now: not attached, inside an update, backward or compiled code, or forked."""
        self.level: Level = "off"
        self.thread = 0
        self.network_ran = False
        """A network has run since the last update: what follows outside of cells is the loss."""
        self.cost_ns = 0
        self.cells: Cells = no_cells()
        """Where training is, for the flight recorder."""
        self.on_network: OnNetwork | None = None
        self._attached = 0
        """Which attachment this is; a hook left in an older graph must not speak into a newer one."""
        self.tape = Tape()
        self.compiled = CompiledCode(self)
        self.seams = Seams(self)
        self._listener: Listener | None = None
        self._reset()

    def _reset(self) -> None:
        self._live = False
        self.forwards = 0
        """Forwards of value_and_grad under way."""
        self.depth = 0
        """Networks under way: cells called now belong to one."""
        self.instead_of_updates: list[Sequence[Any]] | None = None
        """While a compiled step is run in PyNative: what optimizers would have been given."""
        self.rehearsed: EagerStep | None = None
        """The compiled step under way, as it came out in PyNative."""
        self._result: Any = None
        self.capsule = self.tape.playing = None
        self.updates = Updates(self)
        self._heard: set[int] = set()
        """Rows of the step whose gradient has a hook waiting for it."""
        self._initial: dict[int, weakref.ref[ms.Parameter]] = {}

    # ---- life ----

    def extend(self, session: SessionPort) -> Extension:
        return extend(session, self)

    def witness(self) -> MindSporeWitness:
        return MindSporeWitness(self)

    def attach(self, listener: Listener) -> None:
        if self._listener is not None:
            return
        self._reset()
        self._listener = listener
        self._attached += 1
        self.names = Names(listener.catalog)
        self.flow = Flow(listener, tensors.memory_of, tensors.glance_at)
        self.flow.holding = self.level != "op"
        self.operators = OperatorWatch(self)
        self.tape.arm(True)  # whether it is wanted is known once training is live, and then the first step is under way
        self.seams.install()
        if not _fork_handler:
            os.register_at_fork(after_in_child=self._forked)
            _fork_handler.append(True)
        self.busy = False

    def detach(self) -> None:
        if self._listener is not None:
            self.updates.close()
        self.busy = True
        self.seams.remove()
        self._listener = None
        self.level = "off"
        self.thread = 0
        self.tape.arm(False)
        self._reset()

    def leave_step(self, error: BaseException | None = None) -> None:
        if self._live and not raised_inside(error):
            self.updates.leave(ends=True)

    def set_level(self, level: Level) -> None:
        self.level = level
        if self._listener is not None:
            self.flow.keeping = level == "op"
            self.flow.holding = level != "op"

    def replaying(self, listener: Listener, flow: Flow, operators: OperatorWatch, cells: Cells) -> None:
        """Look at a replay, through these, until the attributes from before are put back."""
        self._listener, self.flow, self.operators, self.cells = listener, flow, operators, cells
        self.level, self.on_network = "op", None
        self.network_ran, self.forwards, self.depth, self._result = False, 0, 0, None
        self.updates, self._heard = Updates(self, rerun=True), set()

    def adopt(self, model: object, optimizer: object | None = None) -> None:
        if isinstance(model, nn.Cell):
            self.names.adopt(model)
        if isinstance(optimizer, OPTIMIZERS):
            self.names.optimizer(optimizer, sys._getframe(1))

    def take_cost(self) -> float:
        cost, self.cost_ns = self.cost_ns, 0
        return cost * 1e-9

    def _forked(self) -> None:
        """A forked child (a data loader's worker) is nobody's training."""
        self.busy = True

    @property
    def is_live(self) -> bool:
        return self._live

    @property
    def listening(self) -> Listener | None:
        return self._listener

    @property
    def listener(self) -> Listener:
        assert self._listener is not None, "the MindSpore adapter is not attached"
        return self._listener

    def gradient(self, parameter: Any) -> Any | None:
        """What the optimizer is being given for this parameter; known between before_update and step_done."""
        return self.updates.gradients.get(id(parameter))

    # ---- cells ----

    def cell_called(self, call: Callable[..., Any], cell: nn.Cell, args: Any, kwargs: Any) -> Any:
        if isinstance(cell, OPTIMIZERS):
            if self.instead_of_updates is not None:
                self.instead_of_updates.append(tensors.leaves(args[0] if args else ()))
                return ms.Tensor(True)
            return self.updates.update(
                lambda: call(cell, *args, **kwargs), cell, args[0] if args else (), sys._getframe(2)
            )
        cells = self.cells
        cells[ENTERED] = entered = cells[ENTERED] + 1
        cells[TRAIL + (entered & TRAIL_MASK)] = id(cell)
        if self.depth:
            if self.level in ("off", "guard") or not _pynative_executor.enable_grad():
                return call(cell, *args, **kwargs)
            return self._cell(call, cell, args, kwargs, sys._getframe(2))
        if context.get_context("mode") == context.GRAPH_MODE and os.getenv("MS_JIT") != "0":
            return self.compiled.network(call, cell, args, kwargs, sys._getframe(2))
        outermost = not self.forwards
        if not _pynative_executor.enable_grad() or (outermost and not cell.requires_grad):
            return call(cell, *args, **kwargs)
        return self._network(call, cell, args, kwargs, outermost, sys._getframe(2))

    def _network(
        self, call: Callable[..., Any], cell: nn.Cell, args: Any, kwargs: Any, outermost: bool, frame: FrameType
    ) -> Any:
        """A cell that no other watched cell called. MindSpore's own wrappers are looked through."""
        wrapper = isinstance(cell, WRAPPERS)
        if outermost:
            self.updates.close(frame)
        with self.guarded("before a network"):
            if outermost:
                args, kwargs = self.loop_called(cell, args, kwargs)
            self.tape.begins()
            if not wrapper:
                self._network_called(cell)
                if self.on_network is not None:
                    self.on_network(args, kwargs, frame)
        self.enters(FORWARD)
        with self._recording(outermost):
            self.forwards += wrapper
            self.depth += not wrapper
            try:
                result = call(cell, *args, **kwargs) if wrapper else self._cell(call, cell, args, kwargs, frame)
            finally:
                self.forwards -= wrapper
                self.depth -= not wrapper
        self.enters(BETWEEN)
        if outermost:
            self._result = result
        return result

    def _cell(self, call: Callable[..., Any], cell: nn.Cell, args: Any, kwargs: Any, frame: FrameType) -> Any:
        """One cell with gradients on: rows for what goes in and comes out."""
        seen: Call | None = None
        if self.level in ("module", "op"):
            with self.guarded("before a cell"):
                node, name = self.names.node(cell, frame)
                seen = self.flow.enter(node, name, tensors.leaves((args, kwargs) if kwargs else args))
                code = getattr(cell.bprop, "__code__", None) if cell.has_bprop and self.level == "op" else None
                if seen is not None and code is not None:
                    self.flow.own_backward(seen, source_line(code.co_filename, code.co_firstlineno))
        try:
            out = call(cell, *args, **kwargs)
        except BaseException as error:
            self._raised(error, seen)
            raise
        if seen is not None:
            with self.guarded("after a cell"):
                for tensor, row in self.flow.leave(seen, tensors.leaves(out)):
                    self.hear(tensor, row)
        return out

    def _network_called(self, cell: nn.Cell) -> None:
        self.names.adopt(cell)
        if self.capsule is not None:
            self.capsule.network_begins(cell)
        self.tape.network_begins(cell)
        self.network_ran = self.network_ran or bool(cell.trainable_params())
        self.go_live()

    def hear_gradient(self, tensor: Any) -> None:
        """Have the gradient of this tensor told when backward reaches it; one hook per tensor and step."""
        row = self.flow.row_of(tensor)
        if row is not None and self.flow.has_maker(row):
            self.hear(tensor, row)

    def hear(self, tensor: Any, row: int) -> None:
        if row in self._heard or isinstance(tensor, ms.Parameter):
            return
        step, attached = self.listener.step, self._attached

        def arrived(gradient: Any) -> Any:
            if attached == self._attached and self._listener is not None and self._listener.step == step:
                with self.guarded("a gradient"):
                    for one in tensors.leaves(gradient)[:1]:
                        self.flow.gradient_of(row, one)
            return gradient

        try:
            arrived.handle = tensor.register_hook(arrived)  # type: ignore[attr-defined]
        except RuntimeError:  # it needs no gradient: a mask, or what frozen weights made
            return
        self._heard.add(row)

    def unhook(self, inputs: Sequence[Any]) -> None:
        """A hook on what goes into compiled code would be compiled with it, and the compiler knows little Python."""
        for tensor in inputs:
            for hook in tensor.hooks():
                handle = getattr(hook, "handle", None)
                if handle is not None and hook.__module__ == __name__:
                    handle.remove()

    # ---- forward and backward ----

    def forward_called(self, forward: Callable[..., Any], function: Any, args: Any, kwargs: Any) -> Any:
        """The forward of value_and_grad; for TrainOneStepCell, whose network has run already, it only answers."""
        ran = self._result
        with self.guarded("before a forward"):
            if ran is None:
                self.updates.forward_begins(function, sys._getframe(2))
            if not self.forwards:
                args, kwargs = self.loop_called(function, args, kwargs)
            self.tape.begins()
            self.tape.forward(function, args, kwargs)
        with self._recording(self.forwards == 0):
            self.forwards += 1
            try:
                result = forward(function, *args, **kwargs)
            except BaseException as error:
                self._raised(error, None)
                raise
            finally:
                self.forwards -= 1
        self._result = result if tensors.leaves(result) else ran
        return result

    def backward_called(
        self, gradient: Callable[..., Any], executor: Any, obj: Any, operation: Any, weights: Any, rest: Any
    ) -> Any:
        result, self._result = self._result, None
        if weights is not None:
            with self.guarded("at backward"):
                if self.capsule is not None:
                    rest = self.capsule.instead(rest)
                self.updates.tell_loss(result)
                self.updates.differentiated(weights)
                self.tape.backward_begins(result, obj, operation, weights, rest)
        self.busy = True
        self.enters(BACKWARD)
        try:
            result = gradient(executor, obj, operation, weights, *rest)
            self.enters(BETWEEN)
            with self.guarded("after backward"):
                self.flow.backward_ends()
                self.tape.backward_ends(result)
                self.updates.arrived(result, weights)
            return result
        except BaseException as error:
            self._raised(error, None)
            raise
        finally:
            self.busy = self._listener is None

    def step_ended(self) -> None:
        """Forget the step; the listener has begun the next."""
        self.flow.end_step()
        self.tape.clear()
        self.search = self.replayed = self.rehearsed = None
        self._heard.clear()
        self.network_ran = False

    # ---- manners ----

    def undisturbed(self, run: Callable[[], Any]) -> Any:
        """Run MindSpore's own code without listening inside."""
        self.busy = True
        try:
            return run()
        except BaseException as error:
            self._raised(error, None)
            raise
        finally:
            self.busy = self._listener is None

    def go_live(self) -> None:
        if not self._live:
            self._live = True
            self.thread = get_ident()
            goes_on_with = self.clock.own()
            try:
                self.listener.going_live(self)
            finally:
                self.tell_initial()
                self.clock.back(goes_on_with)

    def tell_initial(self) -> None:
        """Step 0: every weight as it was before anything moved it, told once."""
        if self.level not in ("module", "op"):
            return
        new = [
            (name, parameter)
            for name, parameter in self.parameters()
            if (known := self._initial.get(id(parameter))) is None or known() is not parameter
        ]
        if new:
            self._initial.update({id(parameter): weakref.ref(parameter) for _, parameter in new})
            self.listener.initial(self, self.flow.initial(new))

    def _recording(self, outermost: bool) -> Any:
        """At op level the dispatcher listens for the length of an outermost forward."""
        return self.operators if outermost and self.level == "op" and not self.forwards else Nothing()

    def _raised(self, error: BaseException, call: Call | None) -> None:
        where = call.name if call is not None else self.flow.stack[-1].name
        if call is not None:
            self.flow.unwind(call)
        with self.guarded("at an exception"):
            self.flow.settle()
        if isinstance(error, Exception) and not hasattr(error, "__misstep_told__") and self._listener is not None:
            with self.guarded("at an exception"):
                error.__misstep_told__ = True  # type: ignore[attr-defined]
                self._listener.exception(self, error, where)

    def guarded(self, where: str) -> Guard:
        """Our own code among theirs: what fails inside is told to the listener and goes no further."""
        return Guard(self, where)


_fork_handler: list[bool] = []
