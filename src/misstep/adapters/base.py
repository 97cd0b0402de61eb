"""What misstep asks of a framework, and what a framework tells misstep.

An adapter is the only place that knows a framework. It finds the seams (module calls, backward, optimizer), keeps the
frame of the step filled, and tells its listener when something happened. Everything it does runs on the training
thread, inside the user's program, so every entry point is guarded: our failure is counted and shown once, never theirs.

    user's program ──seam──► Adapter ──frame rows──► Listener (the session)
                                     ──before_update, step_done, at_node──►

The order a listener may rely on, for every step of every framework:

    (at_node …)*  before_update  after_update  step_done       or       exception
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from misstep.adapters.frame import Catalog, Frame
from misstep.core.graph import Phase
from misstep.core.stats import Array
from misstep.errors import AdapterError

Level = Literal["off", "guard", "module", "op"]
LEVELS: tuple[Level, ...] = ("off", "guard", "module", "op")
"""off: only step boundaries. guard: losses, and whether gradients and weights are finite. module: statistics of every
module's inputs, outputs, output gradients, of parameters and their gradients. op: every operator too."""

When = Literal["before", "after"]


class TrainingStopped(SystemExit):
    """Ends the user's training from inside a hook, as a clean exit: `finally` blocks and `atexit` run."""


@dataclass(frozen=True, slots=True)
class Update:
    """The facts of one finished optimizer update."""

    loss: float | None
    losses: tuple[float, ...]
    learning_rate: float | None
    optimizer: str
    gradient_norm: float | None = None
    loss_scale: float | None = None
    overflow: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where training is, told before or after a node ran, while somebody steps through it."""

    node: int
    phase: Phase
    when: When
    kind: Literal["module", "operator", "optimizer"]
    call: int = 1


class Listener(Protocol):
    """What an adapter talks to; the session is one."""

    catalog: Catalog
    frame: Frame
    step: int
    """The step under way: one more than the updates finished."""
    stepping: bool
    """True while somebody wants to hear of every node (`at_node`)."""
    wants: dict[int, Callable[[int, Any], None]]
    """By tensor number: called with (row, tensor) when that tensor passes, for those who need more than statistics."""

    def going_live(self, adapter: Adapter) -> None:
        """This process really trains: called once, at the first forward with gradients, backward or optimizer step."""

    def initial(self, adapter: Adapter, frame: Frame) -> None:
        """The weights before training, as rows of step 0; called once, before the first update moves them."""

    def at_node(self, place: Place) -> None:
        """May block: this is where training pauses."""

    def before_update(self, adapter: Adapter) -> None:
        """Gradients are complete and in the frame; no weight was touched yet."""

    def after_update(self, adapter: Adapter) -> None:
        """Weights have moved and are in the frame."""

    def step_done(self, adapter: Adapter, update: Update) -> None:
        """The step is complete; may block, may change the level, begins the next frame.

        With `update.overflow` the optimizer was not called (a gradient scaler skipped it): the step number stays.
        """

    def exception(self, adapter: Adapter, error: BaseException, where: str) -> None:
        """The user's own code raised; it goes on rising after this."""

    def trouble(self, where: str, error: BaseException) -> None:
        """Something of ours failed; counted, shown once, training goes on."""


@runtime_checkable
class Adapter(Protocol):
    """A framework, seen by misstep."""

    name: str
    """`pytorch`, `mindspore`, `fake`."""

    def attach(self, listener: Listener) -> None:
        """Find the seams; every later event goes to the listener."""

    def detach(self) -> None:
        """Take everything out again; the user's program runs as if we had never been there."""

    def set_level(self, level: Level) -> None:
        """How closely to look, from the next step on; called at a step boundary."""

    def adopt(self, model: object, optimizer: object | None = None) -> None:
        """Name the tensors of this model first, instead of finding it when it is first called."""

    def take_cost(self) -> float:
        """Seconds spent in misstep's own code since the last call."""

    def parameters(self) -> Iterator[tuple[str, Any]]:
        """(name, tensor) of every weight known so far."""

    def buffers(self) -> Iterator[tuple[str, Any]]: ...

    def gradient(self, parameter: Any) -> Any | None: ...

    def array(self, tensor: Any) -> Array:
        """The tensor's memory as a numpy array without a copy where that is possible; bfloat16 through ml_dtypes."""

    def dtype_name(self, tensor: Any) -> str: ...

    def versions(self) -> dict[str, str]: ...

    def rank(self) -> tuple[int, int]:
        """(rank, world size) of this process."""


def adapter_for(thing: object) -> Adapter:
    """The adapter of whatever framework made this object; only frameworks already imported are asked.

    >>> adapter_for(torch.nn.Linear(2, 2)).name
    'pytorch'
    """
    kind = type(thing)
    known = _ADAPTER_OF.get(kind)
    if known is not None:
        return known
    for name, owns in _OWNERS.items():
        if owns(thing):
            if kind.__module__.partition(".")[0] in _FRAMEWORKS:  # classes of the user's are not kept alive here
                _ADAPTER_OF[kind] = adapter_named(name)
            return adapter_named(name)
    raise AdapterError(
        f"no adapter knows {kind.__module__}.{kind.__qualname__};"
        " misstep handles modules, cells, tensors and optimizers of torch and mindspore"
    )


def adapter_named(name: str) -> Adapter:
    """The one adapter of that framework in this process."""
    if name not in _ADAPTERS:
        if name == "pytorch":
            from misstep.adapters.pytorch.adapter import PyTorchAdapter

            _ADAPTERS[name] = PyTorchAdapter()
        elif name == "mindspore":
            from misstep.adapters.mindspore.adapter import MindSporeAdapter

            _ADAPTERS[name] = MindSporeAdapter()
        elif name == "fake":
            from misstep.adapters.fake import FakeAdapter

            _ADAPTERS[name] = FakeAdapter()
        else:
            raise AdapterError(f"no adapter is called {name!r}; there are pytorch, mindspore and fake")
    return _ADAPTERS[name]


def imported_frameworks() -> Iterable[str]:
    """Names of the adapters whose framework this process has imported."""
    return [name for name, module in (("pytorch", "torch"), ("mindspore", "mindspore")) if module in sys.modules]


_ADAPTERS: dict[str, Adapter] = {}
_ADAPTER_OF: dict[type, Adapter] = {}
"""By the framework's own types: a dump asks for each of thousands of tensors a step."""
_FRAMEWORKS = ("torch", "mindspore", "misstep")


def _is_torch(thing: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.nn.Module | torch.Tensor | torch.optim.Optimizer)


def _is_mindspore(thing: object) -> bool:
    mindspore = sys.modules.get("mindspore")
    return mindspore is not None and isinstance(thing, mindspore.nn.Cell | mindspore.Tensor)


def _is_fake(thing: object) -> bool:
    fake = sys.modules.get("misstep.adapters.fake")
    return fake is not None and isinstance(thing, fake.FakeModel | fake.FakeTensor)


_OWNERS: dict[str, Callable[[object], bool]] = {"pytorch": _is_torch, "mindspore": _is_mindspore, "fake": _is_fake}
