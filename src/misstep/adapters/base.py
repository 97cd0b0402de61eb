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

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from misstep.adapters.recording import Witness
from misstep.adapters.step.frame import Catalog, Frame
from misstep.core.finding import Finding
from misstep.core.graph import Phase
from misstep.core.levels import Level
from misstep.core.stats import Array
from misstep.settings import Settings

When = Literal["before", "after"]


class TrainingStopped(SystemExit):
    """Ends the user's training from inside a hook, as a clean exit: `finally` blocks and `atexit` run."""


class Update(NamedTuple):
    """The facts of one finished optimizer update."""

    loss: float | None
    losses: tuple[float, ...]
    learning_rate: float | None
    optimizer: str
    gradient_norm: float | None = None
    loss_scale: float | None = None
    overflow: bool = False
    left: bool = False
    """There was none: the script went on to another batch, or ended."""


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
    shows_loss: bool
    """Whether the loss of this step becomes a row under the guard although it is finite."""
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
        With `update.left` no update came, and what was seen of the step is all there will be.
        """

    def between_steps(self, adapter: Adapter, node: int, tensor: Any) -> None:
        """Outside of any step this node, of an evaluation, made a NaN of finite inputs."""

    def exception(self, adapter: Adapter, error: BaseException, where: str) -> None:
        """The user's own code raised; it goes on rising after this."""

    def trouble(self, where: str, error: BaseException) -> None:
        """Something of ours failed; counted, shown once, training goes on."""


class SessionPort(Protocol):
    """What a framework may ask of the session for what it adds to it (`Adapter.extend`), and nothing more."""

    @property
    def settings(self) -> Settings: ...

    @property
    def catalog(self) -> Catalog: ...

    @property
    def frame(self) -> Frame: ...

    @property
    def step(self) -> int:
        """The step under way."""

    @property
    def wants(self) -> Mapping[int, Callable[[int, Any], None]]:
        """As in `Listener.wants`."""

    @property
    def rank(self) -> int: ...

    @property
    def ended(self) -> bool: ...

    @property
    def run_directory(self) -> Path | None:
        """None until training begins."""

    @property
    def level(self) -> Level:
        """The level the user asked for."""

    def level_for(self, step: int) -> Level: ...

    @property
    def walking(self) -> bool:
        """A debugger goes from node to node, and not only to the end of a step."""

    def going_live(self, adapter: Adapter) -> None:
        """Begin the run now, before the adapter would."""

    def trouble(self, where: str, error: BaseException) -> None:
        """Something of ours failed; counted, shown once, training goes on."""

    def event(self, kind: str, **facts: Any) -> None:
        """A line of the journal; nothing before training begins."""

    def report(self, finding: Finding) -> None:
        """A finding of the run; what is found before training begins is written when it does."""

    def note(self, level: Literal["info", "warning"], text: str) -> None:
        """A sentence for connected debuggers."""


class UncompiledRuns(Protocol):
    """Runs compiled steps uncompiled as well, for a debugger that wants to see inside them."""

    @property
    def compiled(self) -> bool:
        """Whether the steps of this training are compiled code."""

    def check(self, *, inside: int | None) -> None:
        """Raise ControlError when the next step cannot be run uncompiled; `inside`: the step under way, if any."""

    def ask(self, steps: str, *, done: int) -> str:
        """Run these steps in both modes when they come, `done` being the last that ended; what to answer."""


@dataclass(frozen=True, slots=True)
class Extension:
    """What a framework adds to a session."""

    explain: Callable[[BaseException], dict[str, Any]] | None = None
    """More facts about an exception of the user's program; may report findings."""
    modes: UncompiledRuns | None = None


@dataclass(frozen=True, slots=True)
class Traits:
    """How a framework differs from the usual; asked instead of its name."""

    hides_nan: bool = False
    """Its kernels turn NaN into numbers (ReLU, MaxPool): a finite loss proves nothing."""
    shadowed: bool = False
    """The step under way is compiled code: its operators are to be seen in a second, uncompiled run of it."""
    seen_too_late: bool = False
    """The step under way was compiled together with its update: its loss is known once its weights have moved."""


USUAL = Traits()


class Defaults:
    """The answers of a framework with nothing special about it; an adapter inherits them and overrides what differs."""

    @property
    def traits(self) -> Traits:
        return USUAL

    def extend(self, session: SessionPort) -> Extension:
        return Extension()

    def witness(self) -> Witness | None:
        return None

    def leave_step(self, error: BaseException | None = None) -> None:
        """Nothing to say of a step without an update."""


@runtime_checkable
class Adapter(Protocol):
    """A framework, seen by misstep."""

    name: str
    """`pytorch`, `mindspore`, `fake`."""

    @property
    def traits(self) -> Traits:
        """What is special about this framework, at this moment of training."""

    def extend(self, session: SessionPort) -> Extension:
        """Add to a session what only this framework has; called once, before `attach`."""

    def witness(self) -> Witness | None:
        """This framework's part of the flight record; None when it has none."""

    def attach(self, listener: Listener) -> None:
        """Find the seams; every later event goes to the listener."""

    def detach(self) -> None:
        """Take everything out again; the user's program runs as if we had never been there."""

    def leave_step(self, error: BaseException | None = None) -> None:
        """The program ends, by this exception if any: tell of the step under way as far as it came."""

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
