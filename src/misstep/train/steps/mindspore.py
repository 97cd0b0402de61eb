"""Training, evaluation and files of `mindspore.nn.Cell`.

A plain step is MindSpore's own TrainOneStepCell, so it compiles into one graph in graph mode. Under a loss scale it
is two: a cell that returns loss, gradients and whether they are finite, and the optimizer, which runs only if they
are. MindSpore's own scaled step asks an NPU for overflow and so cannot run on a CPU.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import amp, nn, ops

from misstep.adapters.registry import adapter_named
from misstep.errors import TrainError, need
from misstep.train.data import columns_of, data_and_label
from misstep.train.loss_scale import LossScale
from misstep.train.steps import Recipe
from misstep.train.values import to_numpy

suffix = ".ckpt"


class MindSporeSteps:
    """One MindSpore network with its loss and optimizer."""

    def __init__(self, recipe: Recipe) -> None:
        self.network = _mixed_precision(recipe)
        self.loss_fn = recipe.loss_fn
        self.optimizer = recipe.optimizer
        with_or_without_loss = self.network if self.loss_fn is None else with_loss(self.network, self.loss_fn)
        self._two_columns = self.loss_fn is not None
        if self.optimizer is None:
            self.train_network = self.network  # trains itself, or only computes
        elif recipe.loss_scale is not None:
            self.train_network = TrainOneStep(with_or_without_loss, self.optimizer, recipe.loss_scale)
        else:
            _warn_about_mint(self.optimizer)
            self.train_network = nn.TrainOneStepCell(with_or_without_loss, self.optimizer)
        self.eval_network = recipe.eval_network
        if self.eval_network is None:
            self.eval_network = self.network if self.loss_fn is None else WithEval(self.network, self.loss_fn)
        self._own_eval_network = recipe.eval_network is not None

    def train(self, batch: Any) -> Any:
        return self.train_network(*self._inputs(batch))

    def evaluate(self, batch: Any) -> tuple[Any, ...]:
        inputs = _tensors(columns_of(batch)) if self._own_eval_network else self._inputs(batch)
        return columns_of(self.eval_network(*inputs))

    def predict(self, data: Sequence[Any]) -> Any:
        return self.network(*_tensors(data))

    def set_training(self) -> None:
        self.train_network.set_train(True)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        roots = {id(root): root for root in (self.train_network, self.eval_network, self.network)}.values()
        before = [(cell, cell.training) for root in roots for _, cell in root.cells_and_names()]
        try:
            for root in roots:
                root.set_train(False)
            yield
        finally:
            for cell, training in before:  # parents come first, so a frozen child is set after its parent
                if cell.training != training:
                    cell.set_train(training)

    def _inputs(self, batch: Any) -> list[Any]:
        return _tensors(data_and_label(batch) if self._two_columns else columns_of(batch))


class WithEval(nn.Cell):
    """(loss, prediction, label) of one batch."""

    def __init__(self, network: Any, loss_fn: Any) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.loss_fn = loss_fn

    def construct(self, data, label):  # type: ignore[no-untyped-def]  # compiled: annotations are not parsed
        prediction = self.network(data)
        return self.loss_fn(prediction, label), prediction, label


class ScaledGradients(nn.Cell):
    """Loss, whether all gradients are finite, and the gradients with the scale taken out again."""

    def __init__(self, network: Any, weights: Any) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.weights = weights
        self.gradient = ops.GradOperation(get_by_list=True, sens_param=True)

    def construct(self, scale, unscale, *inputs):  # type: ignore[no-untyped-def]
        loss = self.network(*inputs)
        sensitivity = ops.ones_like(loss) * ops.cast(scale, loss.dtype)
        gradients = self.gradient(self.network, self.weights)(*inputs, sensitivity)
        unscaled = ()
        for gradient in gradients:
            # Graph syntax: neither a list nor unpacking may grow here.
            unscaled = unscaled + (gradient * ops.cast(unscale, gradient.dtype),)  # type: ignore[assignment]  # noqa: RUF005
        return loss, amp.all_finite(unscaled), unscaled


class TrainOneStep(nn.Cell):
    """A network that trains itself by one step when called: (loss, overflow, scale)."""

    def __init__(self, network: Any, optimizer: Any, loss_scale: LossScale) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.optimizer = optimizer
        self.gradients = ScaledGradients(network, optimizer.parameters)
        self.loss_scale = loss_scale
        self._drop = loss_scale.get_drop_overflow_update()

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        # Python decides between the two compiled parts: skipping the optimizer inside a graph costs a branch a weight.
        scale = self.loss_scale.get_loss_scale()
        # An optimizer made with its own loss_scale divides by it as well; together they must take out `scale` once.
        unscale = float(getattr(self.optimizer, "loss_scale", 1.0)) / scale
        loss, finite, gradients = self.gradients(
            ms.Tensor(scale, ms.float32), ms.Tensor(unscale, ms.float32), *_tensors(inputs)
        )
        if not self._drop:
            self.optimizer(gradients)
            self.loss_scale.update_loss_scale(False)
            return loss
        overflow = not bool(finite)
        updates = watched_updates()
        if updates is not None:
            updates.loss_scale = scale
        if not overflow:
            self.optimizer(gradients)
        elif updates is not None:
            updates.skip(self.optimizer, scale)
        self.loss_scale.update_loss_scale(overflow)
        return loss, overflow, scale


def watched_updates() -> Any:
    """misstep's account of the step under way, where it watches; a skipped update leaves no other trace."""
    adapter: Any = adapter_named("mindspore")
    return adapter.updates if adapter.listening is not None else None


