"""MindSpore in PyNative mode, in all the ways people train with it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn
from mindspore.experimental import optim
from mindspore.graph import api
from tests.adapters.mindspore.trainings import INPUTS, STYLES, TARGETS, Fault, Plain, Style, settle, train, watch

from misstep.adapters.mindspore import tensors
from misstep.adapters.mindspore.seams.inplace_writes import METHODS
from misstep.adapters.registry import adapter_named
from misstep.core.levels import Level
from misstep.testing.contract.recording import Recording

PLACES = ["fc1:output", "bad:output", "act:output", "fc2:output", "Net:output", "MSELoss:output"]


@pytest.mark.parametrize("style", STYLES)
def test_a_network_has_the_same_names_in_every_kind_of_loop(style: Style) -> None:
    recording, result = watch(style)
    assert recording.events == ["going_live", *["before_update", "after_update", "step_done"] * 3]
    for step in (1, 2, 3):
        assert recording.addresses(step, "output") == PLACES
        assert recording.addresses(step, "grad") == [f"{name}:grad" for name in result.weights]
        assert recording.addresses(step, "param") == [f"{name}:param" for name in result.weights]
        assert recording.addresses(step, "loss") == ["loss:loss"]
    assert [update.loss for update in recording.updates] == result.losses
    assert [update.learning_rate for update in recording.updates] == [pytest.approx(0.1)] * 3
    assert {update.optimizer for update in recording.updates} == {"Momentum"}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("level", ["guard", "module", "op"])
def test_training_is_bit_identical(style: Style, level: Level) -> None:
    assert watch(style, level=level)[1] == train(style)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("level", ["guard", "module"])
def test_nothing_is_waited_for_while_forward_and_backward_run(
    style: Style, level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MindSpore runs ahead of Python: to read a value at every cell would cost a third of a CNN's step."""
    events: list[str] = []
    read = tensors.memory_of

    def note(tensor: object) -> object:
        events.append("read")
        return read(tensor)

    monkeypatch.setattr(tensors, "memory_of", note)
    forward, backward = api._PyNativeExecutor.new_graph, api._PyNativeExecutor.grad
    monkeypatch.setattr(api._PyNativeExecutor, "new_graph", lambda *a: (events.append("forward"), forward(*a))[1])
    monkeypatch.setattr(api._PyNativeExecutor, "grad", lambda *a: (backward(*a), events.append("done"))[0])
    watch(style, level=level)
    order = [kind for kind, _ in groupby(events)]
    first = order.index("done")  # the weights before training are read at its first cell
    assert order[first:] == ["done", "read", *["forward", "done", "read"] * 2]


FULL = ms.Tensor(np.full((4, 5), 77, np.float32))


@pytest.mark.parametrize("level", ["module", "op"])
@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.__setitem__(0, 77.0),
        lambda y: y.copy_(FULL),
        lambda y: y.assign_value(FULL),
        lambda y: ms.ops.assign(y, FULL),
        lambda y: ms.ops.assign_add(y, FULL),
        lambda y: ms.ops.ScatterUpdate()(y, ms.Tensor([1]), FULL[:1]),
        lambda y: y.view(20).copy_(FULL.view(20)),
    ],
    ids=["setitem", "copy_", "assign_value", "assign", "assign_add", "scatter", "view copy_"],
)
def test_what_is_written_in_place_is_read_before_and_after(write: Callable[[Any], object], level: Level) -> None:
    class Masking(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.act, self.fc2 = nn.Dense(3, 5), nn.Tanh(), nn.Dense(5, 2)

        def construct(self, x: ms.Tensor) -> ms.Tensor:
            y = self.fc1(x)
            z = self.act(y)
            write(y)
            return self.fc2(y) + z.mean()

    options: dict[str, Any] = {
        "model_of": lambda fault: Masking(),
        "optimizer_of": lambda parameters: nn.SGD(parameters, 1e-6),
    }
    recording, result = watch("functional", level=level, **options)
    for step in (1, 2, 3):
        assert 0 < recording.stats(f"fc1:output@{step}").max < 70
        assert recording.stats(f"fc2:input@{step}").max > 70
        assert recording.stats(f"act:output@{step}").count == 20
    assert result == train("functional", **options)


def test_what_replaced_tensor_methods_leaves_no_trace() -> None:
    before = {name: name in vars(ms.Tensor) for name in METHODS}
    watch("functional")
    assert {name: name in vars(ms.Tensor) for name in METHODS} == before
    assert "__call__" not in vars(ms.ops.ScatterUpdate)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("fault", "phase", "node"),
    [
        ("log", "forward", "bad"),
        ("sqrt", "backward", "bad"),
        ("exp", "forward", "bad"),
        ("log_relu", "forward", "bad"),
        ("optimizer", "optimizer", "fc1.weight"),
    ],
)
def test_a_fault_is_named_by_its_cell(style: Style, fault: Fault, phase: str, node: str) -> None:
    recording, _ = watch(style, fault)
    verdict = recording.verdict()
    assert (verdict.step, verdict.phase, verdict.node, verdict.precision) == (2, phase, node, "module")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("fault", "phase", "node"),
    [("log", "forward", "bad/Log"), ("sqrt", "backward", "bad/SqrtGrad"), ("exp", "forward", "bad/Exp")],
)
def test_a_fault_is_named_by_its_operator_and_line(style: Style, fault: Fault, phase: str, node: str) -> None:
    recording, _ = watch(style, fault, level="op")
    verdict = recording.verdict()
    assert (verdict.step, verdict.phase, verdict.node, verdict.precision) == (2, phase, node, "operator")
    assert verdict.source is not None
    assert verdict.source.file.endswith("trainings.py")
    assert verdict.source.code.endswith("# planted")
    assert fault in verdict.source.code


