"""Compiled code, from outside: nothing in it can be observed from Python, so it is one step or one place.

A compiled network or function that holds an optimizer is a training step: weights before and after, the loss it
returned. One that runs among watched cells is a place: what went in, what came out. `jit` compiles hooks too, so those
on its inputs are taken off before.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from types import FrameType, MethodType
from typing import TYPE_CHECKING, Any

from mindspore import Parameter, nn

from misstep.adapters.mindspore.functions import closed_over, held_by
from misstep.adapters.mindspore.graph.pynative import CompiledCall, hold_weights, run_eagerly, tell_failure
from misstep.adapters.mindspore.names import OPTIMIZERS
from misstep.adapters.mindspore.seams.by_hand import digests
from misstep.adapters.mindspore.tensors import leaves, scalar_of
from misstep.adapters.step.calls import Call
from misstep.core import segments

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter

_DEEPEST = 3
"""How many functions deep an optimizer is looked for: a step calls a helper that holds it."""

_TRIES = 3
"""Calls of a compiled function, without an optimizer, that leave the weights alone: after these it only computes."""

_KNOWN: dict[int, tuple[Callable[[], Any], list[weakref.ref[nn.Cell]]]] = {}
"""Searched once: a compiled function is called every step."""


class CompiledCode:
    """What the adapter does when compiled code is called."""

    def __init__(self, adapter: MindSporeAdapter) -> None:
        self.adapter = adapter
        self._adopted: set[int] = set()
        self._computes: dict[int, int] = {}
        """By function: how often it was called and moved no weight."""

    def network(self, call: Callable[..., Any], cell: nn.Cell, args: Any, kwargs: Any, frame: FrameType) -> Any:
        """The root of a graph-mode network. With an optimizer inside it is a whole training step."""
        adapter = self.adapter
        optimizers: list[nn.Cell] = []
        with adapter.guarded("before a compiled network"):
            optimizers = optimizers_of(cell)
            if optimizers:
                adapter.names.adopt(cell)
        run = lambda: call(cell, *args, **kwargs)  # noqa: E731
        if not optimizers:
            eagerly = lambda: adapter.cell_called(call, cell, args, kwargs)  # noqa: E731
            return self._without_optimizer(run, cell, CompiledCall(eagerly, ()))
        eagerly = lambda: adapter.cell_called(call, cell, args, kwargs)  # noqa: E731
        return self._step(run, CompiledCall(eagerly, optimizers), frame)

    def function(self, call: Callable[..., Any], executor: Any, args: Any, kwargs: Any) -> Any:
        """A function compiled by `jit`: a training step, a graph-mode gradient, or one place among cells."""
        adapter = self.adapter
        run = lambda: call(executor, *args, **kwargs)  # noqa: E731
        if executor.obj is not None and adapter.depth:
            return adapter.undisturbed(run)  # the construct of a cell: the cell is the place
        optimizers: list[nn.Cell] = []
        with adapter.guarded("before a compiled function"):
            optimizers = optimizers_of(executor.obj or executor.fn)
        compiled = CompiledCall(lambda: executor.fn(*args, **kwargs), optimizers)
        if optimizers:
            with adapter.guarded("before a compiled function"):
                self._adopt(executor.obj or executor.fn)
            return self._step(run, compiled, sys._getframe(2))
        if adapter.forwards or adapter.depth:
            return self._place(run, executor, args, kwargs)
        if executor.fn.__name__ != "after_grad":
            return self._without_optimizer(run, executor.obj or executor.fn, compiled)
        adapter.steps_compiled = True
        adapter.updates.close(sys._getframe(2))
        with adapter.guarded("before a compiled function"):
            self._begin(executor.fn)
        self._rehearse(compiled)
        result = adapter.undisturbed(run)
        with adapter.guarded("after a compiled function"):
            adapter.updates.owe_loss(result)
            weights = next((leaves(value) for name, _, value in closed_over(executor.fn) if name == "weights"), [])
            adapter.updates.differentiated_by_hand(weights, leaves(result)[-len(weights) :] if weights else ())
        return result

    def _without_optimizer(self, run: Callable[[], Any], thing: Any, call: CompiledCall) -> Any:
        """Compiled code that holds no optimizer: it may move weights all the same, and then it was a step."""
        adapter, updates = self.adapter, self.adapter.updates
        weights: list[Any] = []
        with adapter.guarded("before a compiled function"):
            if self._computes.get(id(thing), 0) < _TRIES:
                weights = updates.by_hand.unheld(self._weights(thing))
            before = digests(weights)
            if weights and adapter.tape.armed:
                hold_weights(adapter, call, weights)
        result = adapter.undisturbed(run)
        if weights:
            with adapter.guarded("after a compiled function"):
                moved = digests(weights) != before
                self._computes[id(thing)] = 0 if moved else self._computes.get(id(thing), 0) + 1
                if moved:
                    adapter.steps_compiled = True
                    adapter.tape.compiled = call if adapter.tape.armed else None
                    updates.moved_inside(weights, scalar_of(result))
        return result

    def _weights(self, thing: Any) -> list[Any]:
        """Trainable weights of every network that compiled code uses, and those it names itself."""
        found = [one for network in _search(thing, _DEEPEST, _is_network) for one in network.trainable_params()]
        named = leaves(held_by(getattr(thing, "__wrapped__", thing)))
        found += [one for one in named if isinstance(one, Parameter) and one.requires_grad]
        return list({id(weight): weight for weight in found}.values())

    def _begin(self, function: Any) -> None:
        """The first gradient of a compiled training: its weights are told now, and a pause comes before the step."""
        if not self.adapter.is_live:
            self._adopt(function)
            self.adapter.go_live()

    def _adopt(self, function: Any) -> None:
        """The networks a compiled function uses: nobody will see them called. Searched once a function."""
        if id(function) in self._adopted:
            return
        self._adopted.add(id(function))
        for network in _search(function, _DEEPEST, _is_network):
            self.adapter.names.adopt(network)

    def _rehearse(self, call: CompiledCall) -> None:
        """Run the step in PyNative first, where somebody walks through it or asked for it."""
        adapter = self.adapter
        with adapter.guarded("while running a compiled step in PyNative"):
            if adapter.tape.armed:
                adapter.tape.compiled = call
            listener = adapter.listener
            asked = any(first <= listener.step <= last for first, last in adapter.eager_steps or ())
            walking = adapter.walking and adapter.level in ("module", "op")
            if asked or walking:
                adapter.go_live()  # a failure of whoever hears of it is not one of the step
                try:
                    adapter.rehearsed = run_eagerly(adapter, call, stepping=walking)
                except Exception as error:
                    tell_failure(adapter, error)

    def _step(self, run: Callable[[], Any], call: CompiledCall, frame: FrameType) -> Any:
        adapter, optimizers = self.adapter, call.optimizers
        adapter.steps_compiled = True
        adapter.updates.close()
        adapter.clock.own()
        with adapter.guarded("before a compiled step"):
            adapter.updates.before(optimizers[0], (), frame, whole=True)
        self._rehearse(call)
        with adapter.guarded("before a compiled step"):
            if adapter.tape.compiled is call:
                hold_weights(adapter, call)
        adapter.clock.back(segments.FORWARD)
        result = adapter.undisturbed(run)
        with adapter.guarded("after a compiled step"):
            loss = scalar_of(result)
            adapter.clock.own()
            adapter.clock.settle()
            if loss is not None:
                adapter.updates.tell_loss(loss)
            adapter.compare_with_rehearsal()
        adapter.updates.after(optimizers, frame, whole=True)
        adapter.clock.back(segments.GAP)
        return result

    def _place(self, run: Callable[[], Any], executor: Any, args: Any, kwargs: Any) -> Any:
        """Compiled code among cells that are watched: one node, its insides unseen."""
        adapter = self.adapter
        call: Call | None = None
        with adapter.guarded("before a compiled function"):
            if adapter.level in ("module", "op"):
                title = title_of(executor.fn)
                scope = adapter.flow.stack[-1].name
                name = f"{scope}.{title}" if scope else title
                node = adapter.listener.catalog.node(name, "module", "jit", graph=title)
                call = adapter.flow.enter(node, name, leaves((args, kwargs)))
        try:
            result = adapter.undisturbed(run)
        except BaseException:
            if call is not None:
                adapter.flow.unwind(call)
            raise
        if call is not None:
            with adapter.guarded("after a compiled function"):
                for tensor, row in adapter.flow.leave(call, leaves(result)):
                    adapter.hear(tensor, row)
        return result


def optimizers_of(thing: Any) -> list[nn.Cell]:
    """Optimizers inside a cell, or used by a function through its closure and its globals."""
    known = _KNOWN.get(id(thing))
    if known is None or known[0]() is not thing:
        found = {id(optimizer): weakref.ref(optimizer) for optimizer in _search(thing, _DEEPEST, _is_optimizer)}
        known = _KNOWN[id(thing)] = (_reference(thing), list(found.values()))
    return [optimizer for reference in known[1] if (optimizer := reference()) is not None]


def title_of(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__)).strip("<>")


def _reference(thing: Any) -> Callable[[], Any]:
    """A bound method is made anew at every look; it lives as long as the function below it."""
    return weakref.WeakMethod(thing) if isinstance(thing, MethodType) else weakref.ref(thing)


def _is_optimizer(cell: nn.Cell) -> bool:
    return isinstance(cell, OPTIMIZERS)


def _is_network(cell: nn.Cell) -> bool:
    return not isinstance(cell, OPTIMIZERS) and bool(cell.trainable_params())


def _search(thing: Any, depth: int, wanted: Callable[[nn.Cell], bool]) -> Iterator[nn.Cell]:
    """Cells that a thing is, holds or uses; what is in a wanted one is not looked at."""
    if isinstance(thing, nn.Cell):
        if wanted(thing):
            yield thing
            return
        for _, cell in thing.cells_and_names():
            if cell is not thing and wanted(cell):
                yield cell
    elif depth and callable(thing):
        owner = getattr(thing, "__self__", None)
        if owner is not None:
            yield from _search(owner, depth - 1, wanted)
        for value in held_by(getattr(thing, "__wrapped__", thing)):
            module = getattr(value, "__module__", "") or ""
            if not str(module).startswith("mindspore") or isinstance(value, nn.Cell):
                yield from _search(value, depth - 1, wanted)
