"""A training run and its steps, as facts.

Steps count optimizer updates: the first is step 1. Step 0 is the state before training, so `fc.weight:param@0` is
the initial weight, `fc.weight:param@7` the weight after the seventh update, and everything computed on the way to
that update (outputs, gradients, loss) belongs to step 7 too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

RunState = Literal["starting", "running", "paused", "finished", "failed", "stopped", "lost"]
"""`lost`: no end was written and the process is gone."""

FORMAT_VERSION = 2
"""Of the run directory; a reader refuses a later one with a clear error. 2: short lines for steps (stepline.py)."""

_IN_EVERY_RUN = frozenset({"misstep", "python", "numpy"})

HUB_FILE = "hub.json"
"""In a run directory: where the hub that wants to talk to this run listens."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What was run, where, with which versions: the contents of run.json."""

    name: str
    command: tuple[str, ...]
    started: float
    """Seconds since 1970."""
    directory: str = ""
    host: str = ""
    pid: int = 0
    user: str = ""
    format: int = FORMAT_VERSION
    versions: dict[str, str] = field(default_factory=dict)
    git: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    world_size: int = 1

    @property
    def frameworks(self) -> dict[str, str]:
        """The versions of what trained, without those of what every run has."""
        return {name: version for name, version in self.versions.items() if name not in _IN_EVERY_RUN}


@dataclass(frozen=True, slots=True)
class Step:
    """One optimizer update."""

    number: int
    loss: float | None = None
    seconds: float = 0.0
    learning_rate: float | None = None
    epoch: int | None = None
    loss_scale: float | None = None
    overflow: bool = False
    """A gradient scaler found a non-finite gradient and skipped the update."""
    left: bool = False
    """No update ended it: the script went on to another batch, or ended."""
    overhead: float = 0.0
    """Share of the step's time spent in misstep."""
    captured: str = "guard"
    """The level at which the step was watched."""
    losses: tuple[float, ...] = ()
    """Every loss passed to backward in this step, when there was more than one."""
    gradient_norm: float | None = None
    optimizer: str = ""
    time: float = 0.0
    """Seconds since 1970 at its end."""