def test_a_nan_that_an_activation_hides_never_reaches_the_loss_and_is_found_all_the_same() -> None:
    recording, result = watch("functional", "log_relu")
    assert all(np.isfinite(result.losses))
    assert recording.verdict().node == "bad"


@pytest.mark.parametrize(
    "make",
    [
        lambda parameters: nn.SGD(parameters, 0.05),
        lambda parameters: nn.Adam(parameters, 0.05),
        lambda parameters: nn.AdamWeightDecay(parameters, 0.05),
        lambda parameters: nn.RMSProp(parameters, 0.05),
        lambda parameters: optim.SGD(parameters, 0.05),
        lambda parameters: optim.Adam(parameters, 0.05),
        lambda parameters: ms.mint.optim.SGD(parameters, 0.05),
        lambda parameters: ms.mint.optim.Adam(parameters, 0.05),
    ],
    ids=["SGD", "Adam", "AdamWeightDecay", "RMSProp", "optim.SGD", "optim.Adam", "mint.SGD", "mint.Adam"],
)
def test_every_optimizer_marks_a_step(make: object) -> None:
    recording, result = watch("functional", optimizer_of=make)
    assert recording.events.count("step_done") == 3
    assert [update.learning_rate for update in recording.updates] == [pytest.approx(0.05)] * 3
    assert recording.addresses(3, "param") == [f"{name}:param" for name in result.weights]
    assert result == train("functional", optimizer_of=make)  # type: ignore[arg-type]


def test_a_rate_from_a_list_is_read_by_step() -> None:
    rates = [0.1, 0.05, 0.025]
    recording, _ = watch("functional", optimizer_of=lambda parameters: nn.SGD(parameters, learning_rate=rates))
    assert [update.learning_rate for update in recording.updates] == pytest.approx(rates)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_rate_from_a_schedule_is_computed(mode: int) -> None:
    options: dict[str, Any] = {
        "mode": mode,
        "model_of": lambda fault: Plain(),
        "optimizer_of": lambda parameters: nn.SGD(parameters, nn.ExponentialDecayLR(0.1, 0.5, 1)),
    }
    recording, result = watch("functional", **options)
    assert [update.learning_rate for update in recording.updates] == pytest.approx([0.1, 0.05, 0.025])
    assert result == train("functional", **options)
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_optimizers_called_after_one_backward_share_a_step() -> None:
    recording, adapter = Recording(), adapter_named("mindspore")
    model = settle(Plain())
    weights = model.trainable_params()
    optimizers = [nn.SGD(weights[:2], 0.1), nn.Momentum(weights[2:], 0.05, 0.9)]

    def forward(x: ms.Tensor) -> ms.Tensor:
        return model(x).sum()

    differentiate = ms.value_and_grad(forward, None, weights)
    adapter.attach(recording)
    try:
        adapter.set_level("module")
        for optimizer in optimizers:
            adapter.adopt(model, optimizer)
        for _ in range(3):
            _, gradients = differentiate(ms.Tensor(INPUTS))
            optimizers[0](gradients[:2])
            optimizers[1](gradients[2:])
    finally:
        adapter.detach()
    assert recording.events == ["going_live", *[*["before_update", "after_update"] * 2, "step_done"] * 3]
    assert recording.addresses(2, "grad") == [f"{weight.name}:grad" for weight in weights]
    assert recording.addresses(2, "param") == [f"{weight.name}:param" for weight in weights]
    assert len(recording.updates) == 3


