"""PyTorch's side of a migration: parameters, a recorded pass, one layer alone, the optimizer fed with gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from misstep.adapters.pytorch.tensors import array as values_of
from misstep.errors import MigrationError
from misstep.migration.frameworks.base import Array, Call, Draw, Framework, Gradients, Param, Pass, projection
from misstep.migration.frameworks.construction import Arguments, Constructions
from misstep.migration.frameworks.tensors import put_back, taken
from misstep.migration.frameworks.torch_draws import drawing

_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout, nn.RReLU)


class TorchHalf:
    name: Framework = "torch"

    def __init__(self) -> None:
        self._built = Constructions()

    def recording(self) -> contextlib.AbstractContextManager[None]:
        return self._built.remembering([*_subclasses(nn.Module), *_subclasses(torch.optim.Optimizer)])

    def arguments(self, thing: Any) -> Arguments:
        return self._built.of(thing)

    def parameters(self, model: nn.Module) -> list[Param]:
        owners = {name: type(module).__name__ for name, module in model.named_modules()}
        held = set(model.state_dict())
        everything: list[tuple[str, torch.Tensor, Any]] = [
            *((name, one, "param") for name, one in model.named_parameters(remove_duplicate=False)),
            *((name, one, "buffer") for name, one in model.named_buffers(remove_duplicate=False) if name in held),
        ]
        names: dict[int, list[str]] = {}
        for name, one, _ in everything:
            names.setdefault(id(one), []).append(name)
        place = {name: at for at, name in enumerate(model.state_dict())}
        found = [
            Param(
                name,
                tuple(one.shape),
                str(one.dtype).removeprefix("torch."),
                kind,
                bool(one.requires_grad) if kind == "param" else False,
                owners.get(name.rpartition(".")[0], ""),
                tuple(other for other in names[id(one)] if other != name),
                partial(values_of, one.detach()),
            )
            for name, one, kind in everything
            if names[id(one)][0] == name
        ]
        return sorted(found, key=lambda one: place.get(one.name, len(place)))

    def load(self, model: nn.Module, values: Mapping[str, Array]) -> None:
        held = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        with torch.no_grad():
            for name, value in values.items():
                one = held.get(name)
                if one is None:
                    raise MigrationError(f"the PyTorch network has no parameter {name}")
                one.copy_(_tensor(value).reshape(one.shape).to(one.dtype))

    def run(
        self,
        model: nn.Module,
        inputs: Sequence[Array],
        *,
        train: bool,
        loss: Any = None,
        labels: Sequence[Array] = (),
        backward: bool = False,
    ) -> Pass:
        """One pass through the network, everything in it written down; the network is as before afterwards."""
        with _as_before(model), _watching(self, model) as watch:
            model.train(train)
            given = [_leaf(value, grad=backward) for value in inputs]
            try:
                result = model(*given)
            except (RuntimeError, TypeError, ValueError, IndexError) as wrong:
                shapes = ", ".join(str(value.shape) for value in inputs)
                raise MigrationError(f"the PyTorch network cannot run on inputs of shape {shapes}: {wrong}") from wrong
            flat: list[Any] = []
            taken(result, torch.is_tensor, flat)
            scalar = _loss(loss, result, flat, labels)
            if backward:
                scalar.backward()
            grads = {
                name: values_of(one.grad).copy()
                for name, one in model.named_parameters()
                if backward and one.grad is not None
            }
            return Pass(watch.calls, [_copy(one) for one in flat], float(scalar.detach()), grads, watch.draws)

    def layer(
        self,
        model: nn.Module,
        path: str,
        inputs: Sequence[Array],
        *,
        like: Call,
        train: bool,
        out_grads: Sequence[Array | None],
        quiet: bool = False,
    ) -> tuple[list[Array], Gradients]:
        module = model.get_submodule(path)
        with _as_before(model), _quiet(module) if quiet else contextlib.nullcontext():
            model.train(train)
            given = [_leaf(value, grad=True) for value in inputs]
            args, kwargs = put_back(like.passed, [one.clone() for one in given])
            outputs: list[torch.Tensor] = []
            taken(module(*args, **kwargs), torch.is_tensor, outputs)
            parts = [
                (one * _tensor(grad).to(one.dtype)).sum()
                for one, grad in zip(outputs, out_grads)
                if grad is not None and one.requires_grad
            ]
            if parts:
                torch.stack([part.reshape(()) for part in parts]).sum().backward()
            params = {
                name: values_of(one.grad).copy() for name, one in module.named_parameters() if one.grad is not None
            }
            back = tuple(values_of(one.grad).copy() if one.grad is not None else None for one in given)
            return [_copy(one) for one in outputs], Gradients(back, params)

    def updates(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, grads: Sequence[Mapping[str, Array]]
    ) -> Iterator[dict[str, Array]]:
        named = dict(model.named_parameters())
        with _as_before(model):
            for step in grads:
                for name, one in named.items():
                    one.grad = _tensor(step[name]).to(one.dtype) if name in step else None
                optimizer.step()
                yield {name: _copy(one) for name, one in named.items()}

    def learning_rate(self, optimizer: torch.optim.Optimizer) -> float:
        return float(optimizer.param_groups[0]["lr"])

    def save(self, path: str, values: Mapping[str, Array]) -> None:
        torch.save({name: _tensor(value).clone() for name, value in values.items()}, path)


class _Watch:
    """The calls of one pass, as they happen."""

    def __init__(self, half: TorchHalf, model: nn.Module) -> None:
        self.calls: list[Call] = []
        self.draws: list[Draw] = []
        self._half = half
        self._paths = {id(module): name for name, module in model.named_modules()}
        self._stack: list[int] = []
        self._times: dict[int, int] = {}

    @property
    def inside_a_layer(self) -> bool:
        return bool(self._stack) and self.calls[self._stack[-1]].native

    def call(self, original: Any, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        path = self._paths.get(id(module))
        if path is None:
            return original(module, *args, **kwargs)
        found: list[torch.Tensor] = []
        structure = taken((args, kwargs), torch.is_tensor, found)
        # A tensor of its own for each use: the gradient that arrives is then this layer's, not the sum over all users.
        own = [one.clone() if one.is_floating_point() and one.requires_grad else one for one in found]
        self._times[id(module)] = self._times.get(id(module), 0) + 1
        arguments, given = self._half.arguments(module)
        call = Call(
            path,
            type(module).__name__,
            self._times[id(module)],
            [_copy(one) for one in found],
            parent=self._stack[-1] if self._stack else -1,
            buffers={name: _copy(one) for name, one in module.named_buffers(recurse=False)},
            random=_draws(module),
            arguments=arguments,
            given=given,
            native=type(module).__module__.startswith("torch.nn"),
            passed=structure,
        )
        call.in_grads = [None] * len(own)
        self._note_gradients(own, call.in_grads)
        self._stack.append(len(self.calls))
        self.calls.append(call)
        try:
            new_args, new_kwargs = put_back(structure, own)
            result = original(module, *new_args, **new_kwargs)
        finally:
            self._stack.pop()
        outputs: list[torch.Tensor] = []
        taken(result, torch.is_tensor, outputs)
        call.outputs = [_copy(one) for one in outputs]
        call.out_grads = [None] * len(outputs)
        self._note_gradients(outputs, call.out_grads)
        call.buffers_after = {name: _copy(one) for name, one in module.named_buffers(recurse=False)}
        return result

    @staticmethod
    def _note_gradients(tensors: Sequence[torch.Tensor], into: list[Array | None]) -> None:
        for at, one in enumerate(tensors):
            if one.requires_grad:
                one.register_hook(lambda grad, at=at: into.__setitem__(at, _copy(grad)))


@contextlib.contextmanager
def _watching(half: TorchHalf, model: nn.Module) -> Iterator[_Watch]:
    original = nn.Module.__call__
    watch = _Watch(half, model)
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # it would compute a whole encoder layer without calling its parts
    nn.Module.__call__ = lambda module, *args, **kwargs: watch.call(original, module, args, kwargs)
    try:
        with drawing(watch.draws, lambda: watch.inside_a_layer):
            yield watch
    finally:
        nn.Module.__call__ = original
        torch.backends.mha.set_fastpath_enabled(fast)


@contextlib.contextmanager
def _as_before(model: nn.Module) -> Iterator[None]:
    """Parameters, buffers, gradients and modes as they were."""
    held = {name: one.detach().clone() for name, one in (*model.named_parameters(), *model.named_buffers())}
    modes = {name: module.training for name, module in model.named_modules()}
    model.zero_grad(set_to_none=True)
    try:
        with torch.enable_grad():
            yield
    finally:
        model.zero_grad(set_to_none=True)
        with torch.no_grad():
            for name, one in (*model.named_parameters(), *model.named_buffers()):
                one.copy_(held[name])
        for name, module in model.named_modules():
            module.training = modes[name]


@contextlib.contextmanager
def _quiet(module: nn.Module) -> Iterator[None]:
    """A layer that drops elements inside does not, for a while."""
    changed = [
        (one, name, getattr(one, name))
        for one in module.modules()
        for name in ("dropout", "p")
        if isinstance(getattr(one, name, None), float) and (name == "dropout" or isinstance(one, _DROPOUTS))
    ]
    try:
        for one, name, _ in changed:
            setattr(one, name, 0.0)
        yield
    finally:
        for one, name, value in changed:
            setattr(one, name, value)


def _loss(loss: Any, result: Any, flat: Sequence[torch.Tensor], labels: Sequence[Array]) -> torch.Tensor:
    if loss is not None:
        scalar: torch.Tensor = loss(result, *[_tensor(value) for value in labels])
        return scalar.sum() if scalar.ndim else scalar
    parts = [
        (one * _tensor(projection(tuple(one.shape), str(one.dtype).removeprefix("torch.")))).sum()
        for one in flat
        if one.is_floating_point()
    ]
    if not parts:
        raise MigrationError("the PyTorch network returned no floating-point tensor; there is nothing to compare")
    return torch.stack(parts).sum()


def _draws(module: nn.Module) -> bool:
    if not module.training:
        return False
    if isinstance(module, _DROPOUTS):
        return getattr(module, "p", 1.0) > 0
    return isinstance(getattr(module, "dropout", None), float) and getattr(module, "dropout", 0.0) > 0


def _tensor(value: Array) -> torch.Tensor:
    if str(value.dtype) == "bfloat16":
        return torch.from_numpy(np.array(value).view(np.uint16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(value))


def _leaf(value: Array, *, grad: bool) -> torch.Tensor:
    one = _tensor(value)
    return one.requires_grad_(True) if grad and one.is_floating_point() else one


def _copy(tensor: torch.Tensor) -> Array:
    return np.array(values_of(tensor.detach()))


def _subclasses(root: Any) -> list[type]:
    below: list[type] = list(root.__subclasses__())
    inner = [deeper for one in below for deeper in _subclasses(one)]
    return [one for one in (*below, *inner) if one.__module__.startswith("torch")]


half = TorchHalf()
