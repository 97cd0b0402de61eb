from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from misstep.train import LearningRateSchedule, schedules

from .conftest import Kit, regression

CLOSE = 1e-6  # MindSpore computes in float32

EVERY = [
    ("WarmUpLR", {"learning_rate": 0.1, "warmup_steps": 10}),
    ("ExponentialDecayLR", {"learning_rate": 0.1, "decay_rate": 0.9, "decay_steps": 4}),
    ("ExponentialDecayLR", {"learning_rate": 0.1, "decay_rate": 0.9, "decay_steps": 4, "is_stair": True}),
    ("NaturalExpDecayLR", {"learning_rate": 0.1, "decay_rate": 0.09, "decay_steps": 4}),
    ("NaturalExpDecayLR", {"learning_rate": 0.1, "decay_rate": 0.09, "decay_steps": 4, "is_stair": True}),
    ("InverseDecayLR", {"learning_rate": 0.1, "decay_rate": 0.9, "decay_steps": 4}),
    ("InverseDecayLR", {"learning_rate": 0.1, "decay_rate": 0.9, "decay_steps": 4, "is_stair": True}),
    ("CosineDecayLR", {"min_lr": 0.01, "max_lr": 0.1, "decay_steps": 4}),
    ("PolynomialDecayLR", {"learning_rate": 0.1, "end_learning_rate": 0.01, "decay_steps": 4, "power": 0.5}),
    (
        "PolynomialDecayLR",
        {"learning_rate": 0.1, "end_learning_rate": 0.01, "decay_steps": 4, "power": 0.5, "update_decay_steps": True},
    ),
]


def made(name: str, arguments: dict[str, Any]) -> LearningRateSchedule:
    schedule: LearningRateSchedule = getattr(schedules, name)(**arguments)
    return schedule


def test_warming_up_begins_at_zero() -> None:
    schedule = schedules.WarmUpLR(0.1, 10)
    assert [schedule(step) for step in (0, 1, 5, 10, 20)] == pytest.approx([0, 0.01, 0.05, 0.1, 0.1])


@pytest.mark.mindspore
@pytest.mark.parametrize(("name", "arguments"), EVERY)
def test_a_schedule_is_mindspores_at_every_step(name: str, arguments: dict[str, Any]) -> None:
    import mindspore as ms

    theirs = getattr(ms.nn, name)(**arguments)
    cell = made(name, arguments).mindspore()
    assert isinstance(cell, type(theirs))
    steps = range(14)
    ours = [made(name, arguments)(step) for step in steps]
    assert ours == pytest.approx(
        [float(theirs(ms.Tensor(step, ms.int32)).asnumpy()) for step in steps], rel=CLOSE, abs=1e-8
    )


@pytest.mark.parametrize(("name", "arguments"), EVERY)
def test_a_schedule_is_a_torch_scheduler(name: str, arguments: dict[str, Any]) -> None:
    import torch

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = made(name, arguments)
    scheduler = schedule.torch(optimizer)
    assert isinstance(scheduler, torch.optim.lr_scheduler.LRScheduler)
    rates = []
    for _ in range(8):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert rates == pytest.approx([schedule(step) for step in range(8)])


@pytest.mark.mindspore
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("piecewise_constant_lr", ([2, 5, 10], [0.1, 0.05, 0.01])),
        ("exponential_decay_lr", (0.1, 0.9, 9, 2, 3)),
        ("exponential_decay_lr", (0.1, 0.9, 9, 2, 3, True)),
        ("natural_exp_decay_lr", (0.1, 0.9, 9, 2, 2)),
        ("natural_exp_decay_lr", (0.1, 0.9, 9, 2, 2, True)),
        ("inverse_decay_lr", (0.1, 0.5, 9, 1, 2)),
        ("inverse_decay_lr", (0.1, 0.5, 9, 1, 2, True)),
        ("cosine_decay_lr", (0.01, 0.1, 9, 2, 2)),
        ("polynomial_decay_lr", (0.1, 0.01, 9, 2, 2, 0.5)),
        ("warmup_lr", (0.1, 9, 2, 2)),
    ],
)
def test_a_list_of_rates_is_mindspores(name: str, arguments: tuple[Any, ...]) -> None:
    from mindspore import nn

    assert getattr(schedules, name)(*arguments) == pytest.approx(getattr(nn, name)(*arguments), rel=1e-9)


def test_a_growing_decay_follows_its_formula() -> None:
    # Epochs 0 to 4, two steps each, decay over 2 epochs: lengths 2, 2, 2, 4, 4.
    parts = [0 / 2, 1 / 2, 2 / 2, 3 / 4, 4 / 4]
    expected = [0.09 * (1 - part) ** 0.5 + 0.01 for part in parts for _ in range(2)]
    assert schedules.polynomial_decay_lr(0.1, 0.01, 10, 2, 2, 0.5, True) == pytest.approx(expected)


class HalfAfter(LearningRateSchedule):
    def __init__(self, rate: float, step: int) -> None:
        super().__init__()
        self.rate = rate
        self.step = step

    def construct(self, global_step: Any) -> Any:
        return self.rate if global_step < self.step else self.rate / 2


def test_a_schedule_of_ones_own_trains_a_network_in_either_framework(kit: Kit) -> None:
    """Two steps at 0.1 and three at 0.05, whether the schedule is torch's, MindSpore's or nobody's."""
    from misstep.train import LearningRateScheduler, Model

    schedule, data = HalfAfter(0.1, 2), regression(5)
    reference = kit.linear()
    by_callback = Model(reference, loss_fn=kit.mse(), optimizer=kit.sgd(reference))
    by_callback.train(1, data, callbacks=LearningRateScheduler(schedule))

    network = kit.linear()
    if kit.name == "torch":
        optimizer = kit.sgd(network)
        Model(network, loss_fn=kit.mse(), optimizer=optimizer).train(
            1, data, callbacks=LearningRateScheduler(schedule.torch(optimizer))
        )
    else:
        from mindspore import nn

        optimizer = nn.SGD(network.trainable_params(), schedule.mindspore(steps=10))
        Model(network, loss_fn=kit.mse(), optimizer=optimizer).train(1, data)
    assert kit.weight(network) == pytest.approx(kit.weight(reference), abs=1e-6)


@pytest.mark.mindspore
def test_a_table_keeps_its_last_rate() -> None:
    import mindspore as ms

    table = HalfAfter(0.1, 2).mindspore(steps=3)
    rates = [float(table(ms.Tensor(step, ms.int32)).asnumpy()) for step in (0, 1, 2, 50)]
    assert rates == pytest.approx([0.1, 0.1, 0.05, 0.05])


def test_a_schedule_without_a_formula_says_so() -> None:
    with pytest.raises(NotImplementedError, match="needs a method construct"):
        LearningRateSchedule()(0)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="learning_rate must be a float"):
        schedules.WarmUpLR("0.1", 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="decay_steps must be at least 1"):
        schedules.ExponentialDecayLR(0.1, 0.9, 0)
    with pytest.raises(ValueError, match="min_lr must be less than max_lr"):
        schedules.CosineDecayLR(0.2, 0.1, 5)
    with pytest.raises(ValueError, match="milestones must rise"):
        schedules.piecewise_constant_lr([5, 2], [0.1, 0.2])
    with pytest.raises(ValueError, match="2 milestones need as many learning rates"):
        schedules.piecewise_constant_lr([2, 5], [0.1])
    assert np.isfinite(schedules.NaturalExpDecayLR(0.1, 0.5, 2)(1000))