def test_updates_after_all_gradients_share_a_step_from_the_first_on() -> None:
    recording, adapter = Recording(), adapter_named("mindspore")
    maker, judge = settle(Plain()), settle(nn.SequentialCell(nn.Dense(2, 1), nn.Dense(1, 1)))
    # The second layer of the judge is differentiated and never updated: it must not hold up the step.
    optimizers = [nn.SGD(judge.trainable_params()[:2], 0.1), nn.SGD(maker.trainable_params(), 0.1)]
    gradients_of = [
        ms.value_and_grad(lambda x: judge(maker(x)).sum(), None, tuple(network.trainable_params()))
        for network in (judge, maker)
    ]
    adapter.attach(recording)
    try:
        adapter.set_level("guard")
        for _ in range(3):
            found = [differentiate(ms.Tensor(INPUTS))[1] for differentiate in gradients_of]
            for optimizer, gradients in zip(optimizers, found):
                optimizer(gradients[: len(optimizer.parameters)])
    finally:
        adapter.detach()
    assert recording.events == ["going_live", *[*["before_update", "after_update"] * 2, "step_done"] * 3]
    assert [len(update.losses) for update in recording.updates] == [2, 2, 2]


@pytest.mark.parametrize("whose", ["amp", "misstep"])
def test_an_update_that_a_loss_scale_skips_is_told(whose: str) -> None:
    from mindspore import amp

    from misstep.train.loss_scale import DynamicLossScaleUpdateCell
    from misstep.train.steps.mindspore import train_one_step

    recording, adapter = Recording(), adapter_named("mindspore")
    model, loss_of = settle(Plain()), nn.MSELoss()
    optimizer = nn.SGD(model.trainable_params(), 0.01)
    scaler = amp.DynamicLossScaler(1024, 2, 100)
    network = train_one_step(nn.WithLossCell(model, loss_of), optimizer, DynamicLossScaleUpdateCell(1024, 2, 100))

    def forward(x: ms.Tensor, target: ms.Tensor) -> ms.Tensor:
        return scaler.scale(loss_of(model(x), target))

    differentiate = ms.value_and_grad(forward, None, optimizer.parameters)
    adapter.attach(recording)
    try:
        adapter.set_level("guard")
        for bad in (False, True, False, False):
            batch = ms.Tensor(INPUTS * np.float32(np.inf if bad else 1)), ms.Tensor(TARGETS)
            if whose == "misstep":
                network(*batch)
                continue
            _, gradients = differentiate(*batch)
            finite = amp.all_finite(gradients)
            if finite:
                optimizer(scaler.unscale(gradients))
            scaler.adjust(finite)
    finally:
        adapter.detach()
    told = [(update.overflow, update.loss_scale) for update in recording.updates]
    assert told == [(False, 1024.0), (True, 1024.0), (False, 512.0), (False, 512.0)]


def test_an_optimizer_that_changes_nothing_on_this_platform_shows_unchanged_weights() -> None:
    """mint optimizers write in place, and in-place operators are silent on the CPU."""
    recording, _ = watch("functional", optimizer_of=lambda parameters: ms.mint.optim.SGD(parameters, 0.05))
    assert recording.stats("fc1.weight:param@0") == recording.stats("fc1.weight:param@3")
    assert recording.stats("fc1.weight:grad@1").abs_mean > 0


class Lengths(nn.Cell):
    """A vector beside its length: the root of zero has no derivative."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Dense(3, 5, has_bias=False), nn.Dense(5, 2)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        y = self.fc1(x * 0)
        length = ms.ops.sqrt((y * y).sum(axis=1, keepdims=True))  # planted
        return self.fc2(y) + length


class Tied(nn.Cell):
    """A weight that two operators use, one of them badly."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Dense(3, 2, has_bias=False)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        scale = ms.ops.sqrt((self.fc1.weight * 0).sum())  # planted
        return self.fc1(x) + scale


@pytest.mark.parametrize("model", [Lengths, Tied])
def test_a_gradient_that_several_operators_add_to_is_blamed_on_the_one_that_spoiled_it(model: type[nn.Cell]) -> None:
    recording, _ = watch("functional", level="op", steps=1, model_of=lambda fault: model())
    verdict = recording.verdict()
    assert (verdict.phase, verdict.op) == ("backward", "SqrtGrad")
    assert verdict.source is not None
    assert verdict.source.code.endswith("# planted")


class OwnBackward(nn.Cell):
    """Its backward is the user's own, and bad."""

    def __init__(self) -> None:
        super().__init__()
        self.act = nn.Tanh()

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.act(x) / 2

    def bprop(self, x: ms.Tensor, out: ms.Tensor, dout: ms.Tensor) -> tuple[ms.Tensor]:
        return (ms.ops.log(dout * 0 - 1),)


