"""What it takes to run a step again, in words that no framework owns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from misstep.adapters.base import Listener
from misstep.adapters.step.frame import Frame
from misstep.core.stats import Array


@dataclass(frozen=True, slots=True)
class Replayed:
    """One step, run again with every operator watched."""

    frame: Frame
    exact: str
    """'exact' when losses and gradients came out bit for bit; 'loss only: …' or 'not exact: …' otherwise."""
    seconds: float = 0.0
    gradient_rows: dict[int, int] = field(default_factory=dict)
    """Rows of gradients in the frame, by whatever the adapter knows a weight by."""
    shared: bool = False
    """Other ranks had a part in the gradients of the step, and none in the replay."""


class QuietListener:
    """Hears the replay in the session's stead and does nothing about it, except for our own failures."""

    stepping = False
    shows_loss = True

    def __init__(self, real: Listener, frame: Frame) -> None:
        self.catalog = real.catalog
        self.frame = frame
        self.step = real.step
        wants = getattr(real, "replay_wants", None)
        self.wants: Any = {} if wants is None else wants(frame)
        self.trouble = real.trouble

    def _nothing(self, *facts: Any) -> None:
        """Nobody is to know."""

    going_live = initial = at_node = before_update = after_update = step_done = between_steps = exception = _nothing


@dataclass(frozen=True, slots=True)
class Batch:
    """The samples of the step: what can be taken out of it to see who is guilty."""

    size: int
    tensors: tuple[tuple[str, Any], ...]
    """(what it is, the tensor) of everything that holds one entry per sample."""
    indices: tuple[int, ...] = ()
    """Their indices in the dataset, when the sampler told."""
    names: tuple[str, ...] = ()
    """Their file names, when the dataset has them."""


@dataclass(frozen=True, slots=True)
class Capsule:
    """Everything a step needs to be run again in another process."""

    step: int
    path: Path
    bytes: int = 0
    facts: dict[str, Any] = field(default_factory=dict)


@runtime_checkable
class Replayer(Protocol):
    """An adapter that can run the step under way again."""

    def arm_replay(self, on: bool) -> None:
        """Keep from now on what a replay needs."""

    def replay(self) -> Replayed:
        """Run the step again up to its gradients; the user's state is as before. ReplayError says why it cannot."""

    def take_over(self, replayed: Replayed) -> None:
        """Go on as if the step had been watched as closely as its replay, whose frame the listener has now."""

    def replay_update(self) -> Replayed:
        """Run the last optimizer's update again, after it left something non-finite behind."""

    def batch(self) -> Batch | None:
        """The samples of the step, or None when no tensor looks like a batch."""

    def bad_with(self, samples: Sequence[int], healthy: Sequence[int]) -> bool:
        """Whether the step still gives a non-finite loss or gradient with only these samples in its batch.

        The places of the others are filled with healthy ones, or with these when none is known to be healthy.
        """

    def sample(self, tensor: Any, index: int) -> Array:
        """One sample out of a tensor of the batch."""


@runtime_checkable
class CapsuleMaker(Protocol):
    """An adapter that can write a step to a file and play it in another process."""

    def save_capsule(self, path: Path, *, step: int, most_bytes: int, frame: Frame | None = None) -> Capsule:
        """Write the step to a file, weights and optimizer included. ReplayError when it would be too large.

        `frame` is its replay, whose operators a later run is to be compared with.
        """

    def play_capsule(self, path: Path) -> int:
        """Swap a capsule's state and batch in at the first step; the number of the step in it."""

    def capsule_played(self) -> str:
        """Gradients are ready: how exactly the step came out as recorded."""
