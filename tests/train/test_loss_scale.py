from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from misstep.errors import TrainError
from misstep.train import (
    DynamicLossScaleManager,
    DynamicLossScaleUpdateCell,
    FixedLossScaleManager,
    FixedLossScaleUpdateCell,
    LambdaCallback,
    Model,
    TrainOneStepWithLossScaleCell,
    WithLossCell,
)

from .conftest import WEIGHT, Kit, losses_by_hand, regression

CLOSE = 1e-5  # float32

BAD = (np.full((8, 4), 1e30, np.float32), np.zeros((8, 1), np.float32))  # its squared error is infinite in float32


def scales_after(scale: Any, overflows: list[bool]) -> list[float]:
    seen = []
    for overflow in overflows:
        scale.update_loss_scale(overflow)
        seen.append(scale.get_loss_scale())
    return seen


STORY = [False, False, True, False, False, False, True, True, False, False, False, False]
SCALES = [8, 16, 8, 8, 16, 16, 8, 4, 4, 8, 8, 16]


@pytest.mark.parametrize("make", [DynamicLossScaleManager, DynamicLossScaleUpdateCell])
def test_both_rules_halve_on_overflow_and_double_after_a_window_without(make: Any) -> None:
    assert scales_after(make(8, 2, 2), STORY) == SCALES


@pytest.mark.mindspore
def test_both_rules_are_mindspores_step_for_step() -> None:
    import mindspore as ms

    rng = np.random.default_rng(5)
    overflows = [bool(flag) for flag in rng.random(300) < 0.1]
    theirs: Any = ms.DynamicLossScaleManager(2**10, 2, 7)
    expected = scales_after(theirs, overflows)
    assert scales_after(DynamicLossScaleManager(2**10, 2, 7), overflows) == expected
    cell = ms.nn.DynamicLossScaleUpdateCell(2**10, 2, 7)
    scale = ms.Parameter(ms.Tensor(2.0**10, ms.float32))
    by_cell = []
    for overflow in overflows:
        cell(scale, ms.Tensor(overflow))
        by_cell.append(float(scale.asnumpy()))
    assert scales_after(DynamicLossScaleUpdateCell(2**10, 2, 7), overflows) == by_cell


def test_a_scale_never_falls_below_one() -> None:
    assert scales_after(DynamicLossScaleManager(2, 4, 10), [True, True]) == [1, 1]


def test_a_thousand_overflows_in_a_row_are_not_the_scales_fault() -> None:
    manager = DynamicLossScaleManager(2, 2, 10)
    with pytest.raises(TrainError, match="gradients overflowed in 1001 steps in a row"):
        scales_after(manager, [True] * 1001)


def test_a_fixed_scale_does_not_move() -> None:
    assert scales_after(FixedLossScaleManager(512.0), [True, False]) == [512, 512]
    assert FixedLossScaleManager(drop_overflow_update=False).get_update_cell() is None
    assert scales_after(FixedLossScaleUpdateCell(0.5), [True]) == [0.5]


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="loss_scale must be at least 1"):
        FixedLossScaleManager(0.5)
    with pytest.raises(ValueError, match="scale_factor must be more than 1"):
        DynamicLossScaleManager(8, 1, 2)
    with pytest.raises(TypeError, match="scale_window must be a whole number"):
        DynamicLossScaleManager(8, 2, 2.5)  # type: ignore[arg-type]
    with pytest.raises(TrainError, match="a loss scale must be"):
        Model("anything", loss_scale_manager="big")


def outputs_of(model: Model, epochs: int, data: Any) -> list[Any]:
    seen: list[Any] = []
    model.train(
        epochs,
        data,
        callbacks=LambdaCallback(on_train_step_end=lambda run: seen.append(run.original_args().net_outputs)),
    )
    return seen


@pytest.mark.parametrize("scale", [1.0, 1024.0])
def test_a_scaled_step_learns_what_a_plain_step_learns(kit: Kit, scale: float) -> None:
    network = kit.linear()
    model = Model(
        network, loss_fn=kit.mse(), optimizer=kit.sgd(network), loss_scale_manager=FixedLossScaleManager(scale)
    )
    data = regression()
    outputs = outputs_of(model, 2, data)
    assert [float(loss) for loss, _, _ in outputs] == pytest.approx(losses_by_hand(data, epochs=2), rel=CLOSE)
    assert [(overflow, used) for _, overflow, used in outputs] == [(False, scale)] * 10


