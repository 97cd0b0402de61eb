"""The samples of the MindSpore guide "网络调试" (network debugging), with misstep.train in place of mindspore.

Three samples of the guide cannot run as printed: they use `ckpt` where `ckpt1` and `ckpt2` are meant, compare arrays
with `==` in an `if`, and ask `if np.isnan(array)`. They are corrected here and otherwise left as they are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from misstep.train import (
    CheckpointConfig,
    LearningRateSchedule,
    LearningRateScheduler,
    Model,
    ModelCheckpoint,
    load_checkpoint,
    save_checkpoint,
)

from .conftest import Kit, regression


@pytest.fixture
def two_steps(kit: Kit, tmp_path: Path) -> tuple[Path, Path]:
    """Checkpoints of two steps in a row, as the guide advises."""
    network = kit.linear()
    model = Model(network, loss_fn=kit.mse(), optimizer=kit.sgd(network))
    config = CheckpointConfig(save_checkpoint_steps=1)
    model.train(1, regression(2), callbacks=[ModelCheckpoint("net", tmp_path, config)])
    return tmp_path / f"net-1_1{kit.suffix}", tmp_path / f"net-1_2{kit.suffix}"


def test_the_weights_of_a_checkpoint_are_printed(
    two_steps: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    ckpt_path = two_steps[0]

    ckpt = load_checkpoint(ckpt_path)
    for param in ckpt:
        value = ckpt[param].data.asnumpy()
        print(value)

    assert re.match(r"\[\[ *-?\d\.\d+ ", capsys.readouterr().out)


def test_weights_that_did_not_change_between_two_steps_are_counted(
    two_steps: tuple[Path, Path], kit: Kit, capsys: pytest.CaptureFixture[str]
) -> None:
    ckpt1 = load_checkpoint(two_steps[0])
    ckpt2 = load_checkpoint(two_steps[1])
    sum = 0
    same = 0
    for param1, param2 in zip(("weight", "bias"), ("weight", "bias")):
        sum = sum + 1
        value1 = ckpt1[param1].data.asnumpy()
        value2 = ckpt2[param2].data.asnumpy()
        if np.array_equal(value1, value2):
            print("same value: ", param1, value1)
            same = same + 1
    print("All params num: ", sum)
    print("same params num: ", same)

    assert capsys.readouterr().out == "All params num:  2\nsame params num:  0\n"


def test_weights_that_are_nan_or_inf_are_found(kit: Kit, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = kit.linear(np.array([[1.0, np.nan]], np.float32), np.array([np.inf], np.float32))
    ckpt_path = tmp_path / "broken.ckpt"
    save_checkpoint(network, ckpt_path)

    ckpt = load_checkpoint(ckpt_path)
    for param in ckpt:
        value = ckpt[param].data.asnumpy()
        if np.isnan(value).any():
            print("NAN value:", value)
        if np.isinf(value).any():
            print("INF value:", value)

    assert capsys.readouterr().out == "NAN value: [[ 1. nan]]\nINF value: [inf]\n"


def test_the_same_numpy_input_gives_the_same_loss_in_both_frameworks() -> None:
    from .conftest import KITS

    np.random.seed(1)
    input = np.random.randint(0, 10, size=(3, 5, 4)).astype(np.float32)
    label = np.ones((3, 5, 1), np.float32)
    losses = {}
    for name, kit in KITS.items():
        network = kit.linear()
        model = Model(network, loss_fn=kit.mse(), metrics={"loss"})
        losses[name] = model.eval([(kit.tensor(input), kit.tensor(label))])["loss"]
    assert losses["torch"] == pytest.approx(losses["mindspore"], rel=1e-6)


class WarmUpLR(LearningRateSchedule):
    """The guide's own schedule, in Python arithmetic: for either framework."""

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__()
        ## check the input
        if not isinstance(learning_rate, float):
            raise TypeError("learning_rate must be float.")
        ## define the operators
        self.warmup_steps = warmup_steps
        self.learning_rate = learning_rate

    def construct(self, global_step: Any) -> Any:
        ## calculate the lr
        warmup_percent = min(global_step, self.warmup_steps) / self.warmup_steps
        return self.learning_rate * warmup_percent


def test_the_guides_warm_up_begins_at_zero_and_stays_at_the_top(kit: Kit) -> None:
    schedule = WarmUpLR(0.1, 10)
    assert [schedule(step) for step in (0, 1, 5, 10, 20)] == pytest.approx([0, 0.01, 0.05, 0.1, 0.1])
    network = kit.linear()
    optimizer = kit.sgd(network)
    Model(network, loss_fn=kit.mse(), optimizer=optimizer).train(
        1, regression(5), callbacks=LearningRateScheduler(schedule)
    )
    assert kit.rate(optimizer) == pytest.approx(0.05)
    with pytest.raises(TypeError, match="learning_rate must be float"):
        WarmUpLR(1, 10)


@pytest.mark.mindspore
def test_the_guides_warm_up_in_mindspore_operators_is_a_cell_for_its_optimizers() -> None:
    from mindspore import _checkparam as validator
    from mindspore import dtype as mstype
    from mindspore import nn, ops

    from .conftest import KITS

    class WarmUpLR(LearningRateSchedule):
        def __init__(self, learning_rate, warmup_steps):  # type: ignore[no-untyped-def]
            super(WarmUpLR, self).__init__()  # noqa: UP008  as printed
            ## check the input
            if not isinstance(learning_rate, float):
                raise TypeError("learning_rate must be float.")
            validator.check_non_negative_float(learning_rate, "learning_rate", self.cls_name)
            validator.check_positive_int(warmup_steps, "warmup_steps", self.cls_name)
            ## define the operators
            self.warmup_steps = warmup_steps
            self.learning_rate = learning_rate
            self.min = ops.Minimum()
            self.cast = ops.Cast()

        def construct(self, global_step):  # type: ignore[no-untyped-def]
            ## calculate the lr
            warmup_percent = self.cast(self.min(global_step, self.warmup_steps), mstype.float32) / self.warmup_steps
            return self.learning_rate * warmup_percent

    kit = KITS["mindspore"]
    by_cell, by_hand = kit.linear(), kit.linear()
    cell = WarmUpLR(0.1, 4).mindspore()
    Model(by_cell, loss_fn=kit.mse(), optimizer=nn.SGD(by_cell.trainable_params(), cell)).train(1, regression(5))
    optimizer = kit.sgd(by_hand)
    Model(by_hand, loss_fn=kit.mse(), optimizer=optimizer).train(
        1, regression(5), callbacks=LearningRateScheduler(lambda rate, step: 0.1 * min(step, 4) / 4)
    )
    # The first step of the second run is at 0.1 already; give it the schedule's 0 by training it from there.
    again = kit.linear()
    optimizer = kit.sgd(again, 0.0)
    Model(again, loss_fn=kit.mse(), optimizer=optimizer).train(
        1, regression(5), callbacks=LearningRateScheduler(lambda rate, step: 0.1 * min(step, 4) / 4)
    )
    assert kit.weight(by_cell) == pytest.approx(kit.weight(again), abs=1e-6)
    assert kit.weight(by_cell) != pytest.approx(kit.weight(by_hand), abs=1e-6)
