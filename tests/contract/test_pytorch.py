"""The PyTorch adapter keeps the contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from misstep.testing import AdapterContract, Kind, Training
from misstep.testing.contract import reference


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.act(self.fc1(x)))


class Conv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.act = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True)
        self.pool, self.head = nn.MaxPool2d(2), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        image = x.repeat(1, 12).reshape(-1, 1, 6, 6)
        return self.head(self.pool(self.act(self.norm(self.conv(image)))).mean((2, 3)))


class Bad(nn.Module):
    """Healthy until it is told to fail."""

    fault = ""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.fault == "raise":
            raise ValueError("planted")
        if self.fault == "nan_forward":
            return torch.log(-torch.exp(x))  # planted
        if self.fault == "nan_backward":
            return torch.sqrt(x * 0.0)  # planted
        return torch.tanh(x)


class Faulty(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.bad, self.fc2 = nn.Linear(3, 5), Bad(), nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.bad(self.fc1(x)))


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.body, self.fc2 = nn.Linear(3, 5), nn.Sequential(Bad(), nn.Linear(5, 5)), nn.Linear(5, 2)

    @property
    def bad(self) -> Any:
        return self.body[0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.body(self.fc1(x)))


class Container(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(3, 5), nn.Tanh()), nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.out = nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.fc(torch.tanh(self.fc(x))))


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.out = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 2)
        self.b.weight = self.a.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.b(torch.tanh(self.a(x))))


class Split(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide, self.two, self.three = nn.Linear(3, 5), nn.Linear(3, 2), nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        return {"sum": self.wide(x), "parts": (self.two(x), self.three(x))}


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.split, self.head = Split(), nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.split(x)
        return self.head(parts["sum"]) + parts["parts"][0]


MODELS: dict[str, Callable[[], nn.Module]] = {
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


class TestPyTorch(AdapterContract):
    adapter_name = "pytorch"
    log_operator = "log"
    source_file = "test_pytorch.py"

    def make(self, kind: Kind) -> Training:
        torch.manual_seed(0)
        torch.set_num_threads(1)
        model = MODELS[kind]()
        if isinstance(model, Mlp):
            model.load_state_dict({name: torch.from_numpy(weight) for name, weight in reference.weights().items()})
        optimizer = torch.optim.SGD(model.parameters(), lr=reference.LEARNING_RATE)
        count = 0

        def backward(rows: slice) -> float:
            x = torch.from_numpy(reference.BATCH[rows].copy())
            if kind == "nan_input" and count == 2:
                x[0, 0] = torch.nan
            loss = (model(x) - torch.from_numpy(reference.TARGET[rows])).square().mean()
            loss.backward()
            return loss.item()

        def step() -> float:
            nonlocal count
            count += 1
            if isinstance(model, Faulty | Deep):
                model.bad.fault = FAULTS[kind] if count == 2 or (count > 2 and kind != "raises") else ""
            if kind == "nan_optimizer" and count == 2:
                optimizer.param_groups[0]["lr"] = float("nan")
            optimizer.zero_grad()
            parts = [slice(0, 3), slice(3, 6)] if kind == "accumulation" else [slice(0, 6)]
            losses = [backward(part) for part in parts]
            optimizer.step()
            return losses[-1]

        def evaluate() -> torch.Tensor:
            with torch.no_grad():
                return model(torch.from_numpy(reference.BATCH))

        def weights() -> dict[str, np.ndarray]:
            return {name: parameter.detach().numpy().copy() for name, parameter in model.named_parameters()}

        return Training(model, step, weights, evaluate, optimizer)

    def footprint(self, training: Training) -> Any:
        from torch.nn.modules import module as modules
        from torch.optim import optimizer as optimizers

        hooks = {
            name: len(value)
            for space in (modules, optimizers)
            for name, value in vars(space).items()
            if name.startswith("_global_") and hasattr(value, "__len__")
        }
        own = {
            path: {
                name: len(value)
                for name, value in vars(module).items()
                if name.endswith("_hooks") and value is not None
            }
            for path, module in training.model.named_modules()
        }
        patched = (
            nn.Module.__call__,
            nn.Module._call_impl,
            torch.autograd.backward,
            torch.autograd.grad,
            torch.Tensor.backward,
            torch.optim.Optimizer.__init__,
            torch.optim.SGD.step,
        )
        parameters = {
            name: (
                len(parameter._backward_hooks or ()),
                len(getattr(parameter, "_post_accumulate_grad_hooks", None) or ()),
            )
            for name, parameter in training.model.named_parameters()
        }
        attributes = {path: sorted(vars(module)) for path, module in training.model.named_modules()}
        return hooks, own, patched, parameters, attributes
