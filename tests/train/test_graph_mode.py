"""MindSpore's graph mode, where a changed weight or learning rate must reach code that is already compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from misstep.train import (
    BackupAndRestore,
    LambdaCallback,
    LearningRateScheduler,
    Model,
    RunContext,
    WarmUpLR,
    load_param_into_net,
)

from .conftest import KITS, WEIGHT, losses_by_hand, regression

pytestmark = [pytest.mark.mindspore, pytest.mark.usefixtures("graph_mode")]

KIT = KITS["mindspore"]
DATA = regression(3)
CLOSE = 1e-5  # float32


def trainer(**options: Any) -> Model:
    network = KIT.linear()
    return Model(network, loss_fn=KIT.mse(), optimizer=KIT.momentum(network), **options)


def test_fit_evaluates_compiled_networks() -> None:
    model = trainer(metrics={"mse", "loss"})
    results: list[dict[str, float]] = []
    model.fit(
        2, DATA, DATA, callbacks=LambdaCallback(on_eval_end=lambda run: results.append(run.original_args().metrics))
    )
    assert len(results) == 2
    assert results[1] == pytest.approx(model.eval(DATA), rel=CLOSE)
    assert results[1]["mse"] == pytest.approx(results[1]["loss"], rel=CLOSE)


def test_a_compiled_optimizer_follows_a_changed_learning_rate() -> None:
    model = trainer()
    weights: list[Any] = [WEIGHT]
    watch = LambdaCallback(on_train_step_end=lambda _: weights.append(KIT.weight(model.network)))
    model.train(1, DATA, callbacks=[LearningRateScheduler(lambda rate, step: 0.0), watch])
    assert not np.array_equal(weights[0], weights[1])
    assert np.array_equal(weights[1], weights[2])


def test_a_compiled_optimizer_takes_a_schedule_cell() -> None:
    from mindspore import nn

    network = KIT.linear()
    optimizer = nn.SGD(network.trainable_params(), WarmUpLR(0.1, 2).mindspore())
    weights: list[Any] = [WEIGHT]
    watch = LambdaCallback(on_train_step_end=lambda _: weights.append(KIT.weight(network)))
    Model(network, loss_fn=KIT.mse(), optimizer=optimizer).train(1, DATA, callbacks=watch)
    assert np.array_equal(weights[0], weights[1]), "the first step has a rate of 0"
    assert not np.array_equal(weights[1], weights[2])


def test_restored_weights_are_the_ones_that_go_on_training() -> None:
    model = trainer()
    losses: list[float] = []

    def restart(run: RunContext) -> None:
        params = run.original_args()
        losses.append(float(params.net_outputs))
        if params.cur_step_num == 1:  # back to the start, momentum included
            load_param_into_net(model.network, {"weight": WEIGHT, "bias": np.array([0.1], np.float32)})
            zeros = {
                p.name: np.zeros(p.shape) for p in params.optimizer.get_parameters() if p.name.startswith("moment")
            }
            zeros.pop("momentum", None)
            load_param_into_net(params.optimizer, zeros)

    model.train(1, [DATA[0], *DATA], callbacks=LambdaCallback(on_train_step_end=restart))
    assert losses[0] == losses[1]
    assert losses[1:3] == pytest.approx(losses_by_hand(DATA)[:2], rel=CLOSE)


def test_a_training_cut_short_takes_up_where_it_was(tmp_path: Path) -> None:
    def cut(run: RunContext) -> None:
        if run.original_args().cur_step_num == 4:
            raise RuntimeError("the machine went away")

    whole = trainer()
    whole.train(2, DATA)
    with pytest.raises(RuntimeError, match="went away"):
        trainer().train(2, DATA, callbacks=[BackupAndRestore(tmp_path), LambdaCallback(on_train_step_end=cut)])
    again = trainer()
    again.train(2, DATA, callbacks=BackupAndRestore(tmp_path), initial_epoch=1)
    assert np.array_equal(KIT.weight(again.network), KIT.weight(whole.network))