def test_a_bad_gradient_of_the_users_own_backward_is_blamed_on_it() -> None:
    network = nn.SequentialCell(nn.Dense(3, 5), OwnBackward(), nn.Dense(5, 2))
    recording, _ = watch("functional", level="op", steps=1, model_of=lambda fault: network)
    verdict = recording.verdict()
    assert (verdict.phase, verdict.node, verdict.op) == ("backward", "1/bprop", "bprop")
    assert verdict.source is not None
    assert verdict.source.code.startswith("def bprop(self, x")
    assert recording.stats("1:grad_input@1").nan == 20


def test_two_networks_keep_their_names_apart() -> None:
    class Maker(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Dense(3, 3)

        def construct(self, x: ms.Tensor) -> ms.Tensor:
            return self.fc(x)

    class Judge(Maker):
        pass

    maker, judge, recording, adapter = Maker(), Judge(), Recording(), adapter_named("mindspore")
    first, second = nn.SGD(maker.trainable_params(), 0.1), nn.SGD(judge.trainable_params(), 0.1)
    adapter.attach(recording)
    try:
        adapter.set_level("module")
        for optimizer in (first, second):
            _, gradients = ms.value_and_grad(lambda x: judge(maker(x)).sum(), None, optimizer.parameters)(
                ms.Tensor(INPUTS)
            )
            optimizer(gradients)
    finally:
        adapter.detach()
    assert recording.addresses(1, "output") == ["fc:output", "Maker:output", "Judge.fc:output", "Judge:output"]
    assert recording.addresses(1, "param") == ["fc.weight:param", "fc.bias:param"]
    assert recording.addresses(2, "param") == ["Judge.fc.weight:param", "Judge.fc.bias:param"]


def test_a_compiled_function_among_cells_is_one_place() -> None:
    class Half(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Dense(3, 2)

        def construct(self, x: ms.Tensor) -> ms.Tensor:
            return squash(self.fc(x))

    @ms.jit
    def squash(x: ms.Tensor) -> ms.Tensor:
        return ms.ops.tanh(x) * 2

    recording, result = watch("functional", model_of=lambda fault: Half())
    assert recording.addresses(1, "output") == ["fc:output", "Half.squash:output", "Half:output", "MSELoss:output"]
    assert recording.node("Half.squash").type == "jit"
    assert not recording.row("Half.squash:output@1").alias
    assert result == train("functional", model_of=lambda fault: Half())


def test_what_was_watched_may_go_into_compiled_code_at_any_time() -> None:
    """MindSpore compiles the hooks of what compiled code is given, and cannot compile ours."""
    from mindspore import amp

    @ms.jit
    def double(x: ms.Tensor) -> ms.Tensor:
        return x * 2

    class Halving(nn.Cell):
        def construct(self, x: ms.Tensor) -> ms.Tensor:
            return x / 2

        def bprop(self, x: ms.Tensor, out: ms.Tensor, dout: ms.Tensor) -> tuple[ms.Tensor]:
            return (double(out) * 0 + dout / 2,)

    def program() -> list[bytes]:
        model = settle(nn.SequentialCell(nn.Dense(3, 5), Halving(), nn.Dense(5, 2)))
        optimizer, scaler = nn.SGD(model.trainable_params(), 0.01), amp.DynamicLossScaler(1024, 2, 2)

        def forward(x: ms.Tensor) -> tuple[ms.Tensor, ms.Tensor]:
            scores = model(x)
            return scaler.scale(scores.sum()), scores

        differentiate = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
        kept: list[ms.Tensor] = []
        for _ in range(3):
            (loss, scores), gradients = differentiate(ms.Tensor(INPUTS))
            kept += [double(scores), scaler.unscale(loss)]
            optimizer(scaler.unscale(gradients))
            kept += [scaler.unscale(loss), double(scores), scores]
        kept += [double(scores) for scores in kept[4::5]]
        return [one.asnumpy().tobytes() for one in (*kept, *model.trainable_params())]

    recording, adapter = Recording(), adapter_named("mindspore")
    adapter.attach(recording)
    try:
        adapter.set_level("module")
        watched = program()
    finally:
        adapter.detach()
    assert recording.troubles == []
    assert recording.addresses(3, "grad_output") != []
    assert watched == program()


def test_a_forked_child_is_silent() -> None:
    import os

    recording, adapter = Recording(), adapter_named("mindspore")
    adapter.attach(recording)
    try:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, b"1" if adapter.busy else b"0")  # type: ignore[attr-defined]
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reader, 1) == b"1"
        assert not adapter.busy  # type: ignore[attr-defined]
    finally:
        adapter.detach()
