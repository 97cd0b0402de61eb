"""A replayed step is the same step, bit for bit, and leaves no trace in the training."""

from __future__ import annotations

import contextlib
import hashlib
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.adapters.pytorch import trainings
from tests.adapters.pytorch.sideeffects import WITH_TRACES
from tests.adapters.pytorch.trainings import EXACT, Make, Step
from torch import nn

from misstep.adapters.base import Adapter, Update
from misstep.adapters.pytorch.adapter import PyTorchAdapter
from misstep.adapters.replaying.protocol import Replayed
from misstep.core.levels import Level
from misstep.errors import ReplayError
from misstep.testing.contract.recording import Recording

STEPS = 5


class Replaying(Recording):
    """Replays every step, as if the guard had tripped each time."""

    def __init__(self) -> None:
        super().__init__()
        self.replays: list[Replayed] = []
        self.frames: list[tuple[np.ndarray, np.ndarray]] = []
        """At op level: the rows of the step itself that led to the update, which its replay runs again."""
        self._updated = 0
        """Rows of the step up to its last update: several optimizers may share a step."""

    def going_live(self, adapter: Adapter) -> None:
        self.frame.step = 1  # what the loop did before its first network stays in the frame

    def before_update(self, adapter: Adapter) -> None:
        assert isinstance(adapter, PyTorchAdapter)
        head, summary = self.frame.finish()
        self.frames.append((head[self._updated :].copy(), summary[self._updated :].copy()))
        self.replays.append(adapter.replay())

    def after_update(self, adapter: Adapter) -> None:
        super().after_update(adapter)
        self._updated = len(self.frame)

    def step_done(self, adapter: Adapter, update: Update) -> None:
        super().step_done(adapter, update)
        self._updated = 0


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


def replayed(make: Make, level: Level = "guard", recording: Replaying | None = None) -> tuple[Replaying, str]:
    seed()
    step, modules = make()
    recording = recording or Replaying()
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


@pytest.mark.parametrize("name", WITH_TRACES)
def test_what_a_forward_leaves_behind_is_there_once_however_often_it_was_replayed(name: str) -> None:
    recording, after = replayed(WITH_TRACES[name])
    assert {replay.exact for replay in recording.replays} == {"exact"}
    assert after == untouched(WITH_TRACES[name])