def test_without_dropping_overflows_the_output_is_the_loss_alone(kit: Kit) -> None:
    network = kit.linear()
    manager = FixedLossScaleManager(1024.0, drop_overflow_update=False)
    model = Model(network, loss_fn=kit.mse(), optimizer=kit.sgd(network), loss_scale_manager=manager)
    data = regression()
    outputs = outputs_of(model, 1, data)
    assert [float(loss) for loss in outputs] == pytest.approx(losses_by_hand(data), rel=CLOSE)


@pytest.mark.mindspore
def test_an_optimizer_that_divides_by_the_scale_itself_is_not_divided_twice() -> None:
    from mindspore import nn

    from .conftest import KITS

    kit = KITS["mindspore"]
    network = kit.linear()
    optimizer = nn.SGD(network.trainable_params(), 0.1, loss_scale=1024.0)
    manager = FixedLossScaleManager(1024.0, drop_overflow_update=False)
    data = regression()
    outputs = outputs_of(Model(network, loss_fn=kit.mse(), optimizer=optimizer, loss_scale_manager=manager), 1, data)
    assert [float(loss) for loss in outputs] == pytest.approx(losses_by_hand(data), rel=CLOSE)


def check_overflow(kit: Kit) -> None:
    network = kit.linear()
    manager = DynamicLossScaleManager(64, 2, 2)
    model = Model(network, loss_fn=kit.mse(), optimizer=kit.momentum(network), loss_scale_manager=manager)
    good = regression(1)[0]
    outputs = outputs_of(model, 1, [BAD])
    assert np.array_equal(kit.weight(network), WEIGHT), "the step was skipped"
    assert (outputs[0][1], outputs[0][2]) == (True, 64)
    outputs = outputs_of(model, 1, [good, good, good])
    assert [(overflow, scale) for _, overflow, scale in outputs] == [(False, 32), (False, 32), (False, 64)]
    assert not np.array_equal(kit.weight(network), WEIGHT)


def test_a_step_that_overflows_is_skipped_and_halves_the_scale(kit: Kit) -> None:
    check_overflow(kit)


@pytest.mark.mindspore
def test_a_step_that_overflows_is_skipped_in_graph_mode_too(graph_mode: None) -> None:
    from .conftest import KITS

    check_overflow(KITS["mindspore"])


def test_the_self_training_network_returns_loss_overflow_and_scale(kit: Kit) -> None:
    network = kit.linear()
    scale = DynamicLossScaleUpdateCell(1024, 2, 1)
    train = TrainOneStepWithLossScaleCell(WithLossCell(network, kit.mse()), kit.sgd(network), scale)
    train.set_train()
    data = regression(2)
    outputs = [train(*batch) for batch in (data[0], BAD, data[1])]
    assert [(overflow, used) for _, overflow, used in outputs] == [(False, 1024), (True, 2048), (False, 1024)]
    by_hand = losses_by_hand(data)
    assert [float(outputs[0][0]), float(outputs[2][0])] == pytest.approx(by_hand, rel=CLOSE)


def test_a_grad_scaler_of_the_users_keeps_its_own_rule() -> None:
    import torch

    from .conftest import KITS

    kit = KITS["torch"]
    network = kit.linear()
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1, backoff_factor=0.25)
    model = Model(network, loss_fn=kit.mse(), optimizer=kit.sgd(network), loss_scale_manager=scaler)
    outputs = outputs_of(model, 1, [regression(1)[0], BAD])
    assert [(overflow, scale) for _, overflow, scale in outputs] == [(False, 8.0), (True, 16.0)]
    assert scaler.get_scale() == 4.0


def test_half_precision_overflows_where_float32_does_not(kit: Kit) -> None:
    network = kit.linear()
    model = Model(
        network,
        loss_fn=kit.mse(),
        optimizer=kit.sgd(network, 1e-6),
        amp_level="O1" if kit.name == "torch" else "O3",
        loss_scale_manager=DynamicLossScaleManager(2.0**24, 2, 1000),
    )
    outputs = outputs_of(model, 6, regression(5))
    overflowed = [overflow for _, overflow, _ in outputs]
    assert overflowed[0] is True, "2**24 is beyond float16"
    assert overflowed[-1] is False, "the scale came down to where float16 can hold the gradients"
    assert overflowed == sorted(overflowed, reverse=True)
