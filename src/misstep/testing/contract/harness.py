"""The trainings an adapter is held to, and the harness that runs one of them under a listener.

The trainings all use `reference.BATCH`, `reference.TARGET`, plain gradient descent with `reference.LEARNING_RATE`, the
mean square as loss computed outside of any module, and are quiet on their own; faults begin with the second step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from misstep.adapters.base import Adapter
from misstep.adapters.registry import adapter_named
from misstep.core.levels import Level
from misstep.core.stats import Array
from misstep.testing.contract.recording import Recording

Kind = Literal[
    "mlp",  # Mlp: fc1 (3→5), act (tanh), fc2 (5→2), from reference.weights()
    "conv",  # a small convolutional network ending in two outputs; any names
    "container",  # Container: body (a sequence of fc 3→5 and tanh), head (5→2); returns head's output
    "twice",  # Twice: fc (3→3) called twice with a tanh between, then out (3→2)
    "shared",  # Shared: a and b (3→3), b.weight is a.weight, then out (3→2)
    "accumulation",  # an Mlp whose step runs two micro-batches (rows 0:3 and 3:6) before one update
    "raises",  # Faulty, whose `bad` raises ValueError("planted") in forward at step 2
    "nested",  # Nested: split returns {"sum": a tensor, "parts": (a tensor, a tensor)} of shapes (6,5), (6,2), (6,3)
    "nan_input",  # an Mlp whose batch holds one NaN at step 2
    "nan_forward",  # Faulty: fc1, bad, fc2; `bad` takes the logarithm of negative numbers from step 2 on
    "nan_backward",  # Faulty: `bad` takes the square root of exact zeros from step 2 on: finite forward, NaN backward
    "nan_backward_inside",  # Deep: fc1, body (a sequence of `bad` and a linear 5→5), fc2; `bad` as in nan_backward
    "nan_optimizer",  # an Mlp whose learning rate is NaN from step 2 on
]


@dataclass
class Training:
    """A model and its loop, before the first step."""

    model: Any
    step: Callable[[], float]
    """One update; returns the last loss."""
    weights: Callable[[], dict[str, Array]]
    """Copies, by the name misstep shall use."""
    evaluate: Callable[[], Any]
    """One forward without gradients."""
    optimizer: Any = None


class Harness:
    """What an author of an adapter fills in, and what the facts of the contract use."""

    adapter_name: str
    log_operator: str
    """How the framework calls the logarithm: the end of its node's name, and of the node's type."""
    source_file: str
    """The file that holds `bad`, as sources name it; its faulty lines end in `# planted`."""

    def make(self, kind: Kind) -> Training:
        raise NotImplementedError

    def footprint(self, training: Training) -> Any:
        """Everything an attached adapter may have touched, comparable with ==."""
        raise NotImplementedError

    def sees(self, address: str) -> bool:
        """Whether a row like this can be had at module level: compiled code hides what is inside of it."""
        return True

    # ---- the harness ----

    @property
    def adapter(self) -> Adapter:
        return adapter_named(self.adapter_name)

    def watch(
        self, kind: Kind, steps: int = 2, level: Level = "module", recording: Recording | None = None
    ) -> tuple[Recording, Training]:
        """A training of so many steps under a listener."""
        recording = recording or Recording()
        training = self.make(kind)
        self.adapter.attach(recording)
        try:
            self.adapter.set_level(level)
            for _ in range(steps):
                training.step()
        finally:
            self.adapter.detach()
        return recording, training

    def quiet(self, recording: Recording) -> None:
        assert [f"{where}: {error!r}" for where, error in recording.troubles] == []
