"""Training, evaluation and files of `torch.nn.Module`.

The step is the loop everybody writes: forward, backward, update. Mixed precision is `torch.autocast`, and a loss
scale runs through `torch.amp.GradScaler`: it scales, unscales and skips; our manager only tells it the next scale.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn

from misstep.errors import TrainError, need
from misstep.train.context.torch import compile_network
from misstep.train.data import columns_of, data_and_label
from misstep.train.loss_scale import LossScale, ScalerLossScale
from misstep.train.steps import AmpLevel, Recipe
from misstep.train.values import to_numpy

suffix = ".pt"


class TorchSteps:
    """One torch network with its loss and optimizer."""

    def __init__(self, recipe: Recipe) -> None:
        self.network: nn.Module = recipe.network
        self.loss_fn = recipe.loss_fn
        self.optimizer = recipe.optimizer
        self.train_network: nn.Module = recipe.network
        self.eval_network: nn.Module = recipe.eval_network if recipe.eval_network is not None else recipe.network
        self._own_eval_network = recipe.eval_network is not None
        self._device = _device_of(self.network)
        self._autocast = autocast_for(recipe.amp_level, self._device)
        if recipe.amp_level == "O3":
            _halve(self.network, keep_batchnorm=bool(recipe.keep_batchnorm_fp32))
        compile_network(self.network)
        self.train: Callable[[Any], Any] = self._train
        # The usual case has its own path: a context manager and three calls a step are 5 µs of a small network's 100.
        plain = recipe.amp_level == "O0" and self.loss_fn is not None
        self._loss: Callable[[Any], torch.Tensor] = self._plain_loss if plain else self._any_loss
        if self.optimizer is None:
            self.train = self._call  # the network trains itself, as TrainOneStepWithLossScaleCell does
        elif recipe.loss_scale is not None:
            self._scaled = ScaledUpdate(self.optimizer, recipe.loss_scale, self._device)
            self.train = self._train_scaled

    def _train(self, batch: Any) -> Any:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._loss(batch)
        (loss if loss.ndim == 0 else loss.sum()).backward()
        self.optimizer.step()
        return loss.detach()

    def _train_scaled(self, batch: Any) -> Any:
        self.optimizer.zero_grad(set_to_none=True)
        return self._scaled(self._loss(batch))

    def _call(self, batch: Any) -> Any:
        with self._autocast():
            return self._apply(batch)

    def _plain_loss(self, batch: Any) -> torch.Tensor:
        data, label = batch if type(batch) is tuple and len(batch) == 2 else data_and_label(batch)
        return _as_loss(self.loss_fn(self.network(self._tensor(data)), self._tensor(label)))

    def _any_loss(self, batch: Any) -> torch.Tensor:
        with self._autocast():
            if self.loss_fn is None:
                return loss_of(self._apply(batch))
            data, label = self._pair(batch)
            return _as_loss(self.loss_fn(self.network(data), label))

    def evaluate(self, batch: Any) -> tuple[Any, ...]:
        with torch.no_grad(), self._autocast():
            if self._own_eval_network:
                return columns_of(self.eval_network(*self._tensors(columns_of(batch))))
            data, label = self._pair(batch)
            prediction = self.network(data)
            return self.loss_fn(prediction, label), prediction, label

    def predict(self, data: Sequence[Any]) -> Any:
        with torch.no_grad(), self._autocast():
            return self.network(*self._tensors(data))

    def set_training(self) -> None:
        self.train_network.train()

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        roots = {id(root): root for root in (self.network, self.eval_network)}.values()
        before = [(module, module.training) for root in roots for module in root.modules()]
        try:
            for root in roots:
                root.eval()
            yield
        finally:
            for module, training in before:
                module.training = training

    def _apply(self, batch: Any) -> Any:
        if isinstance(batch, Mapping):
            return self.network(**{name: self._tensor(value) for name, value in batch.items()})
        return self.network(*self._tensors(columns_of(batch)))

    def _pair(self, batch: Any) -> tuple[Any, Any]:
        data, label = data_and_label(batch)
        return self._tensor(data), self._tensor(label)

    def _tensors(self, columns: Sequence[Any]) -> list[Any]:
        return [self._tensor(column) for column in columns]

    def _tensor(self, value: Any) -> Any:
        if type(value) is torch.Tensor and value.device == self._device:
            return value
        return tensor(value, device=self._device)


class ScaledUpdate:
    """Backward pass and update under a loss scale: (loss, overflow, scale)."""

    def __init__(self, optimizer: Any, loss_scale: LossScale, device: torch.device) -> None:
        self.optimizer = optimizer
        self.loss_scale = loss_scale
        self._drop = loss_scale.get_drop_overflow_update()
        if isinstance(loss_scale, ScalerLossScale):
            self.scaler = loss_scale.scaler
        else:
            self.scaler = torch.amp.GradScaler(device.type, init_scale=loss_scale.get_loss_scale())
        self._updated = False
        # GradScaler keeps to itself whether it skipped; the optimizer's own hook tells.
        optimizer.register_step_post_hook(self._note_update)

    def __call__(self, loss: torch.Tensor) -> Any:
        scale = self.loss_scale.get_loss_scale()
        total = loss if loss.ndim == 0 else loss.sum()
        if not self._drop:
            (total.float() * scale).backward()
            gradients = [p.grad for group in self.optimizer.param_groups for p in group["params"] if p.grad is not None]
            torch._foreach_mul_(gradients, 1.0 / scale)
            self.optimizer.step()
            self.loss_scale.update_loss_scale(False)
            return loss.detach()
        # In float32 already here: a float16 loss times 2**24 would be infinite before any gradient is.
        self.scaler.scale(total.float()).backward()
        self._updated = False
        self.scaler.step(self.optimizer)
        overflow = not self._updated
        self.loss_scale.update_loss_scale(overflow)
        if not isinstance(self.loss_scale, ScalerLossScale):
            self.scaler.update(self.loss_scale.get_loss_scale())
        return loss.detach(), overflow, scale

    def _note_update(self, *_: Any) -> None:
        self._updated = True


class WithLoss(nn.Module):
    """A network that returns the loss of its prediction."""

    def __init__(self, network: nn.Module, loss_fn: Any) -> None:
        super().__init__()
        self.network = network
        self.loss_fn = loss_fn

    def forward(self, data: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return _as_loss(self.loss_fn(self.network(data), label))


class TrainOneStep(nn.Module):
    """A network that trains itself by one step when called: (loss, overflow, scale)."""

    def __init__(self, network: nn.Module, optimizer: Any, loss_scale: LossScale) -> None:
        super().__init__()
        self.network = network
        self.optimizer = optimizer
        self._device = _device_of(network)
        self._update = ScaledUpdate(optimizer, loss_scale, self._device)

    def forward(self, *inputs: Any) -> Any:
        self.optimizer.zero_grad(set_to_none=True)
        tensors = [tensor(value, device=self._device) for value in inputs]
        return self._update(loss_of(self.network(*tensors)))

    def set_train(self, mode: bool = True) -> TrainOneStep:
        """MindSpore's name for `train`."""
        self.train(mode)
        return self