def test_a_generator_kept_outside_of_the_network_is_wound_back_and_told() -> None:
    outside = torch.Generator()

    class Net(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x + torch.randn(x.shape, generator=outside))

    def make() -> tuple[Step, list[nn.Module]]:
        outside.manual_seed(1)
        model = Net(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

        def step() -> None:
            optimizer.zero_grad()
            model(torch.ones(8, 4)).square().mean().backward()
            optimizer.step()

        return step, [model]

    recording, after = replayed(make)
    left = outside.get_state()
    assert {replay.exact.partition(":")[0] for replay in recording.replays} == {"not exact"}
    assert after == untouched(make)
    assert torch.equal(left, outside.get_state())


def test_a_step_compiled_as_a_whole_is_compiled_and_trained_as_without_us() -> None:
    compiled: list[str] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        compiled.append(str(graph.graph))
        return graph.forward

    def make() -> tuple[Step, list[nn.Module]]:
        torch._dynamo.reset()
        compiled.clear()
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        loss_of = torch.compile(lambda x: model(x).square().mean(), backend=backend)

        def step() -> None:
            optimizer.zero_grad()
            loss_of(torch.randn(8, 4)).backward()
            optimizer.step()

        return step, [model]

    class Trying(Replaying):
        def before_update(self, adapter: Adapter) -> None:
            assert isinstance(adapter, PyTorchAdapter)
            with contextlib.suppress(ReplayError):
                adapter.replay()

    _, after = replayed(make, recording=Trying())
    with_us = list(compiled)
    assert after == untouched(make)
    assert set(with_us) == set(compiled)


def summaries(recording: Replaying, rows: tuple[np.ndarray, np.ndarray]) -> dict[str, bytes]:
    """What every operator before the update put out, by its address, bit for bit; calls counted from its first one."""
    graph = recording.catalog.graph
    found, first_call = {}, {}
    for number, summary in zip(rows[0]["tensor"].tolist(), rows[1]):
        key = graph.tensors[number]
        node = graph.nodes[key.node]
        if node.kind == "operator" and node.phase != "optimizer" and key.role == "output":
            address = graph.address(number)
            call = address.call - first_call.setdefault(key.node, address.call) + 1
            found[str(replace(address, call=call))] = summary.tobytes()
    return found


NOT_COMPARED = {
    "lstm/mkldnn_rnn_layer:output.3",  # a workspace, partly uninitialised
    "lstm/mkldnn_rnn_layer~2:output.3",
    "script/add_:output",  # the loop's running total: the replay adds to it again, and puts it back
}


@pytest.mark.parametrize("name", EXACT)
def test_every_operator_gives_what_it_gave_in_the_step_itself(name: str) -> None:
    recording, _ = replayed(EXACT[name], "op")
    for rows, replay in zip(recording.frames, recording.replays):
        then, now = summaries(recording, rows), summaries(recording, replay.frame.finish())
        compared = (then.keys() & now.keys()) - NOT_COMPARED
        assert len(compared) >= 0.5 * len(then)
        assert [address for address in sorted(compared) if then[address] != now[address]] == []


def test_code_without_a_network_is_exact_from_the_second_step_on() -> None:
    class Patient(Replaying):
        def before_update(self, adapter: Adapter) -> None:
            if self.step > 1:
                super().before_update(adapter)

    recording, after = replayed(trainings.functional, recording=Patient())
    assert [replay.exact for replay in recording.replays] == ["exact"] * (STEPS - 1)
    assert after == untouched(trainings.functional)


def test_hooks_that_move_weights_do_not_move_them_again() -> None:
    """The weights moved inside backward, so the replay cannot be exact; it must not make things worse."""
    recording, after = replayed(trainings.fused_backward)
    assert all(replay.exact != "exact" for replay in recording.replays)
    assert after == untouched(trainings.fused_backward)


# ── controls: what must differ does ──────────────────────────────────────────────────────────────────────────────────


def verdicts_without(what: str, monkeypatch: pytest.MonkeyPatch, make: Make) -> set[str]:
    from misstep.adapters.pytorch.replay import entries
    from misstep.adapters.pytorch.replay import state as moment

    if what == "random numbers":
        monkeypatch.setattr(moment.Randomness, "restore", lambda self: None)
        monkeypatch.setattr(entries.Entry, "random", property(lambda self: None, lambda self, value: None))
    else:
        monkeypatch.setattr(moment.NetworkState, "put_in", lambda self: None)
    recording, _ = replayed(make)
    return {replay.exact.partition(":")[0] for replay in recording.replays}


@pytest.mark.parametrize(
    ("what", "make"),
    [
        ("random numbers", trainings.gpt),
        ("random numbers", trainings.counting),
        ("state", trainings.spectral),
        ("state", trainings.counting),
    ],
)
def test_a_replay_with_something_not_restored_is_not_exact(
    what: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "exact" not in verdicts_without(what, monkeypatch, make)


def test_another_number_of_threads_would_change_the_gradients_and_is_pinned() -> None:
    torch.manual_seed(0)
    model = nn.Linear(512, 512)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    recording = Replaying()
    adapter = PyTorchAdapter()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    adapter.attach(recording)
    adapter.set_level("guard")
    adapter.arm_replay(True)
    try:
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(513, 512)).square().sum().backward()
            torch.set_num_threads(2)
            optimizer.step()
            assert torch.get_num_threads() == 2
            torch.set_num_threads(1)
    finally:
        adapter.detach()
        torch.set_num_threads(before)
    assert [replay.exact for replay in recording.replays] == ["exact"] * 3


def test_a_batch_overwritten_before_the_update_is_told() -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def make() -> tuple[Callable[[], None], list[nn.Module]]:
        def step() -> None:
            x = torch.randn(8, 4)
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            x.zero_()
            optimizer.step()

        return step, [model]

    recording, _ = replayed(make)
    assert all("overwritten in place" in replay.exact for replay in recording.replays)


def test_hooks_prints_and_counters_of_the_user_are_as_if_run_once(capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[int] = []
    count = 0

    def make() -> tuple[Callable[[], None], list[nn.Module]]:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

        def hook(*facts: object) -> None:
            nonlocal count
            count += 1
            calls.append(count)
            print("called")

        model.register_forward_hook(hook)

        def step() -> None:
            loss = model(torch.randn(8, 4)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return step, [model]

    replayed(make)
    assert calls == [1, 2, 3, 4, 5]
    assert count == STEPS
    assert capsys.readouterr().out == "called\n" * STEPS


def test_the_users_graph_is_freed_as_early_as_without_a_tape() -> None:
    import weakref

    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    adapter = PyTorchAdapter()
    adapter.attach(Replaying())
    adapter.set_level("guard")
    adapter.arm_replay(True)
    try:
        out = model(torch.randn(8, 4))
        alive = weakref.ref(out)
        loss = out.square().mean()
        del out
        loss.backward()
        assert alive() is None
        optimizer.step()
    finally:
        adapter.detach()


def test_an_evaluation_that_forgot_no_grad_does_not_grow_the_tape() -> None:
    model = nn.Linear(4, 1)
    adapter = PyTorchAdapter()
    adapter.attach(Replaying())
    adapter.set_level("guard")
    adapter.arm_replay(True)
    try:
        for _ in range(2000):
            model(torch.randn(8, 4)).square().mean().item()
        assert len(adapter.tape.entries) < 1100
    finally:
        adapter.detach()


def test_a_weight_goes_into_an_operator_under_its_own_name() -> None:
    recording, _ = replayed(EXACT["gpt with dropout"])
    graph = recording.catalog.graph
    inputs = {str(graph.address(number)) for number, key in enumerate(graph.tensors) if key.role == "input"}
    assert {"words.weight:input", "blocks.0.qkv.weight:input", "head.bias:input"} <= inputs
    assert not any(address.startswith("head/addmm:input") for address in inputs)
