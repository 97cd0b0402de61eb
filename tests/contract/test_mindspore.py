"""The MindSpore adapter keeps the contract in PyNative mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.graph.api import _pynative_executor

from misstep.testing import AdapterContract, Kind, Training
from misstep.testing.contract import reference


class Mlp(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Dense(3, 5), nn.Tanh(), nn.Dense(5, 2)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.fc2(self.act(self.fc1(x)))


class Conv(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.act = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
        self.pool, self.head = nn.MaxPool2d(2, 2), nn.Dense(4, 2)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        image = ops.tile(x, (1, 12)).reshape(-1, 1, 6, 6)
        return self.head(self.pool(self.act(self.norm(self.conv(image)))).mean((2, 3)))


class Bad(nn.Cell):
    """Healthy until it is told to fail."""

    fault = ""

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        if self.fault == "raise":
            raise ValueError("planted")
        if self.fault == "nan_forward":
            return ops.log(-ops.exp(x))  # planted
        if self.fault == "nan_backward":
            return ops.sqrt(x * 0.0)  # planted
        return ops.tanh(x)


class Faulty(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.bad, self.fc2 = nn.Dense(3, 5), Bad(), nn.Dense(5, 2)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.fc2(self.bad(self.fc1(x)))


class Deep(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.body, self.fc2 = nn.Dense(3, 5), nn.SequentialCell(Bad(), nn.Dense(5, 5)), nn.Dense(5, 2)

    @property
    def bad(self) -> Any:
        return self.body[0]

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.fc2(self.body(self.fc1(x)))


class Container(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.SequentialCell(nn.Dense(3, 5), nn.Tanh()), nn.Dense(5, 2)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.head(self.body(x))


class Twice(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.out = nn.Dense(3, 3), nn.Dense(3, 2)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.out(self.fc(ops.tanh(self.fc(x))))


class Shared(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.out = nn.Dense(3, 3), nn.Dense(3, 3), nn.Dense(3, 2)
        self.b.weight = self.a.weight

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.out(self.b(ops.tanh(self.a(x))))


class Split(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.wide, self.two, self.three = nn.Dense(3, 5), nn.Dense(3, 2), nn.Dense(3, 3)

    def construct(self, x: ms.Tensor) -> dict[str, Any]:
        return {"sum": self.wide(x), "parts": (self.two(x), self.three(x))}


class Nested(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.split, self.head = Split(), nn.Dense(5, 2)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        parts = self.split(x)
        return self.head(parts["sum"]) + parts["parts"][0]


MODELS: dict[str, Callable[[], nn.Cell]] = {
    "mlp": Mlp,
    "conv": Conv,
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


class TestMindSpore(AdapterContract):
    adapter_name = "mindspore"
    log_operator = "Log"
    source_file = "test_mindspore.py"
    mode = ms.PYNATIVE_MODE

    def make(self, kind: Kind) -> Training:
        ms.set_context(mode=self.mode)
        ms.set_seed(1)
        # After an exception in a forward MindSpore goes on recording, and runs every TrainOneStepCell twice.
        _pynative_executor.clear_res()
        model = MODELS[kind]().set_train()
        if isinstance(model, Mlp):
            ms.load_param_into_net(
                model, {name: ms.Parameter(weight, name=name) for name, weight in reference.weights().items()}
            )
        optimizer = nn.SGD(model.trainable_params(), learning_rate=reference.LEARNING_RATE)
        count = 0

        def differentiated() -> Any:
            def forward(x: ms.Tensor, target: ms.Tensor) -> ms.Tensor:
                return ((model(x) - target) ** 2).mean()

            return ms.value_and_grad(forward, None, optimizer.parameters)

        differentiate = differentiated()

        def backward(rows: slice) -> tuple[float, Any]:
            x = reference.BATCH[rows].copy()
            if kind == "nan_input" and count == 2:
                x[0, 0] = np.nan
            loss, gradients = differentiate(ms.Tensor(x), ms.Tensor(reference.TARGET[rows]))
            return float(loss.asnumpy()), gradients

        def step() -> float:
            nonlocal count, differentiate
            count += 1
            if isinstance(model, Faulty | Deep):
                fault = FAULTS[kind] if count == 2 or (count > 2 and kind != "raises") else ""
                if fault != model.bad.fault:
                    model.bad.fault = fault
                    differentiate = differentiated()  # compiled code knows the attribute as it was
            if kind == "nan_optimizer" and count == 2:
                ops.assign(optimizer.learning_rate, ms.Tensor(float("nan"), ms.float32))
            parts = [slice(0, 3), slice(3, 6)] if kind == "accumulation" else [slice(0, 6)]
            losses, gradients = zip(*(backward(part) for part in parts))
            together = gradients[0] if len(gradients) == 1 else tuple(a + b for a, b in zip(*gradients))
            optimizer(together)
            return losses[-1]

        def weights() -> dict[str, np.ndarray]:
            return {parameter.name: parameter.asnumpy().copy() for parameter in model.trainable_params()}

        return Training(model, step, weights, lambda: model(ms.Tensor(reference.BATCH)), optimizer)

    def footprint(self, training: Training) -> Any:
        from mindspore.graph import api
        from mindspore.ops.composite import base
        from mindspore.ops.function.grad import grad_func

        patched = (
            nn.Cell.__call__,
            nn.Cell.compile_and_run,
            ms.Tensor.__setitem__,
            api._PyNativeExecutor.grad,
            api._JitExecutor.__call__,
            base._pynative_func_grad_forward,
            grad_func._pynative_func_grad_forward,
        )
        hooks = {
            path: {
                name: len(value)
                for name, value in vars(cell).items()
                if name.endswith("_hook") and hasattr(value, "__len__")
            }
            for path, cell in training.model.cells_and_names()
        }
        return patched, hooks, {path: sorted(vars(cell)) for path, cell in training.model.cells_and_names()}
