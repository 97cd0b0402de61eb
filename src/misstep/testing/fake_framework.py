"""A framework of two hundred lines, for testing everything above the adapters without waiting for a real one.

It differentiates numpy by a tape, has modules, containers, shared weights, an optimizer and a switch for evaluation,
and can be told to go wrong. Its one seam is `observer`: whoever is put there hears of every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

observer: Any = None
"""An object with the methods of FakeAdapter's seams, or None."""

_recording = True


@contextmanager
def no_gradients() -> Iterator[None]:
    """Evaluation: nothing is taped inside."""
    global _recording
    before, _recording = _recording, False
    try:
        yield
    finally:
        _recording = before


def recording() -> bool:
    return _recording


class FakeTensor:
    """An array that remembers how it was computed."""

    def __init__(self, data: Any, parents: tuple[FakeTensor, ...] = (), pull: Callable[..., Any] | None = None) -> None:
        self.data = np.asarray(data)
        self.parents = parents
        self.pull = pull
        self.hooks: list[Callable[[FakeTensor], None]] = []

    def backward(self) -> None:
        if observer is not None:
            observer.before_backward(self)
        gradients = {id(self): np.ones_like(self.data)}
        for tensor in _backward_order(self):
            gradient = gradients.pop(id(tensor), None)
            if gradient is None:
                continue
            for hook in tensor.hooks:
                hook(FakeTensor(gradient))
            if isinstance(tensor, FakeParameter):
                tensor.gradient = FakeTensor(gradient + (0 if tensor.gradient is None else tensor.gradient.data))
            if tensor.pull is None:
                continue
            for parent, part in zip(tensor.parents, tensor.pull(gradient)):
                gradients[id(parent)] = part + gradients[id(parent)] if id(parent) in gradients else part


class FakeParameter(FakeTensor):
    """A weight."""

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        self.gradient: FakeTensor | None = None


def _backward_order(last: FakeTensor) -> list[FakeTensor]:
    order: list[FakeTensor] = []
    seen: set[int] = set()

    def visit(tensor: FakeTensor) -> None:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            for parent in tensor.parents:
                visit(parent)
            order.append(tensor)

    visit(last)
    return order[::-1]


def _operator(
    name: str, inputs: tuple[FakeTensor, ...], run: Callable[..., Any], pull: Callable[..., Any]
) -> FakeTensor:
    before = observer.before_operator(name, inputs) if observer is not None else None
    with np.errstate(all="ignore"):
        data = run(*(tensor.data for tensor in inputs))
    out = FakeTensor(data, inputs, pull) if _recording else FakeTensor(data)
    if before is not None:
        observer.after_operator(before, out)
    return out


def linear(x: FakeTensor, weight: FakeTensor, bias: FakeTensor) -> FakeTensor:
    return _operator(
        "linear",
        (x, weight, bias),
        lambda a, w, b: a @ w.T + b,
        lambda g: (g @ weight.data, g.T @ x.data, g.sum(0)),
    )


def add(a: FakeTensor, b: FakeTensor) -> FakeTensor:
    return _operator("add", (a, b), np.add, lambda g: (g, g))


def scale(a: FakeTensor, factor: float) -> FakeTensor:
    return _operator(
        "scale", (a,), lambda x: x * np.asarray(factor, x.dtype), lambda g: (_quiet(lambda: g * np.float32(factor)),)
    )


def tanh(a: FakeTensor) -> FakeTensor:
    return _operator("tanh", (a,), np.tanh, lambda g: (g * (1 - np.tanh(a.data) ** 2),))


def exp(a: FakeTensor) -> FakeTensor:
    return _operator("exp", (a,), np.exp, lambda g: (_quiet(lambda: g * np.exp(a.data)),))


def log(a: FakeTensor) -> FakeTensor:
    return _operator("log", (a,), np.log, lambda g: (_quiet(lambda: g / a.data),))


def sqrt(a: FakeTensor) -> FakeTensor:
    return _operator("sqrt", (a,), np.sqrt, lambda g: (_quiet(lambda: g / (2 * np.sqrt(a.data))),))


def mean_square(y: FakeTensor, target: FakeTensor) -> FakeTensor:
    return _operator(
        "mean_square",
        (y, target),
        lambda a, t: np.mean((a - t) ** 2),
        lambda g: (_quiet(lambda: g * 2 * (y.data - target.data) / np.float32(y.data.size)), 0 * target.data),
    )


def _quiet(compute: Callable[[], Any]) -> Any:
    with np.errstate(all="ignore"):
        return compute()


class FakeModel:
    """A module: parameters and modules among its attributes, and a `forward`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if observer is None:
            return self.forward(*args, **kwargs)
        return observer.module(self, args, kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def named_modules(self, path: str = "") -> Iterator[tuple[str, FakeModel]]:
        yield path, self
        for name, value in vars(self).items():
            for key, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, FakeModel):
                    step = name if key is None else str(key) if name == "layers" else f"{name}.{key}"
                    yield from child.named_modules(f"{path}.{step}" if path else step)

    def named_parameters(self) -> Iterator[tuple[str, FakeParameter]]:
        seen: set[int] = set()
        for path, module in self.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, FakeParameter) and id(value) not in seen:
                    seen.add(id(value))
                    yield (f"{path}.{name}" if path else name), value


class Linear(FakeModel):
    def __init__(self, inputs: int, outputs: int, *, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.weight = FakeParameter((random.standard_normal((outputs, inputs)) / np.sqrt(inputs)).astype(np.float32))
        self.bias = FakeParameter(np.zeros(outputs, np.float32))

    def forward(self, x: FakeTensor) -> FakeTensor:
        return linear(x, self.weight, self.bias)


class Tanh(FakeModel):
    def forward(self, x: FakeTensor) -> FakeTensor:
        return tanh(x)


class Sequential(FakeModel):
    def __init__(self, *layers: FakeModel) -> None:
        self.layers = list(layers)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class Descent:
    """Plain gradient descent; `learning_rate = nan` plants a fault in the update."""

    def __init__(self, parameters: Iterator[tuple[str, FakeParameter]], learning_rate: float) -> None:
        self.parameters = [parameter for _, parameter in parameters]
        self.learning_rate = learning_rate

    def clear(self) -> None:
        for parameter in self.parameters:
            parameter.gradient = None

    def update(self) -> None:
        if observer is not None:
            observer.before_update(self)
        for parameter in self.parameters:
            if parameter.gradient is not None:
                parameter.data -= np.float32(self.learning_rate) * parameter.gradient.data
        if observer is not None:
            observer.after_update(self)
