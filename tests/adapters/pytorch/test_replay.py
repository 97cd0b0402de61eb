"""A replayed step is the same step, bit for bit, and leaves no trace in the training."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from tests.adapters.pytorch import trainings
from tests.adapters.pytorch.trainings import EXACT, Make
from tests.contract.recording import Recording
from torch import nn

from misstep.adapters.base import Adapter, Level
from misstep.adapters.pytorch.adapter import PyTorchAdapter
from misstep.adapters.replaying import Replayed

STEPS = 5


class Replaying(Recording):
    """Replays every step, as if the guard had tripped each time."""

    def __init__(self) -> None:
        super().__init__()
        self.replays: list[Replayed] = []
        self.frames: list[tuple[np.ndarray, np.ndarray]] = []
        """At op level: the rows of the step itself before the update."""

    def going_live(self, adapter: Adapter) -> None:
        self.frame.step = 1  # what the loop did before its first network stays in the frame

    def before_update(self, adapter: Adapter) -> None:
        assert isinstance(adapter, PyTorchAdapter)
        head, summary = self.frame.finish()
        self.frames.append((head.copy(), summary.copy()))
        self.replays.append(adapter.replay())


def seed() -> None:
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)


def fingerprint(modules: list[nn.Module]) -> str:
    """Weights, buffers, plain attributes and every generator of random numbers."""
    digest = hashlib.sha256()
    for module in modules:
        for tensor in module.state_dict().values():
            digest.update(tensor.detach().contiguous().view(torch.uint8).numpy().tobytes() if tensor.dim() else b"")
            digest.update(repr(tensor.tolist()).encode())
        for part in module.modules():
            digest.update(repr([getattr(part, name, None) for name in ("calls", "_seen")]).encode())
    digest.update(torch.get_rng_state().numpy().tobytes())
    digest.update(repr(np.random.get_state()).encode())
    digest.update(repr(random.getstate()).encode())
    return digest.hexdigest()


def untouched(make: Make) -> str:
    seed()
    step, modules = make()
    for _ in range(STEPS):
        step()
    return fingerprint(modules)


def replayed(make: Make, level: Level = "guard") -> tuple[Replaying, str]:
    seed()
    step, modules = make()
    recording = Replaying()
    adapter = PyTorchAdapter()
    adapter.attach(recording)
    adapter.set_level(level)
    adapter.arm_replay(True)
    try:
        for _ in range(STEPS):
            step()
    finally:
        adapter.detach()
    assert [f"{where}: {error!r}" for where, error in recording.troubles] == []
    return recording, fingerprint(modules)


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> int:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", EXACT)
def test_every_step_comes_out_bit_for_bit_and_training_goes_on_untouched(name: str, threads: int) -> None:
    make = EXACT[name]
    recording, after = replayed(make)
    assert len(recording.replays) >= STEPS
    first = 1 if "clipping" in name else 0  # clipping is learned from the first step
    assert {replay.exact for replay in recording.replays[first:]} == {"exact"}
    assert after == untouched(make)


@pytest.mark.parametrize("name", EXACT)
def test_every_operator_has_the_same_statistics_as_in_the_step_itself(name: str) -> None:
    recording, _ = replayed(EXACT[name], "op")
    for (head, summary), replay in zip(recording.frames, recording.replays):
        again_head, again = replay.frame.finish()
        kinds = recording.catalog.graph
        operators = {number for number, key in enumerate(kinds.tensors) if kinds.nodes[key.node].kind == "operator"
                     and kinds.nodes[key.node].phase in ("forward", "loss", "backward") and key.role == "output"}  # fmt: skip
        then = {int(tensor): row.tobytes() for tensor, row in zip(head["tensor"], summary) if int(tensor) in operators}
        now = {int(tensor): row.tobytes() for tensor, row in zip(again_head["tensor"], again)}
        shared = then.keys() & now.keys()
        assert len(shared) >= 0.5 * len(then)
        assert [kinds.address(number) for number in shared if then[number] != now[number]] == []
