"""An optimizer's update, run again after it left something non-finite behind.

    before an update ─► weights and state are copied, where that costs next to nothing
    it wrote NaN ─────► they are put back ─► the update again, not compiled, every operator watched
                                         └─► the same bits as it wrote? ─► what it wrote is put back

Optimizers of MindSpore are compiled even in PyNative; uncompiled they run the same kernels. Without a copy the update
runs from what it left: finite elements as they are, others from zero. Whatever divides by zero or multiplies by an
infinite learning rate does so again; that is enough to name the operator, and it is said that it was not exact.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.graph.api import _pynative_executor

from misstep.adapters.mindspore import tensors
from misstep.adapters.mindspore.graph.pynative_mode import pynative
from misstep.adapters.mindspore.names import users_line
from misstep.adapters.mindspore.replay.rerun import stage
from misstep.adapters.mindspore.replay.state import Copies, NetworkState, Randomness, apart, attributes_of
from misstep.adapters.mindspore.seams.operators import NO_OPERATORS, OperatorWatch
from misstep.adapters.replaying.affordable import Purse
from misstep.adapters.replaying.protocol import Replayed
from misstep.adapters.step.flow import Flow
from misstep.errors import ReplayError
from misstep.sentences import replay as texts

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter

_SECONDS_PER_TENSOR = 2e-6
_LARGEST_BEFORE = 64 << 20
"""Bytes an operator may overwrite for which the values before it are still at hand when it makes something bad."""


class HeldUpdate:
    """The update under way, as it was called."""

    def __init__(self) -> None:
        self.optimizer: nn.Cell | None = None
        self.gradients: Sequence[Any] = ()
        self.run: Callable[[], Any] | None = None
        self.values = Copies()
        """Weights and state; empty when they would have cost too much."""
        self.python: tuple[NetworkState, Randomness] | None = None
        """Attributes and random numbers, which only an optimizer of the user's own changes."""
        self._purse = Purse(_SECONDS_PER_TENSOR)
        self._known: tuple[weakref.ref[nn.Cell], list[Any], int] | None = None

    def hold(
        self, optimizer: nn.Cell, gradients: Sequence[Any], run: Callable[[], Any], *, at_any_cost: bool = False
    ) -> None:
        """Called before every update."""
        self._purse.step()
        self.optimizer, self.gradients, self.run = optimizer, gradients, run
        state, size = self._state_of(optimizer)
        if self._purse.affords(len(state), size, at_any_cost=at_any_cost):
            self.values.take(state)
        else:
            self.values.let_go()
        if not _is_mindspores(optimizer):
            self.python = NetworkState(optimizer, [], list(attributes_of(optimizer))), Randomness.now()

    def let_go(self) -> None:
        """The update is over and done with; the memory of the copies is used again."""
        self.optimizer = self.run = self.python = None
        self.gradients = ()

    def _state_of(self, optimizer: nn.Cell) -> tuple[list[Any], int]:
        """Tensors, and their bytes. Searched once, but for an optimizer of the user's own: that may make new tensors at
        every step."""
        if self._known is not None and self._known[0]() is optimizer and _is_mindspores(optimizer):
            return self._known[1:]
        every = state_of(optimizer)
        state = [tensor for tensor in every if not tensor.has_init]
        size = sum(int(tensor.nbytes) for tensor in state)
        self._known = (weakref.ref(optimizer), state, size) if len(state) == len(every) else None
        return state, size


class UpdateWatch(OperatorWatch):
    """The operators of an update. Those of MindSpore write to weights and state, and what they return is memory that
    nobody filled: whatever they wrote to counts as their output."""

    def __init__(self, adapter: MindSporeAdapter, state: Sequence[Any]) -> None:
        super().__init__(adapter)
        # Reversed: of several that share their memory the first, a weight, is the one that counts.
        self.state = {tensor.data_ptr(): tensor for tensor in reversed(state) if tensor.size}

    def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
        name, flow = func.name, self.adapter.flow
        if name in NO_OPERATORS:
            return func(*args, **(kwargs or {}))
        self.refuse_to_wait(name)
        inputs = [self.state.get(tensor.data_ptr(), tensor) for tensor in tensors.leaves((args, kwargs))]
        mine = Copies([tensor for tensor in inputs if tensor.size and tensor.data_ptr() in self.state])
        self._keep_for_verdict(mine)
        node, full = flow.operator_node(name, users_line(sys._getframe(1)), "optimizer")
        call = flow.before_operator(node, full, inputs, "optimizer")
        out = func(*args, **(kwargs or {}))
        _pynative_executor.sync()
        if call is not None:
            flow.after_operator(call, mine.differing() or tensors.leaves(out), "optimizer")
        return out

    def _keep_for_verdict(self, before: Copies) -> None:
        """What the operator is given, for whoever keeps the values a verdict speaks of."""
        earlier = getattr(self.adapter.listener.wants, "earlier", None)
        if earlier is None:
            return
        earlier.clear()
        for tensor, array in zip(before.tensors, before.arrays):
            values = tensors.array(tensor)
            if values.nbytes <= _LARGEST_BEFORE and values.dtype.kind in "fiub":
                earlier[id(tensor)] = ms.Tensor(array.view(values.dtype).reshape(values.shape))


