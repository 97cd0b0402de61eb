"""The fake adapter keeps the contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from misstep.testing import AdapterContract, Kind, Training
from misstep.testing import fake_framework as fake
from misstep.testing.contract import reference
from misstep.testing.fake_framework import Descent, FakeModel, FakeTensor, Linear, Sequential, Tanh


class Mlp(FakeModel):
    def __init__(self) -> None:
        self.fc1, self.act, self.fc2 = Linear(3, 5), Tanh(), Linear(5, 2)

    def forward(self, x: FakeTensor) -> FakeTensor:
        return self.fc2(self.act(self.fc1(x)))


class Bad(FakeModel):
    """Healthy until it is told to fail."""

    fault = ""

    def forward(self, x: FakeTensor) -> FakeTensor:
        if self.fault == "raise":
            raise ValueError("planted")
        if self.fault == "nan_forward":
            return fake.log(fake.scale(fake.exp(x), -1.0))  # planted
        if self.fault == "nan_backward":
            return fake.sqrt(fake.scale(x, 0.0))  # planted
        return fake.tanh(x)


class Faulty(FakeModel):
    def __init__(self) -> None:
        self.fc1, self.bad, self.fc2 = Linear(3, 5), Bad(), Linear(5, 2)

    def forward(self, x: FakeTensor) -> FakeTensor:
        return self.fc2(self.bad(self.fc1(x)))


class Deep(FakeModel):
    def __init__(self) -> None:
        self.fc1, self.body, self.fc2 = Linear(3, 5), Sequential(Bad(), Linear(5, 5)), Linear(5, 2)

    @property
    def bad(self) -> Any:
        return self.body.layers[0]

    def forward(self, x: FakeTensor) -> FakeTensor:
        return self.fc2(self.body(self.fc1(x)))


class Container(FakeModel):
    def __init__(self) -> None:
        self.body, self.head = Sequential(Linear(3, 5), Tanh()), Linear(5, 2)

    def forward(self, x: FakeTensor) -> FakeTensor:
        return self.head(self.body(x))


class Twice(FakeModel):
    def __init__(self) -> None:
        self.fc, self.out = Linear(3, 3), Linear(3, 2)

    def forward(self, x: FakeTensor) -> FakeTensor:
        return self.out(self.fc(fake.tanh(self.fc(x))))


class Shared(FakeModel):
    def __init__(self) -> None:
        self.a, self.b, self.out = Linear(3, 3), Linear(3, 3), Linear(3, 2)
        self.b.weight = self.a.weight

    def forward(self, x: FakeTensor) -> FakeTensor:
        return self.out(self.b(fake.tanh(self.a(x))))


class Split(FakeModel):
    def __init__(self) -> None:
        self.wide, self.two, self.three = Linear(3, 5), Linear(3, 2), Linear(3, 3)

    def forward(self, x: FakeTensor) -> dict[str, Any]:
        return {"sum": self.wide(x), "parts": (self.two(x), self.three(x))}


class Nested(FakeModel):
    def __init__(self) -> None:
        self.split, self.head = Split(), Linear(5, 2)

    def forward(self, x: FakeTensor) -> FakeTensor:
        parts = self.split(x)
        return fake.add(self.head(parts["sum"]), parts["parts"][0])


MODELS: dict[str, Callable[[], FakeModel]] = {
    "mlp": Mlp,
    "conv": lambda: Sequential(Linear(3, 4), Tanh(), Sequential(Linear(4, 4), Tanh()), Linear(4, 2)),
    "container": Container,
    "twice": Twice,
    "shared": Shared,
    "accumulation": Mlp,
    "raises": Faulty,
    "nested": Nested,
    "nan_input": Mlp,
    "nan_forward": Faulty,
    "nan_backward": Faulty,
    "nan_backward_inside": Deep,
    "nan_optimizer": Mlp,
}

FAULTS = {
    "raises": "raise",
    "nan_forward": "nan_forward",
    "nan_backward": "nan_backward",
    "nan_backward_inside": "nan_backward",
}


class TestFake(AdapterContract):
    adapter_name = "fake"
    log_operator = "log"
    source_file = "test_fake.py"

    def make(self, kind: Kind) -> Training:
        model = MODELS[kind]()
        for name, parameter in model.named_parameters():
            if name in reference.weights() and isinstance(model, Mlp):
                parameter.data = reference.weights()[name]
        optimizer = Descent(model.named_parameters(), reference.LEARNING_RATE)
        count = 0

        def backward(rows: slice) -> float:
            x = reference.BATCH[rows].copy()
            if kind == "nan_input" and count == 2:
                x[0, 0] = np.nan
            loss = fake.mean_square(model(FakeTensor(x)), FakeTensor(reference.TARGET[rows]))
            loss.backward()
            return float(loss.data)

        def step() -> float:
            nonlocal count
            count += 1
            if isinstance(model, Faulty | Deep):
                model.bad.fault = FAULTS[kind] if count == 2 or (count > 2 and kind != "raises") else ""
            if kind == "nan_optimizer" and count == 2:
                optimizer.learning_rate = float("nan")
            optimizer.clear()
            parts = [slice(0, 3), slice(3, 6)] if kind == "accumulation" else [slice(0, 6)]
            losses = [backward(part) for part in parts]
            optimizer.update()
            return losses[-1]

        def evaluate() -> Any:
            with fake.no_gradients():
                return model(FakeTensor(reference.BATCH))

        def weights() -> dict[str, np.ndarray]:
            return {name: parameter.data.copy() for name, parameter in model.named_parameters()}

        return Training(model, step, weights, evaluate, optimizer)

    def footprint(self, training: Training) -> Any:
        return fake.observer, {path: sorted(vars(module)) for path, module in training.model.named_modules()}
