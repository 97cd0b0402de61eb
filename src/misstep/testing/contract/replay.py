"""What every adapter that runs steps again must do with updates and capsules, as facts.

A new one inherits `ReplayContract`, says how to make its trainings, and is done when it is green.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from misstep.adapters.base import Adapter
from misstep.adapters.registry import adapter_named
from misstep.adapters.replaying.capsules import framework_of
from misstep.adapters.replaying.protocol import Capsule, CapsuleMaker, Replayer
from misstep.core.levels import Level
from misstep.core.stats import Array
from misstep.errors import ReplayError
from misstep.testing.contract.harness import Kind, Training
from misstep.testing.contract.recording import Recording, Replaying


class Repeating(Replaying):
    """Runs every update again, right after it."""

    def after_update(self, adapter: Adapter) -> None:
        super().after_update(adapter)
        assert isinstance(adapter, Replayer)
        self.keep(adapter.replay_update())


class Keeping(Recording):
    """Puts one step into a capsule."""

    def __init__(self, path: Path, step: int, most_bytes: int = 1 << 20) -> None:
        super().__init__()
        self.path, self.kept_step, self.most_bytes = path, step, most_bytes
        self.capsule: Capsule | None = None
        self.refused = ""

    def before_update(self, adapter: Adapter) -> None:
        super().before_update(adapter)
        assert isinstance(adapter, CapsuleMaker)
        if self.step == self.kept_step:
            try:
                self.capsule = adapter.save_capsule(self.path, step=self.step, most_bytes=self.most_bytes)
            except ReplayError as error:
                self.refused = str(error)


class Playing(Recording):
    """Begins with the step of a capsule."""

    expects_capsule = True

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.played_step, self.exact = 0, ""

    def going_live(self, adapter: Adapter) -> None:
        super().going_live(adapter)
        assert isinstance(adapter, CapsuleMaker)
        self.played_step = self.step = adapter.play_capsule(self.path)
        self.frame.begin(self.step)

    def before_update(self, adapter: Adapter) -> None:
        super().before_update(adapter)
        assert isinstance(adapter, CapsuleMaker)
        self.exact = self.exact or adapter.capsule_played()


class ReplayContract:
    adapter_name: str

    def make(self, kind: Kind) -> Training:
        raise NotImplementedError

    @property
    def adapter(self) -> Any:
        return adapter_named(self.adapter_name)

    def train(self, kind: Kind, recording: Any, *, steps: int, level: Level = "guard") -> dict[str, Array]:
        adapter, training = self.adapter, self.make(kind)
        adapter.attach(recording)
        try:
            adapter.set_level(level)
            adapter.arm_replay(level != "op")
            for _ in range(steps):
                training.step()
        finally:
            adapter.detach()
        assert [f"{where}: {error!r}" for where, error in recording.troubles] == []
        return training.weights()

    def test_an_update_that_writes_nan_is_run_again_and_named_by_its_operator(self) -> None:
        recording = Repeating()
        self.train("nan_optimizer", recording, steps=2)
        healthy, verdict = recording.found
        assert healthy is None
        assert verdict is not None
        assert (verdict.step, verdict.phase, verdict.kind, verdict.precision) == (2, "optimizer", "nan", "operator")
        assert verdict.node.startswith("optimizer/")
        assert {replayed.exact.partition(":")[0] for replayed in recording.replays} <= {"exact", "not exact"}

    def test_training_does_not_notice_that_its_updates_are_run_again(self) -> None:
        watched, bare = self.train("mlp", Repeating(), steps=3), self.make("mlp")
        for _ in range(3):
            bare.step()
        for name, weight in bare.weights().items():
            assert weight.tobytes() == watched[name].tobytes(), name

    def test_a_capsule_plays_the_same_step_bit_for_bit_in_a_training_that_never_came_to_it(
        self, tmp_path: Path
    ) -> None:
        keeping = Keeping(tmp_path / "step.capsule", 2)
        self.train("nan_input", keeping, steps=2)
        assert keeping.capsule is not None, keeping.refused
        assert (keeping.capsule.step, framework_of(keeping.path)) == (2, self.adapter_name)
        assert keeping.capsule.bytes == keeping.path.stat().st_size
        playing = Playing(keeping.path)
        self.train("nan_input", playing, steps=1, level="op")
        assert (playing.played_step, playing.exact) == (2, "exact")
        for name, gradient in keeping.gradients[2].items():
            assert gradient.tobytes() == playing.gradients[2][name].tobytes(), name
        assert (playing.verdict().step, playing.verdict().phase) == (2, "input")

    def test_a_program_that_computes_something_else_is_told_from_the_recorded_step(self, tmp_path: Path) -> None:
        keeping = Keeping(tmp_path / "step.capsule", 1)
        self.train("twice", keeping, steps=1)
        playing = Playing(keeping.path)
        self.train("container", playing, steps=1, level="op")
        assert playing.exact.startswith("not exact")

    def test_a_capsule_that_would_be_too_large_is_refused_with_the_way_out(self, tmp_path: Path) -> None:
        keeping = Keeping(tmp_path / "step.capsule", 1, most_bytes=16)
        self.train("mlp", keeping, steps=1)
        assert keeping.capsule is None
        assert "MISSTEP_CAPSULE_MB" in keeping.refused
        assert not keeping.path.exists()

    def test_a_file_that_is_no_capsule_is_said_to_be_none(self, tmp_path: Path) -> None:
        path = tmp_path / "step.capsule"
        path.write_text("not a capsule")
        with pytest.raises(ReplayError, match="cannot be read as a capsule"):
            framework_of(path)
        with pytest.raises(ReplayError, match="cannot be read as a capsule"):
            self.adapter.play_capsule(path)