def build_steps(recipe: Recipe) -> MindSporeSteps:
    return MindSporeSteps(recipe)


def with_loss(network: Any, loss_fn: Any) -> Any:
    return nn.WithLossCell(network, loss_fn)


def train_one_step(network: Any, optimizer: Any, loss_scale: LossScale) -> TrainOneStep:
    return TrainOneStep(network, optimizer, loss_scale)


def tensor(value: Any) -> Any:
    """A MindSpore tensor from any tensor, array or number."""
    if isinstance(value, ms.Tensor) or value is None or isinstance(value, str):
        return value
    return ms.Tensor(np.asarray(to_numpy(value), order="C"))  # not ascontiguousarray: that makes a number a list of one


def snapshot(network: Any) -> dict[str, Any]:
    # asnumpy() of a parameter is its live buffer: without the copy, the snapshot would train along.
    return {parameter.name: ms.Tensor(parameter.asnumpy().copy()) for parameter in network.get_parameters()}


def load_weights(network: Any, weights: Mapping[str, Any]) -> list[str]:
    missing = []
    for parameter in network.get_parameters():
        if parameter.name in weights:
            _overwrite(parameter, weights[parameter.name])
        else:
            missing.append(parameter.name)
    return missing


def optimizer_state(optimizer: Any) -> dict[str, Any]:
    return {parameter.name: parameter.asnumpy().copy() for parameter in optimizer.get_parameters()}


def load_optimizer_state(optimizer: Any, state: Mapping[str, Any]) -> None:
    for parameter in optimizer.get_parameters():
        if parameter.name in state:
            _overwrite(parameter, state[parameter.name])


def learning_rate(optimizer: Any) -> float:
    rate = optimizer.learning_rate
    if isinstance(rate, ms.Tensor):
        return float(rate.asnumpy().reshape(-1)[0])
    return float(np.asarray(to_numpy(optimizer.get_lr())).reshape(-1)[0])


def set_learning_rate(optimizer: Any, learning_rate: float) -> None:
    rate = optimizer.learning_rate
    if not isinstance(rate, ms.Parameter) or rate.shape not in ((), (1,)):
        raise TrainError(
            f"{type(optimizer).__name__} follows its own schedule or has a learning rate per group, so it cannot be "
            "set from outside; give the optimizer a plain number as learning_rate"
        )
    ops.assign(rate, ms.Tensor(np.full(rate.shape, learning_rate, np.float32)))


def save_training(network: Any, optimizer: Any, path: Path) -> None:
    write_file({**snapshot(network), **optimizer_state(optimizer)}, path)


def load_training(network: Any, optimizer: Any, path: Path) -> None:
    saved = read_file(path)
    load_weights(network, saved)
    load_optimizer_state(optimizer, saved)


def export(network: Any, inputs: Sequence[Any], path: Path) -> Path:
    ms.export(network, *_tensors(inputs), file_name=str(path.with_suffix("")), file_format="MINDIR")
    return path.with_suffix(".mindir")


def write_file(tensors: Mapping[str, Any], path: Path) -> None:
    if path.suffix == ".safetensors":
        arrays = {name: np.ascontiguousarray(to_numpy(value)) for name, value in tensors.items()}
        need("safetensors.numpy", "to write .safetensors", extra="dev").save_file(arrays, path)
    else:
        # MindSpore adds ".ckpt" to a name without it; a name that has it is taken as it is.
        ms.save_checkpoint([{"name": name, "data": tensor(value)} for name, value in tensors.items()], str(path))


def read_file(path: Path) -> dict[str, Any]:
    return dict(ms.load_checkpoint(str(path)))


def _mixed_precision(recipe: Recipe) -> Any:
    if recipe.amp_level == "O0":
        return recipe.network
    return amp.auto_mixed_precision(recipe.network, recipe.amp_level)


def _tensors(columns: Sequence[Any]) -> list[Any]:
    return [column if isinstance(column, ms.Tensor) else tensor(column) for column in columns]


def _overwrite(parameter: Any, value: Any) -> None:
    array = to_numpy(value)
    if array.size == 1 and parameter.size == 1:
        array = array.reshape(parameter.shape)  # MindSpore's files hold a number as a list of one
    if tuple(array.shape) != tuple(parameter.shape):
        raise TrainError(
            f"{parameter.name} has shape {tuple(parameter.shape)} in the network and {tuple(array.shape)} in the "
            "checkpoint: the checkpoint is of another network"
        )
    # Not set_data: a compiled optimizer keeps the old buffer and would go on updating that one.
    ops.assign(parameter, ms.Tensor(np.asarray(array, order="C"), parameter.dtype))


def _warn_about_mint(optimizer: Any) -> None:
    home = type(optimizer).__module__
    if home.startswith("mindspore.mint.optim") and ms.get_context("device_target") == "CPU":
        warnings.warn(
            f"mint.optim.{type(optimizer).__name__} leaves the weights unchanged on a CPU with MindSpore 2.10 "
            f"(its in-place operators do nothing there); use mindspore.nn.{type(optimizer).__name__}",
            stacklevel=4,
        )
