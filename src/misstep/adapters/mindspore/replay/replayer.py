"""The part of the adapter that runs a step again: what `adapters/replaying/protocol.py` asks of a framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from misstep.adapters.base import Listener, Traits
from misstep.adapters.mindspore import tensors
from misstep.adapters.mindspore.replay.tape import Tape, outside_of
from misstep.adapters.replaying.protocol import Batch, Capsule, Replayed
from misstep.adapters.step.flow import Flow
from misstep.adapters.step.frame import Frame
from misstep.core.stats import Array

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter
    from misstep.adapters.mindspore.graph.compare_modes import Modes
    from misstep.adapters.mindspore.graph.pynative import EagerStep
    from misstep.adapters.mindspore.replay.capsule import CapsulePlayer
    from misstep.adapters.mindspore.replay.rerun import SampleSearch
    from misstep.adapters.mindspore.seams.optimizer_updates import Updates


class MindSporeReplayer:
    """Knows the tape; the player is loaded when a step is run again."""

    tape: Tape
    flow: Flow
    rehearsed: EagerStep | None
    updates: Updates
    search: SampleSearch | None = None
    replayed: Flow | None = None
    """Of the last replay."""
    capsule: CapsulePlayer | None = None
    """The step of another process that is being run here."""
    steps_compiled = False
    """Whether steps of this training are compiled code."""
    eager_steps: list[tuple[int, int]] | None = None
    """Compiled steps that are run in PyNative first."""
    on_modes: Callable[[Modes], None] | None = None
    """Told how the two modes compare, whenever a step was run in both."""
    walks: Callable[[], bool] | None = None
    """Whether somebody goes from node to node, and not only to the end of a step."""

    @property
    def traits(self) -> Traits:
        call = self.tape.compiled
        late = call is not None and (call.weights is not None or bool(call.not_kept))
        return Traits(hides_nan=True, seen_too_late=late)

    @property
    def listener(self) -> Listener:
        raise NotImplementedError

    @property
    def walking(self) -> bool:
        """Somebody walks through the step under way: compiled code is run in PyNative for that."""
        return self.listener.stepping and (self.walks is None or self.walks())

    def arm_replay(self, on: bool) -> None:
        self.tape.arm(on)

    def replay(self) -> Replayed:
        from misstep.adapters.mindspore.graph.pynative import replay_compiled
        from misstep.adapters.mindspore.replay.rerun import replay

        if self.tape.compiled is not None and not self.tape.entries:
            return replay_compiled(cast("MindSporeAdapter", self), self.tape.compiled)
        return replay(cast("MindSporeAdapter", self))

    def replay_update(self) -> Replayed:
        from misstep.adapters.mindspore.replay.update_replay import replay_update

        replayed, self.replayed = replay_update(cast("MindSporeAdapter", self))
        return replayed

    # ── in another process ────────────────────────────────────────────────────────────────────────────────────

    def save_capsule(self, path: Path, *, step: int, most_bytes: int, frame: Frame | None = None) -> Capsule:
        from misstep.adapters.mindspore.replay.capsule import save_capsule

        return save_capsule(cast("MindSporeAdapter", self), path, step=step, most_bytes=most_bytes, frame=frame)

    def play_capsule(self, path: Path) -> int:
        from misstep.adapters.mindspore.replay.capsule import CapsulePlayer

        self.capsule = CapsulePlayer(cast("MindSporeAdapter", self), path)
        self.tape.arm(True)
        return self.capsule.step

    def capsule_played(self) -> str:
        assert self.capsule is not None
        capsule, self.capsule, self.tape.playing = self.capsule, None, None
        capsule.put_optimizers()
        return capsule.verdict(self.listener.frame)

    def loop_called(self, thing: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The loop calls a network, or a function to differentiate; a capsule may have other tensors for it."""
        if getattr(self.listener, "expects_capsule", False):
            cast("MindSporeAdapter", self).go_live()
        if not self.tape.armed:
            return args, kwargs
        name = str(getattr(thing, "__name__", type(thing).__name__))
        if self.capsule is not None:
            args, kwargs = self.capsule.swap(name, thing, args, kwargs)
        self.tape.called(name, args, kwargs, [(name, tensor) for name, tensor, _ in outside_of(thing)])
        return args, kwargs

    # ── what a replay found ───────────────────────────────────────────────────────────────────────────────────

    def take_over(self, replayed: Replayed) -> None:
        """From here on the step under way is what its replay showed."""
        assert self.replayed is not None
        self.flow.take_over(self.replayed)

    def batch(self) -> Batch | None:
        return None if self.search is None else self.search.batch()

    def bad_with(self, samples: Sequence[int], healthy: Sequence[int]) -> bool:
        assert self.search is not None
        return self.search.bad_with(samples, healthy)

    def sample(self, tensor: Any, index: int) -> Array:
        values: Array = tensors.array(tensor)[index]
        return values

    def compare_with_rehearsal(self) -> None:
        """Once a compiled step has a loss: did it come out as it did in PyNative?"""
        if self.rehearsed is not None and self.updates.losses:
            from misstep.adapters.mindspore.graph.compare_modes import compare_modes

            rehearsed, self.rehearsed = self.rehearsed, None
            compare_modes(cast("MindSporeAdapter", self), rehearsed)
