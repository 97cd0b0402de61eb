"""MindSpore's side of a migration: parameters, a pass whose layers may be fed from elsewhere, one layer alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import mint, nn, ops

from misstep.adapters.mindspore.tensors import array as values_of
from misstep.adapters.mindspore.tensors import dtype_name
from misstep.errors import MigrationError
from misstep.migration.frameworks.base import Array, Call, Draw, Force, Framework, Gradients, Param, Pass, projection
from misstep.migration.frameworks.construction import Arguments, Constructions
from misstep.migration.frameworks.mindspore_draws import drawing_again
from misstep.migration.frameworks.tensors import put_back, taken

_DROPOUTS = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "DropoutExt", "Dropout2dExt", "RReLU")


class MindSporeHalf:
    name: Framework = "mindspore"

    def __init__(self) -> None:
        self._built = Constructions()

    def recording(self) -> contextlib.AbstractContextManager[None]:
        return self._built.remembering(_classes())

    def arguments(self, thing: Any) -> Arguments:
        return self._built.of(thing)

    def parameters(self, model: nn.Cell) -> list[Param]:
        owners = {path: type(cell).__name__ for path, cell in model.cells_and_names()}
        paths: dict[int, list[str]] = {}
        order: list[Any] = []
        for path, cell in model.cells_and_names():
            for name, one in cell.parameters_and_names(expand=False):
                if id(one) not in paths:
                    order.append(one)
                paths.setdefault(id(one), []).append(f"{path}.{name.rpartition('.')[2]}" if path else name)
        spelled = [str(one.name) for one in order]
        unique = len(set(spelled)) == len(spelled)
        buffers = [  # of register_buffer: tensors that are no parameters
            Param(name, tuple(one.shape), dtype_name(one), "buffer", False, fetch=partial(values_of, one))
            for name, one in model.named_buffers()
        ]
        return [
            Param(
                str(one.name) if unique else paths[id(one)][0],
                tuple(one.shape),
                dtype_name(one),
                "param" if one.requires_grad or not _statistic(str(one.name)) else "buffer",
                bool(one.requires_grad),
                owners.get(paths[id(one)][0].rpartition(".")[0], ""),
                tuple(paths[id(one)][1:]),
                partial(values_of, one),
            )
            for one in order
        ] + buffers

    def load(self, model: nn.Cell, values: Mapping[str, Array]) -> None:
        held = {**self._named(model), **dict(model.named_buffers())}
        for name, value in values.items():
            one = held.get(name)
            if one is None:
                raise MigrationError(f"the MindSpore network has no parameter {name}")
            _write(one, value)

    def run(
        self,
        model: nn.Cell,
        inputs: Sequence[Array],
        *,
        train: bool,
        loss: Any = None,
        labels: Sequence[Array] = (),
        backward: bool = False,
        force: Force | None = None,
        draws: Sequence[Draw] = (),
    ) -> Pass:
        with _as_before(model), drawing_again(draws), _watching(self, model, force) as watch:
            model.set_train(train)
            given = [_tensor(value) for value in inputs]
            flat: list[Any] = []

            def forward(*tensors: Any) -> Any:
                result = model(*tensors)
                flat.clear()
                taken(result, _is_tensor, flat)
                return _loss(loss, result, flat, labels)

            grads: dict[str, Array] = {}
            try:
                if backward:
                    named = {name: one for name, one in self._named(model).items() if one.requires_grad}
                    step = ms.value_and_grad(forward, None, ms.ParameterTuple(named.values()))
                    scalar, found = step(*given)
                    grads = {name: _copy(grad) for name, grad in zip(named, found)}
                else:
                    scalar = forward(*given)
            except (RuntimeError, TypeError, ValueError, IndexError) as wrong:
                return Pass(watch.calls, [], error=str(wrong).strip().splitlines()[0])
            return Pass(watch.calls, [_copy(one) for one in flat], float(scalar.asnumpy().sum()), grads)

    def layer(
        self,
        model: nn.Cell,
        path: str,
        inputs: Sequence[Array],
        *,
        like: Call,
        train: bool,
        out_grads: Sequence[Array | None],
        quiet: bool = False,
    ) -> tuple[list[Array], Gradients]:
        cell = dict(model.cells_and_names())[path]
        return _one_layer(cell, model, inputs, like=like, train=train, out_grads=out_grads, quiet=quiet)

    def updates(
        self, model: nn.Cell, optimizer: Any, grads: Sequence[Mapping[str, Array]]
    ) -> Iterator[dict[str, Array]]:
        named = self._named(model)
        names = {id(one): name for name, one in named.items()}
        with _as_before(model):
            for step in grads:
                feed = []
                for one in optimizer.parameters:
                    value = step.get(names[id(one)])
                    feed.append(ms.Tensor(np.zeros(one.shape, np.float32) if value is None else value, one.dtype))
                optimizer(tuple(feed))
                yield {name: _copy(one) for name, one in named.items()}

    def learning_rate(self, optimizer: Any) -> float:
        rate = optimizer.get_lr()
        return float((rate[0] if isinstance(rate, tuple) else rate).asnumpy())

    def save(self, path: str, values: Mapping[str, Array]) -> None:
        ms.save_checkpoint([{"name": name, "data": _tensor(value)} for name, value in values.items()], path)

    def _named(self, model: nn.Cell) -> dict[str, Any]:
        """Parameters by the names `parameters` gives them."""
        every = {id(one): one for one in model.get_parameters()}
        names = [one.name for one in self.parameters(model)]
        order: dict[int, None] = {}
        for _, cell in model.cells_and_names():
            for _, one in cell.parameters_and_names(expand=False):
                order.setdefault(id(one))
        return {name: every[place] for name, place in zip(names, order)}


class _Watch:
    """The calls of one pass, as they happen, each free to be fed from elsewhere."""

    def __init__(self, half: MindSporeHalf, model: nn.Cell, force: Force | None) -> None:
        self.calls: list[Call] = []
        self._half, self._force = half, force
        self._paths = {id(cell): path for path, cell in model.cells_and_names()}
        self._stack: list[int] = []
        self._times: dict[int, int] = {}

    def call(self, original: Any, cell: nn.Cell, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        path = self._paths.get(id(cell))
        if path is None:
            return original(cell, *args, **kwargs)
        found: list[Any] = []
        structure = taken((args, kwargs), _is_tensor, found)
        self._times[id(cell)] = self._times.get(id(cell), 0) + 1
        arguments, given = self._half.arguments(cell)
        call = Call(
            path,
            type(cell).__name__,
            self._times[id(cell)],
            [_copy(one) for one in found] if self._force or not found else [_shape_only(one) for one in found],
            parent=self._stack[-1] if self._stack else -1,
            buffers=_statistics(cell),
            random=_draws(cell),
            arguments=arguments,
            given=given,
            native=type(cell).__module__.startswith("mindspore."),
            passed=structure,
        )
        number = len(self.calls)
        self.calls.append(call)
        answer: dict[str, Any] = {}

        def go_on(arrays: Sequence[Array]) -> list[Array]:
            """The layer on these inputs; what runs inside of it is part of the pass."""
            tensors = [_tensor(value) for value in arrays]
            new_args, new_kwargs = put_back(structure, tensors)
            self._stack.append(number)
            try:
                answer["result"] = original(cell, *new_args, **new_kwargs)
            finally:
                self._stack.pop()
            return _arrays(answer["result"])

        forced = self._force(number, call, go_on) if self._force is not None else None
        if "result" not in answer:
            self._stack.append(number)
            try:
                answer["result"] = original(cell, *args, **kwargs)
            finally:
                self._stack.pop()
        outputs: list[Any] = []
        shape = taken(answer["result"], _is_tensor, outputs)
        call.outputs = [_shape_only(one) for one in outputs] if self._force is None else [_copy(one) for one in outputs]
        call.buffers_after = _statistics(cell)
        if forced is None:
            return answer["result"]
        return put_back(shape, [_tensor_like(value, one) for value, one in zip(forced, outputs)])


@contextlib.contextmanager
def _watching(half: MindSporeHalf, model: nn.Cell, force: Force | None) -> Iterator[_Watch]:
    original = nn.Cell.__call__
    watch = _Watch(half, model, force)
    nn.Cell.__call__ = lambda cell, *args, **kwargs: watch.call(original, cell, args, kwargs)
    try:
        yield watch
    finally:
        nn.Cell.__call__ = original


def _one_layer(
    cell: nn.Cell,
    model: nn.Cell,
    inputs: Sequence[Array],
    *,
    like: Call,
    train: bool,
    out_grads: Sequence[Array | None],
    quiet: bool,
) -> tuple[list[Array], Gradients]:
    with _as_before(model), _quiet(cell) if quiet else contextlib.nullcontext():
        model.set_train(train)
        given = [_tensor(value) for value in inputs]
        floats = [at for at, one in enumerate(given) if one.is_floating_point()]
        named = {name: one for name, one in cell.parameters_and_names() if one.requires_grad}
        outputs: list[Any] = []

        def weighted(*tensors: Any) -> Any:
            every = list(given)
            for at, one in zip(floats, tensors):
                every[at] = one
            args, kwargs = put_back(like.passed, every)
            outputs.clear()
            taken(cell(*args, **kwargs), _is_tensor, outputs)
            total = ms.Tensor(0.0, ms.float32)
            for one, grad in zip(outputs, out_grads):
                if grad is not None and one.is_floating_point():
                    total = total + (one.astype(ms.float32) * ms.Tensor(grad, ms.float32)).sum()
            return total

        if (not floats and not named) or all(grad is None for grad in out_grads):
            weighted(*[given[at] for at in floats])
            return [_copy(one) for one in outputs], Gradients((None,) * len(given), {})
        where = tuple(range(len(floats))) if floats else None
        weights = ms.ParameterTuple(named.values()) if named else None
        _, found = ms.value_and_grad(weighted, where, weights)(*[given[at] for at in floats])
        to_inputs, to_weights = found if floats and named else (found, ()) if floats else ((), found)
        back: list[Array | None] = [None] * len(given)
        for at, grad in zip(floats, to_inputs if isinstance(to_inputs, tuple) else (to_inputs,)):
            back[at] = _copy(grad)
        params = {name: _copy(grad) for name, grad in zip(named, to_weights)}
        return [_copy(one) for one in outputs], Gradients(tuple(back), params)


@contextlib.contextmanager
def _as_before(model: nn.Cell) -> Iterator[None]:
    held = [(one, _copy(one)) for one in model.get_parameters()]
    modes = [(cell, cell.training) for _, cell in model.cells_and_names()]
    try:
        yield
    finally:
        for one, value in held:
            _write(one, value)
        for cell, mode in modes:
            if cell.training != mode:
                cell.set_train(mode)


@contextlib.contextmanager
def _quiet(cell: nn.Cell) -> Iterator[None]:
    changed = [
        (one, name, getattr(one, name))
        for _, one in cell.cells_and_names()
        for name in ("dropout", "p", "keep_prob")
        if isinstance(getattr(one, name, None), float) and (name == "dropout" or type(one).__name__ in _DROPOUTS)
    ]
    try:
        for one, name, _ in changed:
            setattr(one, name, 1.0 if name == "keep_prob" else 0.0)
        yield
    finally:
        for one, name, value in changed:
            setattr(one, name, value)


def _loss(loss: Any, result: Any, flat: Sequence[Any], labels: Sequence[Array]) -> Any:
    if loss is not None:
        scalar = loss(result, *[_tensor(value) for value in labels])
        return scalar.sum() if scalar.ndim else scalar
    parts = [(one * ms.Tensor(projection(tuple(one.shape)))).sum() for one in flat if one.is_floating_point()]
    if not parts:
        raise MigrationError("the MindSpore network returned no floating-point tensor; there is nothing to compare")
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _draws(cell: nn.Cell) -> bool:
    if not cell.training:
        return False
    if type(cell).__name__ in _DROPOUTS:
        return True
    return isinstance(getattr(cell, "dropout", None), float) and cell.dropout > 0


def _statistic(name: str) -> bool:
    return name.rpartition(".")[2] in ("moving_mean", "moving_variance", "mean", "variance")


def _statistics(cell: nn.Cell) -> dict[str, Array]:
    return {
        name.rpartition(".")[2]: _copy(one)
        for name, one in cell.parameters_and_names(expand=False)
        if not one.requires_grad and _statistic(name)
    }


def _is_tensor(value: Any) -> bool:
    return isinstance(value, ms.Tensor)


def _tensor(value: Array) -> Any:
    """Indices become int32: many CPU kernels know no int64."""
    if value.dtype == np.int64 and (not value.size or abs(value).max() < 2**31):
        value = value.astype(np.int32)
    if str(value.dtype) == "bfloat16":
        return ms.Tensor(value.astype(np.float32), ms.bfloat16)
    return ms.Tensor(np.array(value))


def _tensor_like(value: Array, like: Any) -> Any:
    one = _tensor(value.reshape(like.shape) if value.size == like.size else value)
    return one.astype(like.dtype) if one.dtype != like.dtype else one


def _arrays(result: Any) -> list[Array]:
    found: list[Any] = []
    taken(result, _is_tensor, found)
    return [_copy(one) for one in found]


def _copy(tensor: Any) -> Array:
    return np.array(values_of(tensor))


def _shape_only(tensor: Any) -> Array:
    """An array of the right shape without the values: inside a gradient's trace they must not be read."""
    return np.broadcast_to(np.zeros((), np.float32), tuple(tensor.shape))


def _write(parameter: Any, value: Array) -> None:
    # In place: compiled optimizers keep the buffer they first saw, `set_data` would leave them with the old one.
    place = parameter.asnumpy()
    if place.flags.writeable and str(place.dtype) != "bfloat16":
        place[...] = np.asarray(value).reshape(place.shape).astype(place.dtype)
    else:
        ops.assign(parameter, ms.Tensor(np.asarray(value, np.float32).reshape(parameter.shape), parameter.dtype))


def _classes() -> list[type]:
    found: dict[type, None] = {}
    for home in (nn, mint.nn, mint.optim, ms.experimental.optim):
        for one in vars(home).values():
            if isinstance(one, type) and one.__module__.startswith("mindspore.") and one is not nn.Cell:
                for ancestor in one.__mro__:
                    known = ancestor.__module__.startswith("mindspore.") and ancestor not in (nn.Cell, nn.Optimizer)
                    if known:
                        found.setdefault(ancestor)
    return list(found)


half = MindSporeHalf()
