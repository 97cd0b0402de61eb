"""The seam between Model and a framework: what one training step, one evaluation step and one network can do.

    Model ──► Steps   (one network, its loss and optimizer, ready to be stepped)
    callbacks ──► Framework   (weights, learning rate, files of any network)

`steps_torch` and `steps_mindspore` are the only files of this package that import a framework; each of them, as a
module, is a Framework. Which of the two is used follows from the network in hand.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, cast

from misstep.errors import TrainError
from misstep.train.loss_scale import LossScale
from misstep.train.values import FrameworkName, framework_of

AmpLevel: TypeAlias = Literal["O0", "O1", "O2", "O3", "auto"]
AMP_LEVELS: tuple[AmpLevel, ...] = ("O0", "O1", "O2", "O3", "auto")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything Model was given that the steps are made from."""

    network: Any
    loss_fn: Any
    optimizer: Any
    eval_network: Any
    amp_level: AmpLevel
    loss_scale: LossScale | None
    keep_batchnorm_fp32: bool | None


class Steps(Protocol):
    """One network with its loss and optimizer."""

    train_network: Any
    eval_network: Any

    def train(self, batch: Any) -> Any:
        """One update of the weights; returns the loss, or (loss, overflow, scale) under a loss scale."""

    def evaluate(self, batch: Any) -> tuple[Any, ...]:
        """(loss, prediction, label) of one batch, or what the evaluation network returns."""

    def predict(self, data: Sequence[Any]) -> Any:
        """The network's output."""

    def set_training(self) -> None:
        """Training behaviour of dropout and batch normalisation."""

    def evaluating(self) -> AbstractContextManager[None]:
        """Evaluation behaviour inside; afterwards every layer is as it was, also one the user had frozen."""


class Framework(Protocol):
    """What callbacks and checkpoints need to know about a framework."""

    suffix: str

    def build_steps(self, recipe: Recipe) -> Steps: ...

    def tensor(self, value: Any) -> Any:
        """A tensor of this framework with the value of any other."""

    def snapshot(self, network: Any) -> dict[str, Any]:
        """Copies of all parameters and buffers, by name, as tensors of this framework."""

    def load_weights(self, network: Any, weights: Mapping[str, Any]) -> list[str]:
        """Writes values into the network in place; returns the names the network has and `weights` has not."""

    def optimizer_state(self, optimizer: Any) -> dict[str, Any]:
        """Everything an optimizer remembers, copied."""

    def load_optimizer_state(self, optimizer: Any, state: Mapping[str, Any]) -> None: ...

    def learning_rate(self, optimizer: Any) -> float: ...

    def set_learning_rate(self, optimizer: Any, learning_rate: float) -> None: ...

    def save_training(self, network: Any, optimizer: Any, path: Path) -> None:
        """Network and optimizer in one file."""

    def load_training(self, network: Any, optimizer: Any, path: Path) -> None: ...

    def export(self, network: Any, inputs: Sequence[Any], path: Path) -> Path:
        """The network as a program that runs without its Python source; returns the file."""

    def write_file(self, tensors: Mapping[str, Any], path: Path) -> None:
        """One file: safetensors when the name ends so, else the framework's own format."""

    def read_file(self, path: Path) -> dict[str, Any]:
        """The tensors of a file of this framework's own format."""

    def with_loss(self, network: Any, loss_fn: Any) -> Any:
        """A network that returns the loss."""

    def train_one_step(self, network: Any, optimizer: Any, loss_scale: LossScale) -> Any:
        """A network that trains itself by one step and returns (loss, overflow, scale)."""


def framework_for(network: object, *, what: str = "network") -> Framework:
    """The framework of a network, by its type."""
    name = framework_of(network)
    if name is None:
        raise TrainError(
            f"{what} is a {type(network).__name__}, neither a torch.nn.Module nor a mindspore.nn.Cell; "
            "subclass one of them, or wrap the function in one"
        )
    return framework_named(name)


def framework_named(name: FrameworkName) -> Framework:
    """The module that speaks to a framework, imported on first use."""
    module = sys.modules.get(f"misstep.train.steps.{name}") or import_module(f"misstep.train.steps.{name}")
    return cast(Framework, module)