def build_steps(recipe: Recipe) -> TorchSteps:
    return TorchSteps(recipe)


def with_loss(network: nn.Module, loss_fn: Any) -> WithLoss:
    return WithLoss(network, loss_fn)


def train_one_step(network: nn.Module, optimizer: Any, loss_scale: LossScale) -> TrainOneStep:
    return TrainOneStep(network, optimizer, loss_scale)


def autocast_for(level: AmpLevel, device: torch.device) -> Callable[[], AbstractContextManager[Any]]:
    """O0 leaves everything in float32; O1, O2 and O3 compute in float16; auto in what the device is best at.

    Autocast keeps batch normalisation and losses in float32 by itself, which is all that O2 adds to O1; O3 also
    stores the weights in float16.
    """
    if level == "O0":
        return nullcontext
    dtype = torch.float16
    if level == "auto" and (device.type == "cpu" or (device.type == "cuda" and torch.cuda.is_bf16_supported())):
        dtype = torch.bfloat16
    return lambda: torch.autocast(device.type, dtype=dtype)


def tensor(value: Any, *, device: torch.device | None = None) -> Any:
    """A torch tensor from any tensor, array or number; nested structures are converted inside."""
    if isinstance(value, torch.Tensor):
        return value if device is None or value.device == device else value.to(device, non_blocking=True)
    if isinstance(value, Mapping):
        return {name: tensor(part, device=device) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(tensor(part, device=device) for part in value)
    if value is None or isinstance(value, str | bytes):
        return value
    array = to_numpy(value)
    if not array.flags.writeable:
        array = array.copy()
    return torch.as_tensor(array, device=device)


def snapshot(network: nn.Module) -> dict[str, Any]:
    return {name: value.detach().clone() for name, value in core(network).state_dict().items()}


def load_weights(network: nn.Module, weights: Mapping[str, Any]) -> list[str]:
    own = core(network).state_dict()
    with torch.no_grad():
        for name, target in own.items():
            if name in weights:
                value = tensor(weights[name])
                if tuple(value.shape) != tuple(target.shape):
                    raise TrainError(
                        f"{name} has shape {tuple(target.shape)} in the network and {tuple(value.shape)} in the "
                        "checkpoint: the checkpoint is of another network"
                    )
                target.copy_(value)
    return [name for name in own if name not in weights]


def optimizer_state(optimizer: Any) -> dict[str, Any]:
    return copy.deepcopy(dict(optimizer.state_dict()))


def load_optimizer_state(optimizer: Any, state: Mapping[str, Any]) -> None:
    optimizer.load_state_dict(copy.deepcopy(dict(state)))


def learning_rate(optimizer: Any) -> float:
    return float(optimizer.param_groups[0]["lr"])


def set_learning_rate(optimizer: Any, learning_rate: float) -> None:
    """Sets the first group's rate; the others keep their proportion to it."""
    groups = optimizer.param_groups
    first = float(groups[0]["lr"])
    same = all(float(group["lr"]) == first for group in groups)
    if not same and first == 0:
        raise TrainError(
            "the optimizer has groups with different learning rates and the first is 0, so no proportion is left to "
            "keep; use a torch.optim.lr_scheduler for this optimizer"
        )
    for group in groups:
        rate = learning_rate if same else learning_rate * float(group["lr"]) / first
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def save_training(network: nn.Module, optimizer: Any, path: Path) -> None:
    torch.save({"network": core(network).state_dict(), "optimizer": optimizer.state_dict()}, path)


def load_training(network: nn.Module, optimizer: Any, path: Path) -> None:
    saved = torch.load(path, map_location="cpu", weights_only=True)
    load_weights(network, saved["network"])
    optimizer.load_state_dict(saved["optimizer"])


def export(network: nn.Module, inputs: Sequence[Any], path: Path) -> Path:
    file = path.with_suffix(".pt2")
    device = _device_of(network)
    program = torch.export.export(core(network), tuple(tensor(value, device=device) for value in inputs))
    torch.export.save(program, file)
    return file


def write_file(tensors: Mapping[str, Any], path: Path) -> None:
    named = {name: tensor(value) for name, value in tensors.items()}
    if path.suffix == ".safetensors":
        contiguous = {name: value.contiguous() for name, value in named.items()}
        need("safetensors.torch", "to write .safetensors", extra="dev").save_file(contiguous, path)
    else:
        torch.save(named, path)


def read_file(path: Path) -> dict[str, Any]:
    return dict(torch.load(path, map_location="cpu", weights_only=True))


def core(network: nn.Module) -> nn.Module:
    """The user's network inside our wrappers, so that a checkpoint carries the names the user gave."""
    while isinstance(network, WithLoss | TrainOneStep):
        network = network.network
    return network


def loss_of(outputs: Any) -> torch.Tensor:
    """The loss among a network's outputs: the output itself, its `loss`, or the first of several."""
    if isinstance(outputs, torch.Tensor):
        return outputs
    named = outputs.get("loss") if isinstance(outputs, Mapping) else getattr(outputs, "loss", None)
    if named is not None:
        return _as_loss(named)
    if isinstance(outputs, tuple | list) and outputs:
        return _as_loss(outputs[0])
    raise _no_loss(outputs)


def _as_loss(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    raise _no_loss(value)


def _no_loss(value: Any) -> TrainError:
    return TrainError(f"the loss is a {type(value).__name__}, not a tensor: without loss_fn the network returns it")


def _device_of(network: nn.Module) -> torch.device:
    first = next(network.parameters(), None)
    return torch.device("cpu") if first is None else first.device


def _halve(network: nn.Module, *, keep_batchnorm: bool) -> None:
    network.half()
    if keep_batchnorm:
        for module in network.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.float()