def replay_update(adapter: MindSporeAdapter) -> tuple[Replayed, Flow]:
    """The update that just ended, again; what was seen, and the flow that saw it."""
    began = perf_counter_ns()
    held = adapter.updates.held
    if held.optimizer is None:
        raise ReplayError(texts.UPDATE_COMPILED.of())
    with stage(adapter) as flow:
        adapter.busy = True  # an optimizer calls cells of its own: the schedule of its learning rate
        named = [(adapter.names.parameter(weight), weight) for weight in held.optimizer.parameters]
        flow.gradients((name, weight, gradient, ()) for (name, weight), gradient in zip(named, held.gradients))
        exact = run_again(adapter, held, flow)
        flow.weights(named, watched=True)
    return Replayed(flow.listener.frame, exact, (perf_counter_ns() - began) * 1e-9), flow


def run_again(adapter: MindSporeAdapter, held: HeldUpdate, flow: Flow) -> str:
    """Rows for the operators of the held update; how exactly it came out. Everything is as before afterwards."""
    optimizer = held.optimizer
    assert optimizer is not None
    assert held.run is not None
    wrote = Copies(held.values.tensors or [one for one in state_of(optimizer) if not one.has_init])
    state = wrote.tensors
    gradients = Copies(held.gradients)
    randomness = Randomness.now()
    try:
        with _as_it_began(held, wrote), pynative():
            flow.found((adapter.names.parameter(one), one) for one in state if isinstance(one, ms.Parameter))
            scope = flow.enter(adapter.names.optimizer(optimizer), "optimizer", ())
            watch = UpdateWatch(adapter, state)
            watch.alone = adapter.rank()[1] > 1
            with _in_place(flow), watch:
                held.run()
            _pynative_executor.sync()
            if scope is not None:
                flow.unwind(scope)
            otherwise = wrote.differing()
    finally:
        wrote.put_back()
        gradients.put_back()
        randomness.restore()
    if not held.values.tensors:
        return texts.NOT_EXACT.of(why=texts.FROM_WHAT_IT_LEFT.of())
    if otherwise:
        first = getattr(otherwise[0], "name", "its state")
        return texts.NOT_EXACT.of(why=texts.UPDATE_WROTE_OTHER.of(name=first))
    return texts.EXACT.of()


@contextlib.contextmanager
def _as_it_began(held: HeldUpdate, wrote: Copies) -> Iterator[None]:
    """Weights, state, attributes and random numbers from before the update, as far as they were held."""
    assert held.optimizer is not None
    cells = [cell for _, cell in held.optimizer.cells_and_names()]
    with apart(cells), contextlib.redirect_stdout(io.StringIO()):
        if held.values.tensors:
            held.values.put_back()
        else:
            _make_finite(wrote, held.optimizer)
        if held.python is not None:
            attributes, randomness = held.python
            attributes.put_in()
            randomness.restore()
        yield


@contextlib.contextmanager
def _in_place(flow: Flow) -> Iterator[None]:
    """Have `set_data` write into a parameter's memory, instead of giving it other memory: whatever was compiled goes on
    with the memory it knows. MindSpore calls it where an update says `self.beta1_power = …`."""
    original = ms.Parameter.set_data

    def set_data(parameter: Any, data: Any, slice_shape: bool = False) -> Any:
        if (parameter.shape, parameter.dtype) != (data.shape, data.dtype) or data.has_init:
            return original(parameter, data, slice_shape)
        row, plain = flow.row_of(data), data.contiguous()
        ctypes.memmove(parameter.data_ptr(), plain.data_ptr(), int(plain.nbytes))
        if row is not None:
            flow.holds(parameter, row)
        return parameter

    ms.Parameter.set_data = set_data
    try:
        yield
    finally:
        ms.Parameter.set_data = original


def _make_finite(wrote: Copies, optimizer: nn.Cell) -> None:
    """Zero where an update left NaN or Inf; a learning rate, which it did not write, stays."""
    weights = {id(weight) for weight in optimizer.parameters}
    for tensor, array in zip(wrote.tensors, wrote.arrays):
        values = array.copy().view(tensors.array(tensor).dtype)
        if np.isfinite(values.astype(np.float64)).all() or (len(values) == 1 and id(tensor) not in weights):
            continue
        values[~np.isfinite(values.astype(np.float64))] = 0
        ctypes.memmove(tensor.data_ptr(), values.ctypes.data, values.nbytes)


def state_of(optimizer: nn.Cell) -> list[Any]:
    """Weights first, then everything else an optimizer keeps in tensors."""
    inside = tensors.leaves(list(vars(optimizer).values()))
    return list({id(one): one for one in (*optimizer.parameters, *optimizer.get_parameters(), *inside)}.values())


def _is_mindspores(optimizer: nn.Cell) -> bool:
    return type(optimizer).__module__.startswith("mindspore.")
