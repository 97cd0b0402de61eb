"""The fake framework, seen by misstep: the shortest complete adapter, and the first to read before writing another."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.adapters.base import Defaults, Listener, Place, Update
from misstep.adapters.source import user_source
from misstep.adapters.step.calls import Call, Memory
from misstep.adapters.step.flow import Flow
from misstep.adapters.step.nests import leaves_in
from misstep.core.levels import Level
from misstep.core.stats import DTYPE_CODES
from misstep.testing import fake_framework
from misstep.testing.fake_framework import Descent, FakeModel, FakeParameter, FakeTensor


class FakeAdapter(Defaults):
    """Everything an adapter must do, on a framework that hides nothing."""

    name = "fake"

    def __init__(self) -> None:
        self._level: Level = "module"
        self._listener: Listener | None = None
        self._cost_ns = 0
        self._forget()

    def _forget(self) -> None:
        self._roots: list[weakref.ref[FakeModel]] = []
        self._names: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._users: dict[str, list[int]] = {}
        self._hooked: set[int] = set()
        self._losses: list[float] = []
        self._live = False
        self._blamed: BaseException | None = None

    # ---- what the session asks ----

    def attach(self, listener: Listener) -> None:
        self._forget()
        self._listener = listener
        self._flow = Flow(listener, _memory)
        fake_framework.observer = self

    def detach(self) -> None:
        fake_framework.observer = None
        self._listener = None
        self._forget()

    def leave_step(self, error: BaseException | None = None) -> None:
        if self._live and (self._losses or not self._listening().frame.all_finite):
            self._left()

    def set_level(self, level: Level) -> None:
        self._level = level
        if self._listener is not None:
            self._flow.keeping = level == "op"

    def take_cost(self) -> float:
        cost, self._cost_ns = self._cost_ns, 0
        return cost * 1e-9

    def adopt(self, model: object, optimizer: object | None = None) -> None:
        if not isinstance(model, FakeModel) or id(model) in self._names:
            return
        listener, first = self._listening(), not self._roots
        self._roots.append(weakref.ref(model))
        root = type(model).__name__
        for path, module in model.named_modules():
            name = root if not path else path if first else f"{root}.{path}"
            self._names.setdefault(id(module), (weakref.ref(module), name))
        for name, parameter in model.named_parameters():
            self._names[id(parameter)] = (weakref.ref(parameter), name if first else f"{root}.{name}")
        for _, module in model.named_modules():
            node = listener.catalog.node(self._names[id(module)][1], "module", type(module).__name__)
            for value in vars(module).values():
                if isinstance(value, FakeParameter):
                    self._users.setdefault(self._names[id(value)][1], []).append(node)

    def parameters(self) -> Iterator[tuple[str, FakeParameter]]:
        for root in self._roots:
            model = root()
            if model is not None:
                for _, parameter in model.named_parameters():
                    yield self._names[id(parameter)][1], parameter

    def buffers(self) -> Iterator[tuple[str, Any]]:
        return iter(())

    def gradient(self, parameter: FakeParameter) -> FakeTensor | None:
        return parameter.gradient

    def array(self, tensor: FakeTensor) -> NDArray[Any]:
        return tensor.data

    def dtype_name(self, tensor: FakeTensor) -> str:
        return str(tensor.data.dtype)

    def versions(self) -> dict[str, str]:
        return {"fake": "1", "numpy": np.__version__}

    def rank(self) -> tuple[int, int]:
        return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))

    # ---- the seams, called by the framework ----

    def module(self, module: FakeModel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = None
        if fake_framework.recording():
            call = self._guarded("entering a module", lambda: self._enter(module, args, kwargs))
        try:
            out = module.forward(*args, **kwargs)
        except Exception as error:
            self._raised(call, error)
            raise
        if call is not None:
            self._guarded("leaving a module", lambda: self._leave(call, out))
        return out

    def before_operator(self, name: str, inputs: tuple[FakeTensor, ...]) -> Call | None:
        if self._level != "op" or not fake_framework.recording():
            return None
        result: Call | None = self._guarded("an operator", lambda: self._before_operator(name, inputs))
        return result

    def after_operator(self, call: Call, out: FakeTensor) -> None:
        self._guarded("an operator", lambda: self._flow.after_operator(call, [out]))
        self._guarded("an operator", lambda: self._hook(out))

    def before_backward(self, loss: FakeTensor) -> None:
        self._guarded("backward", lambda: self._loss(loss))

    def before_update(self, optimizer: Descent) -> None:
        self._guarded("before an update", lambda: self._before_update(optimizer))

    def after_update(self, optimizer: Descent) -> None:
        self._guarded("after an update", lambda: self._after_update(optimizer))
        self._guarded("the end of a step", lambda: self._end_step(optimizer))

    # ---- what happens there ----

    def _enter(self, module: FakeModel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        if id(module) not in self._names:
            self.adopt(module)
        if len(self._flow.stack) == 1 and not np.isfinite(self._losses).all():
            self._left()
        self._go_live()
        if self._level in ("off", "guard"):
            return None
        name = self._names[id(module)][1]
        node = self._listening().catalog.node(name, "module", type(module).__name__)
        return self._flow.enter(node, name, list(leaves_in((args, kwargs), FakeTensor)))

    def _leave(self, call: Call, out: Any) -> None:
        tensors = list(leaves_in(out, FakeTensor))
        self._flow.leave(call, tensors)
        for tensor in tensors:
            self._hook(tensor)

    def _before_operator(self, name: str, inputs: tuple[FakeTensor, ...]) -> Call | None:
        node, full = self._flow.operator_node(name, user_source(sys._getframe(2), fake_framework.__file__, __file__))
        return self._flow.before_operator(node, full, inputs)

    def _hook(self, tensor: FakeTensor) -> None:
        """One hook per tensor, however many modules returned it."""
        row = self._flow.row_of(tensor)
        if row is None or row in self._hooked:
            return
        self._hooked.add(row)
        tensor.hooks.append(lambda value: self._guarded("a gradient", lambda: self._flow.gradient_of(row, value)))

    def _loss(self, loss: FakeTensor) -> None:
        self._go_live()
        self._losses.append(float(loss.data))
        if self._level != "off":
            self._flow.loss(loss)

    def _before_update(self, optimizer: Descent) -> None:
        self._flow.backward_ends()
        listener = self._listening()
        self._go_live()
        named = [
            (name, parameter, parameter.gradient, self._users.get(name, ()))
            for parameter in optimizer.parameters
            if parameter.gradient is not None and (name := self._parameter_name(parameter))
        ]
        if self._level == "guard":
            bad = self._flow.bad_only([gradient for _, _, gradient, _ in named])
            named = [entry for place, entry in enumerate(named) if place in bad]
        if self._level != "off":
            self._flow.gradients(named)
        if listener.stepping:
            listener.at_node(Place(self._optimizer_node(optimizer), "optimizer", "before", "optimizer"))
        listener.before_update(self)

    def _after_update(self, optimizer: Descent) -> None:
        listener, weights = self._listening(), optimizer.parameters
        if self._level == "guard":
            bad = self._flow.bad_only(weights)
            weights = [weight for place, weight in enumerate(weights) if place in bad]
        if self._level != "off":
            self._flow.weights((self._parameter_name(weight), weight) for weight in weights)
        if listener.stepping:
            listener.at_node(Place(self._optimizer_node(optimizer), "optimizer", "after", "optimizer"))
        listener.after_update(self)

    def _left(self) -> None:
        """A step without an update: what was seen of it is all there will be."""
        if self._level != "off":
            self._listening().before_update(self)
            self._end_step(None)

    def _end_step(self, optimizer: Descent | None) -> None:
        losses, self._losses = tuple(self._losses), []
        update = Update(
            losses[-1] if losses else None,
            losses if len(losses) > 1 else (),
            None if optimizer is None else optimizer.learning_rate,
            "" if optimizer is None else type(optimizer).__name__,
            left=optimizer is None,
        )
        try:
            self._listening().step_done(self, update)
        finally:
            self._flow.end_step()
            self._hooked.clear()

    def _go_live(self) -> None:
        if not self._live:
            self._live = True
            try:
                self._listening().going_live(self)
            finally:
                if self._level in ("module", "op"):
                    self._listening().initial(self, self._flow.initial(self.parameters()))

    def _parameter_name(self, parameter: FakeParameter) -> str:
        known = self._names.get(id(parameter))
        if known is None:
            known = self._names[id(parameter)] = (weakref.ref(parameter), f"param.{len(self._names)}")
        return known[1]

    def _optimizer_node(self, optimizer: Descent) -> int:
        return self._listening().catalog.node("optimizer", "optimizer", type(optimizer).__name__, phase="optimizer")

    def _raised(self, call: Call | None, error: BaseException) -> None:
        if call is not None:
            self._flow.unwind(call)
        if self._listener is not None and self._blamed is not error:
            self._blamed = error
            where = f"forward of {call.name}" if call is not None else "forward"
            self._guarded("an exception", lambda: self._listening().exception(self, error, where))

    def _guarded(self, where: str, action: Callable[[], Any]) -> Any:
        start = perf_counter_ns()
        try:
            return action()
        except Exception as error:
            if self._listener is not None:
                self._listener.trouble(where, error)
            return None
        finally:
            self._cost_ns += perf_counter_ns() - start

    def _listening(self) -> Listener:
        assert self._listener is not None, "the fake adapter is not attached"
        return self._listener


def _memory(tensor: FakeTensor) -> Memory:
    data, keep = tensor.data, None
    if not data.flags.c_contiguous:
        data = keep = np.ascontiguousarray(data)
    return Memory(data.ctypes.data, data.size, DTYPE_CODES.get(data.dtype.name, 0), data.shape, keep=keep)


__all__ = ["FakeAdapter", "FakeModel", "FakeTensor"]
