"""Where MindSpore is opened: functions replaced while attached, and put back by `remove`.

    Cell.__call__                           cells; optimizers, which are cells; the root of a compiled network
    _pynative_func_grad_forward             the forward of value_and_grad, grad, vjp: begin, end, loss
    _PyNativeExecutor.grad                  backward: begin and end
    _JitExecutor.__call__                   a compiled function
    Tensor.__setitem__ and others           writes in place: see inplace_writes.py
    Dropout.__call__                        masks, drawn by a generator nobody can put back
    Optimizer.__init__                      how many optimizers there are

Each replacement asks first whether anybody is interested, so that what is not watched costs one test.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

from mindspore.graph import api
from mindspore.nn.cell import Cell
from mindspore.ops.composite import base as composite
from mindspore.ops.function.grad import grad_func
from mindspore.ops.operations import Dropout

from misstep.adapters.mindspore.looking import FactSeam
from misstep.adapters.mindspore.names import OPTIMIZERS
from misstep.adapters.mindspore.replay.tape import masked
from misstep.adapters.mindspore.seams.inplace_writes import writers
from misstep.adapters.mindspore.seams.loading import loading
from misstep.adapters.mindspore.tensors import leaves, waiting
from misstep.adapters.timing.clock import Clock
from misstep.adapters.timing.compilations import Compilations
from misstep.adapters.timing.loaders import Loaders

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter


class Seams:
    """The replaced functions of MindSpore."""

    def __init__(self, adapter: MindSporeAdapter) -> None:
        self.adapter = adapter
        self._undo: list[Callable[[], None]] = []
        self._made: list[weakref.ref[Any]] = []
        self.forward: Callable[..., Any] = composite._pynative_func_grad_forward
        self.gradient: Callable[..., Any] = api._PyNativeExecutor.grad
        """MindSpore's own forward and backward, for whoever runs a step again."""
        self.clock = Clock(adapter)
        self.clock.waits = lambda: waiting.ns
        self.loaders = Loaders()
        self.facts = FactSeam(adapter)
        self.compilations = Compilations()

    def install(self) -> None:
        adapter = self.adapter
        self.facts = FactSeam(adapter)
        call = Cell.__call__

        def cell_call(cell: Any, *args: Any, **kwargs: Any) -> Any:
            if adapter.busy or adapter.thread not in (0, get_ident()):
                return call(cell, *args, **kwargs)
            output = adapter.cell_called(call, cell, args, kwargs)
            if self.facts.looking and not adapter.busy:
                self.facts.cell_done(cell, args, output)
            return output

        forward = self.forward = composite._pynative_func_grad_forward

        def grad_forward(function: Any, *args: Any, **kwargs: Any) -> Any:
            if adapter.busy or adapter.thread not in (0, get_ident()):
                return forward(function, *args, **kwargs)
            return adapter.forward_called(forward, function, args, kwargs)

        gradient = self.gradient = api._PyNativeExecutor.grad

        def grad(executor: Any, obj: Any, operation: Any, weights: Any, *rest: Any) -> Any:
            if adapter.busy or adapter.thread not in (0, get_ident()):
                return gradient(executor, obj, operation, weights, *rest)
            self.facts.backward_begins(weights)
            gradients = adapter.backward_called(gradient, executor, obj, operation, weights, rest)
            self.facts.backward_ends(gradients, weights)
            return gradients

        compiled = api._JitExecutor.__call__

        def jit_call(executor: Any, *args: Any, **kwargs: Any) -> Any:
            if adapter.thread:  # whatever the user kept of a step that is over, also inside of backward
                with adapter.guarded("before a compiled function"):
                    adapter.unhook(leaves((args, kwargs)))
            if adapter.busy or adapter.thread not in (0, get_ident()):
                return compiled(executor, *args, **kwargs)
            return adapter.compiled.function(compiled, executor, args, kwargs)

        drop = Dropout.__call__

        def dropout(operator: Any, x: Any) -> Any:
            tape = adapter.tape
            if tape.playing is not None and adapter.thread == get_ident():
                mask = next(tape.playing, None)
                return drop(operator, x) if mask is None else masked(operator, x, mask)
            result = drop(operator, x)
            if not adapter.busy and adapter.thread == get_ident():
                tape.drew(result[1])
            return result

        self._replace(Cell, "__call__", cell_call)
        self._replace(Dropout, "__call__", dropout)
        self._replace(composite, "_pynative_func_grad_forward", grad_forward)
        self._replace(grad_func, "_pynative_func_grad_forward", grad_forward)
        self._replace(api._PyNativeExecutor, "grad", grad)
        self._replace(api._JitExecutor, "__call__", jit_call)
        for kind in OPTIMIZERS:
            self._replace(kind, "__init__", self._counted(kind.__init__))
        self.clock.restart()
        for owner, name, timed in loading(adapter):
            self._replace(owner, name, timed)
        for owner, name, write in writers(adapter):
            self._replace(owner, name, write)

    def several_optimizers(self) -> bool:
        """Whether the program has more than one now, called already or not."""
        return len(self.optimizers()) > 1

    def optimizers(self) -> list[Any]:
        """Those the program has now, called already or not."""
        return [optimizer for made in self._made if (optimizer := made()) is not None]

    def _counted(self, original: Callable[..., None]) -> Callable[..., None]:
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            self._made.append(weakref.ref(optimizer))
            self.facts.met(optimizer, sys._getframe(1))

        return __init__

    def remove(self) -> None:
        self.facts = FactSeam(self.adapter)  # it holds tensors of the step under way
        while self._undo:
            self._undo.pop()()
        self._made.clear()  # of a training that is over, and may linger until the garbage is collected

    def _replace(self, owner: Any, name: str, replacement: Any) -> None:
        own, original = name in vars(owner), getattr(owner, name)
        setattr(owner, name, replacement)

        def undo() -> None:
            if getattr(owner, name) is not replacement:
                return  # somebody patched over us: theirs calls ours, which passes on
            if own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)

        self._undo.append(undo)
