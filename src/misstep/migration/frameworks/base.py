"""The questions migration asks of a framework, answered in `torch.py` and `mindspore.py` beside this file.

Arrays cross the line as NumPy arrays; nothing above this line holds a tensor of a framework.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from misstep.errors import MigrationError, need
from misstep.store.foreign.elements import dtype_named

Framework = Literal["torch", "mindspore"]
FRAMEWORKS: tuple[Framework, ...] = ("torch", "mindspore")
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter or buffer: what it is called, what it looks like, and how to read it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: Literal["param", "buffer", "optimizer"] = "param"
    trainable: bool | None = None
    """None when only a file was read and the format does not say."""
    layer: str = ""
    """The class of the layer it belongs to; empty for a file."""
    shared: tuple[str, ...] = ()
    """Other names of the same parameter."""
    fetch: Callable[[], Array] | None = field(default=None, compare=False, repr=False)

    @property
    def count(self) -> int:
        total = 1
        for size in self.shape:
            total *= size
        return total


@dataclass(frozen=True, slots=True)
class Gradients:
    """What flowed back through one call: to its tensor inputs, and to the parameters below it."""

    inputs: tuple[Array | None, ...]
    params: Mapping[str, Array]


@dataclass(slots=True)
class Call:
    """One call of one layer during a pass."""

    path: str
    """Where the layer stands in the network; empty for the network itself."""
    type: str
    number: int
    """1 for the layer's first call of the pass."""
    inputs: list[Array]
    outputs: list[Array] = field(default_factory=list)
    parent: int = -1
    """Which call it ran inside of; -1 for the network's own."""
    out_grads: list[Array | None] = field(default_factory=list)
    in_grads: list[Array | None] = field(default_factory=list)
    buffers: dict[str, Array] = field(default_factory=dict)
    """Running statistics as they stood before the call."""
    buffers_after: dict[str, Array] = field(default_factory=dict)
    random: bool = False
    """The layer draws numbers in this mode."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What the layer was constructed with, defaults included."""
    given: frozenset[str] = frozenset()
    """Which of them the source spelled out."""
    native: bool = False
    """A layer of the framework itself, not of the user."""
    passed: Any = field(default=((), {}), repr=False)
    """Its positional and keyword arguments, with slots for the tensors."""


@dataclass(slots=True)
class Draw:
    """One random array a function drew outside of any layer."""

    kind: str
    array: Array


@dataclass(slots=True)
class Pass:
    """One pass through a network: every call in the order it began, and what came out."""

    calls: list[Call]
    outputs: list[Array]
    loss: float | None = None
    grads: dict[str, Array] = field(default_factory=dict)
    draws: list[Draw] = field(default_factory=list)
    error: str = ""
    """Why the network stopped halfway; the calls up to there are in `calls`."""


Force = Callable[[int, Call, Callable[[Sequence[Array]], list[Array]]], "list[Array] | None"]
"""Asked at every call (its number in the pass, the call with its own inputs, a way to run it on other inputs); what it
returns takes the place of the call's outputs."""


class Half(Protocol):
    """One framework's side of a migration."""

    name: Framework

    def recording(self) -> AbstractContextManager[None]:
        """While inside, every layer, loss and optimizer constructed remembers its arguments."""

    def parameters(self, model: Any) -> list[Param]: ...

    def load(self, model: Any, values: Mapping[str, Array]) -> None:
        """Put values into parameters and buffers, by name."""

    def arguments(self, thing: Any) -> tuple[Mapping[str, Any], frozenset[str]]:
        """What a layer, loss or optimizer was constructed with, and which of it was spelled out."""

    def run(
        self,
        model: Any,
        inputs: Sequence[Array],
        *,
        train: bool,
        loss: Any = None,
        labels: Sequence[Array] = (),
        backward: bool = False,
    ) -> Pass: ...

    def layer(
        self,
        model: Any,
        path: str,
        inputs: Sequence[Array],
        *,
        like: Call,
        train: bool,
        out_grads: Sequence[Array | None],
        quiet: bool = False,
    ) -> tuple[list[Array], Gradients]:
        """One layer alone, forward and backward; `quiet` turns its own dropout off."""

    def updates(self, model: Any, optimizer: Any, grads: Sequence[Mapping[str, Array]]) -> Iterator[dict[str, Array]]:
        """Feed the optimizer these gradients, one step each; the parameters after each step."""

    def learning_rate(self, optimizer: Any) -> float: ...

    def save(self, path: str, values: Mapping[str, Array]) -> None: ...


def projection(shape: tuple[int, ...], dtype: str = "float32") -> Array:
    """Fixed weights for a sum over an output: a loss for networks that come without one, the same on both sides."""
    wide = np.random.default_rng(len(shape) + 17).standard_normal(shape)
    return (wide / max(1.0, float(np.sqrt(wide.size)))).astype(dtype_named(dtype) or np.float32)


def framework_of(thing: Any) -> Framework | None:
    """Whose network this is, told by its ancestors without importing anything."""
    for ancestor in type(thing).__mro__:
        home = ancestor.__module__ or ""
        if ancestor.__name__ == "Module" and home.startswith("torch.nn"):
            return "torch"
        if ancestor.__name__ == "Cell" and home.startswith("mindspore.nn"):
            return "mindspore"
    return None


def half_of(framework: Framework) -> Half:
    """The side of this framework; says what to install when it is missing."""
    need(framework, f"to run the {'PyTorch' if framework == 'torch' else 'MindSpore'} side", extra=framework)
    return cast(Half, importlib.import_module(f"misstep.migration.frameworks.{framework}").half)


def half_for(model: Any) -> Half:
    found = framework_of(model)
    if found is None:
        raise MigrationError(
            f"{type(model).__name__} is neither a torch.nn.Module nor a mindspore.nn.Cell; "
            "the function after the colon must return the network"
        )
    return half_of(found)
