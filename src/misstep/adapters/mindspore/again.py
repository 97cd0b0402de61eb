"""The part of the adapter that runs a step again: what `adapters/replaying.py` asks of a framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from misstep.adapters.base import Listener
from misstep.adapters.flow import Flow
from misstep.adapters.mindspore import tensors
from misstep.adapters.mindspore.tape import Tape
from misstep.adapters.replaying import Batch, Replayed
from misstep.core.stats import Array
from misstep.errors import ReplayError

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter
    from misstep.adapters.mindspore.replay import SampleSearch


class Again:
    """Knows the tape; the player is loaded when a step is run again."""

    tape: Tape
    flow: Flow
    search: SampleSearch | None = None
    replayed: Flow | None = None
    """Of the last replay."""

    @property
    def listener(self) -> Listener:
        raise NotImplementedError

    def arm_replay(self, on: bool) -> None:
        self.tape.arm(on)

    def replay(self) -> Replayed:
        from misstep.adapters.mindspore.replay import replay

        return replay(cast("MindSporeAdapter", self))

    def replay_update(self) -> Replayed:
        raise ReplayError("MindSpore compiles its optimizers: what happens inside an update cannot be watched")

    def take_over(self, replayed: Replayed) -> None:
        """From here on the step under way is what its replay showed."""
        assert self.replayed is not None
        self.listener.frame.become(replayed.frame)
        self.flow.take_over(self.replayed)

    def batch(self) -> Batch | None:
        return None if self.search is None else self.search.batch()

    def bad_with(self, samples: Sequence[int], healthy: Sequence[int]) -> bool:
        assert self.search is not None
        return self.search.bad_with(samples, healthy)

    def sample(self, tensor: Any, index: int) -> Array:
        values: Array = tensors.array(tensor)[index]
        return values
