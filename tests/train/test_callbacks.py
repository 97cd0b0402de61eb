"""Every built-in callback, on both frameworks: the same story, the same numbers, the same files."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from misstep.errors import TrainError
from misstep.train import (
    BackupAndRestore,
    Callback,
    CheckpointConfig,
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    Model,
    ModelCheckpoint,
    OnRequestExit,
    ProgressBar,
    ReduceLROnPlateau,
    RunContext,
    SaveBest,
    StopAtTime,
    SummaryCollector,
    TimeMonitor,
    WarmUpLR,
    load_checkpoint,
    read_scalars,
)

from .conftest import WEIGHT, Kit, losses_by_hand, regression

DATA = regression(3)
CLOSE = 1e-5  # float32


def trainer(kit: Kit, rate: float = 0.1, **options: Any) -> Model:
    network = kit.linear()
    return Model(network, loss_fn=kit.mse(), optimizer=kit.sgd(network, rate), **options)


class Fail(Callback):
    def __init__(self, step: int) -> None:
        self.step = step

    def step_end(self, run_context: RunContext) -> None:
        if run_context.original_args().cur_step_num == self.step:
            raise RuntimeError("the machine went away")


# --- what is printed ---------------------------------------------------------------------------------------------


def test_the_loss_is_printed_with_epoch_and_step_in_the_epoch(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    trainer(kit).train(2, DATA, callbacks=LossMonitor())
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" is ")[0] for line in lines] == [
        f"epoch: {epoch} step: {step}, loss" for epoch in (1, 2) for step in (1, 2, 3)
    ]
    printed = [float(line.partition(" is ")[2]) for line in lines]
    assert printed == pytest.approx(losses_by_hand(DATA, epochs=2), rel=CLOSE)
    assert all(len(line.partition(" is ")[2]) <= 12 for line in lines), "float32 has no more digits than these"


def test_the_loss_is_printed_every_so_many_steps_or_never(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    trainer(kit).train(2, DATA, callbacks=LossMonitor(4))
    assert re.findall(r"epoch: \d step: \d", capsys.readouterr().out) == ["epoch: 2 step: 1"]
    trainer(kit).train(1, DATA, callbacks=LossMonitor(0))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_loss_that_is_no_number_ends_training_with_an_error(kit: Kit, bad: float) -> None:
    x, y = DATA[0]
    with pytest.raises(ValueError, match=r"In epoch: 1 step: 2, loss is NAN or INF, training process cannot continue"):
        trainer(kit).train(1, [(x, y), (x, np.full_like(y, bad))], callbacks=LossMonitor(0))


def test_a_steps_loss_may_come_with_other_outputs(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    context = RunContext(
        {"cur_epoch_num": 1, "cur_step_num": 1, "net_outputs": (kit.tensor(np.float32(0.5)), True, 1.0)}
    )
    LossMonitor().on_train_step_end(context)
    assert capsys.readouterr().out == "epoch: 1 step: 1, loss is 0.5\n"


def test_fit_prints_its_evaluation(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    trainer(kit, metrics={"mse"}).fit(1, DATA, DATA, callbacks=LossMonitor(0))
    assert re.fullmatch(r"Eval result: epoch 1, metrics: \{'mse': [\d.]+\}\n", capsys.readouterr().out)


def test_the_time_of_epochs_and_steps_is_printed(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    trainer(kit).train(1, DATA, callbacks=TimeMonitor(data_time=True))
    number = r" *[\d.]+ ms"
    line = rf"Train epoch time: {number}, per step time: {number} \(data time: {number}\)\n"
    assert re.fullmatch(line, capsys.readouterr().out)


def test_the_progress_bar_counts_the_batches(kit: Kit) -> None:
    from rich.console import Console

    screen = io.StringIO()
    bar = ProgressBar(console=Console(file=screen, force_terminal=True, width=100))
    trainer(kit).train(2, DATA, callbacks=bar)
    shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", screen.getvalue())
    assert "epoch 2" in shown
    assert "3/3" in shown
    assert "loss" in shown


# --- what is kept ------------------------------------------------------------------------------------------------


def test_history_keeps_the_last_loss_and_the_metrics_of_every_epoch(kit: Kit) -> None:
    history = History()
    trainer(kit, metrics={"mse"}).fit(2, DATA, DATA, callbacks=history)
    by_hand = losses_by_hand(DATA, epochs=2)
    assert history.epoch == {"epoch": [1, 2]}
    assert history.history["net_output"] == pytest.approx([by_hand[2], by_hand[5]], rel=CLOSE)
    assert len(history.history["mse"]) == 2


def test_lambda_callback_listens_to_all_twelve_moments(kit: Kit) -> None:
    heard: list[str] = []
    moments = ["begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end"]
    names = [f"on_{phase}_{moment}" for phase in ("train", "eval") for moment in moments]
    functions: dict[str, Any] = {name: lambda _, name=name: heard.append(name) for name in names}
    trainer(kit, metrics={"mse"}).fit(1, DATA[:1], DATA[:1], callbacks=LambdaCallback(**functions))
    train, evaluate = names[:6], names[6:]
    assert heard == [*train[:4], *evaluate, *train[4:]]


def test_summaries_can_be_read_back(kit: Kit, tmp_path: Path) -> None:
    collector = SummaryCollector(tmp_path, collect_freq=2, custom_lineage_data={"who": "me"})
    trainer(kit, metrics={"mse"}).fit(2, DATA, DATA, callbacks=collector)
    scalars = read_scalars(tmp_path)
    by_hand = losses_by_hand(DATA, epochs=2)
    assert [step for step, _ in scalars["loss"]] == [1, 2, 4, 6]
    assert [value for _, value in scalars["loss"]] == pytest.approx([by_hand[i - 1] for i in (1, 2, 4, 6)], rel=CLOSE)
    assert [value for _, value in scalars["learning_rate"]] == pytest.approx([0.1] * 4)
    assert [step for step, _ in scalars["eval/mse"]] == [3, 6]
    lines = [json.loads(line) for line in (tmp_path / "histograms.jsonl").read_text().splitlines()]
    assert {(line["step"], line["tag"]) for line in lines} == {(s, n) for s in (1, 2, 4, 6) for n in ("weight", "bias")}
    assert all(sum(line["counts"]) == (4 if line["tag"] == "weight" else 1) for line in lines)
    assert json.loads((tmp_path / "lineage.json").read_text())["user_defined"] == {"who": "me"}


def test_summaries_hold_what_was_asked_for(kit: Kit, tmp_path: Path) -> None:
    collector = SummaryCollector(tmp_path, 1, {"collect_metric": False, "histogram_regular": "^bias"})
    trainer(kit).train(1, DATA, callbacks=collector)
    assert read_scalars(tmp_path) == {}
    tags = [json.loads(line)["tag"] for line in (tmp_path / "histograms.jsonl").read_text().splitlines()]
    assert tags == ["bias"] * 3
    with pytest.raises(TrainError, match="unknown name 'colect_metric'"):
        SummaryCollector(tmp_path, 1, {"colect_metric": False})


# --- what acts on a number ---------------------------------------------------------------------------------------


def losing(*losses: float) -> tuple[Any, Callback]:
    """An evaluation whose loss is as told, epoch after epoch."""
    coming = iter(losses)

    class Tell(Callback):
        def on_train_epoch_end(self, run_context: RunContext) -> None:
            run_context.original_args().eval_results = {"eval_loss": next(coming)}

    return DATA, Tell()


def test_early_stopping_stops_when_nothing_improves_for_a_while(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    data, tell = losing(3.0, 2.0, 2.5, 2.1, 1.0)
    stopping = EarlyStopping(patience=2, verbose=True)
    ends: list[int] = []
    count = LambdaCallback(on_train_epoch_end=lambda run: ends.append(run.original_args().cur_epoch_num))
    trainer(kit).train(5, data, callbacks=[tell, stopping, count])
    assert ends == [1, 2, 3, 4]
    assert (stopping.stopped_epoch, stopping.best) == (4, 2.0)
    assert capsys.readouterr().out == "Epoch 00004: early stopping\n"


def test_early_stopping_restores_the_weights_of_the_best_epoch(kit: Kit) -> None:
    data, tell = losing(1.0, 5.0, 6.0)
    model = trainer(kit)
    kept: list[Any] = []

    def keep(run: RunContext) -> None:
        if run.original_args().cur_epoch_num == 1:
            kept.append(kit.weight(model.network))

    stopping = EarlyStopping(patience=2, restore_best_weights=True)
    model.train(3, data, callbacks=[tell, LambdaCallback(on_train_epoch_end=keep), stopping])
    assert np.array_equal(kit.weight(model.network), kept[0])


def test_a_value_of_zero_is_a_value(kit: Kit) -> None:
    data, tell = losing(1.0, 0.0, 0.0)
    stopping = EarlyStopping(patience=1)
    trainer(kit).train(3, data, callbacks=[tell, stopping])
    assert (stopping.stopped_epoch, stopping.best) == (3, 0.0)


def test_a_baseline_has_to_be_beaten_too(kit: Kit) -> None:
    data, tell = losing(3.0, 2.9, 2.8)
    stopping = EarlyStopping(patience=2, baseline=1.0)
    trainer(kit).train(3, data, callbacks=[tell, stopping])
    assert stopping.stopped_epoch == 2


def test_watching_what_nobody_measures_warns_and_goes_on(kit: Kit, caplog: pytest.LogCaptureFixture) -> None:
    trainer(kit).train(2, DATA, callbacks=EarlyStopping("accuracy"))
    assert "EarlyStopping watches 'accuracy', which is not there after epoch 2 (there is: loss)" in caplog.text


def test_the_learning_rate_falls_on_a_plateau_but_not_below_its_minimum(kit: Kit) -> None:
    data, tell = losing(1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    model = trainer(kit)
    rates: list[float] = []
    watch = LambdaCallback(on_train_epoch_end=lambda _: rates.append(kit.rate(model.optimizer)))
    model.train(6, data, callbacks=[tell, ReduceLROnPlateau(factor=0.1, patience=2, min_lr=0.005), watch])
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.005, 0.005])


def test_the_plateau_rests_after_a_reduction(kit: Kit) -> None:
    data, tell = losing(1.0, 1.0, 1.0, 1.0, 1.0)
    model = trainer(kit)
    rates: list[float] = []
    watch = LambdaCallback(on_train_epoch_end=lambda _: rates.append(kit.rate(model.optimizer)))
    model.train(5, data, callbacks=[tell, ReduceLROnPlateau(factor=0.5, patience=1, cooldown=2), watch])
    assert rates == pytest.approx([0.1, 0.05, 0.05, 0.025, 0.025])


def test_a_function_sets_the_rate_of_the_next_step(kit: Kit) -> None:
    model = trainer(kit)
    rates: list[float] = []
    watch = LambdaCallback(on_train_step_begin=lambda _: rates.append(kit.rate(model.optimizer)))
    model.train(1, DATA, callbacks=[LearningRateScheduler(lambda rate, step: rate / 2 if step == 1 else rate), watch])
    assert rates == pytest.approx([0.1, 0.05, 0.05])


def test_a_schedule_sets_the_rate_of_every_step_from_the_first(kit: Kit) -> None:
    model = trainer(kit)
    rates: list[float] = []
    watch = LambdaCallback(on_train_step_begin=lambda _: rates.append(kit.rate(model.optimizer)))
    model.train(2, DATA, callbacks=[LearningRateScheduler(WarmUpLR(0.2, 4)), watch])
    assert rates == pytest.approx([0.0, 0.05, 0.1, 0.15, 0.2, 0.2])


def test_a_torch_scheduler_is_stepped_by_the_callback() -> None:
    from .conftest import KITS

    model = trainer(KITS["torch"])
    scheduler = WarmUpLR(0.2, 4).torch(model.optimizer)
    model.train(1, DATA, callbacks=LearningRateScheduler(scheduler))
    assert scheduler.get_last_lr() == pytest.approx([0.15])


def test_a_changed_rate_changes_the_training(kit: Kit) -> None:
    model = trainer(kit)
    model.train(1, DATA, callbacks=LearningRateScheduler(lambda rate, step: 0.0))
    first = trainer(kit)
    first.train(1, DATA[:1])
    assert kit.weight(model.network) == pytest.approx(kit.weight(first.network), abs=1e-7)


def test_groups_keep_the_proportion_of_their_rates() -> None:
    import torch

    from misstep.train.steps import torch as steps_torch

    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD([{"params": [layer.weight], "lr": 0.1}, {"params": [layer.bias], "lr": 0.01}])
    steps_torch.set_learning_rate(optimizer, 0.05)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.05, 0.005])


def test_save_best_evaluates_and_keeps_the_best_network(
    kit: Kit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = trainer(kit, metrics={"mse"})
    best = SaveBest(model, DATA, "mse", directory=tmp_path)
    model.train(3, DATA, callbacks=best)
    assert best.path == tmp_path / f"best{kit.suffix}"
    assert capsys.readouterr().out.count("Save the best checkpoint, the mse is ") == 3
    other = kit.linear()
    load_checkpoint(best.path, net=other)
    assert Model(other, loss_fn=kit.mse(), metrics={"mse"}).eval(DATA)["mse"] == pytest.approx(best.best, rel=CLOSE)


def test_save_best_can_look_every_few_steps(kit: Kit, tmp_path: Path) -> None:
    model = trainer(kit, metrics={"mse"})
    looks: list[int] = []
    evaluate = model.eval
    model.eval = lambda *given, **named: (looks.append(1), evaluate(*given, **named))[1]  # type: ignore[method-assign]
    model.train(2, DATA, callbacks=SaveBest(model, DATA, "mse", every=2, directory=tmp_path, verbose=False))
    assert len(looks) == 3


# --- what is written to disk -------------------------------------------------------------------------------------


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_checkpoints_are_written_every_so_many_steps_and_the_newest_are_kept(kit: Kit, tmp_path: Path) -> None:
    config = CheckpointConfig(save_checkpoint_steps=2, keep_checkpoint_max=2)
    trainer(kit).train(2, DATA, callbacks=ModelCheckpoint("net", tmp_path, config))
    assert names(tmp_path) == [f"net-2_1{kit.suffix}", f"net-2_3{kit.suffix}"]


def test_the_last_step_is_always_written(kit: Kit, tmp_path: Path) -> None:
    keeper = ModelCheckpoint("net", tmp_path, CheckpointConfig(save_checkpoint_steps=100))
    model = trainer(kit)
    model.train(1, DATA, callbacks=keeper)
    assert names(tmp_path) == [f"net-1_3{kit.suffix}"]
    assert keeper.latest_ckpt_file_name == str(tmp_path / f"net-1_3{kit.suffix}")
    assert np.array_equal(load_checkpoint(keeper.latest_ckpt_file_name)["weight"].asnumpy(), kit.weight(model.network))


def test_two_steps_have_different_weights_in_their_checkpoints(kit: Kit, tmp_path: Path) -> None:
    trainer(kit).train(1, DATA[:2], callbacks=ModelCheckpoint("net", tmp_path))
    one, two = (load_checkpoint(tmp_path / f"net-1_{step}{kit.suffix}") for step in (1, 2))
    assert not np.array_equal(one["weight"].asnumpy(), two["weight"].asnumpy())


def test_files_of_an_earlier_run_are_left_alone(kit: Kit, tmp_path: Path) -> None:
    config = CheckpointConfig(save_checkpoint_steps=3)
    for _ in range(3):
        trainer(kit).train(1, DATA, callbacks=ModelCheckpoint("net", tmp_path, config))
    assert names(tmp_path) == [f"net-1_3{kit.suffix}", f"net_1-1_3{kit.suffix}", f"net_2-1_3{kit.suffix}"]


def test_seconds_count_when_steps_do_not(kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("misstep.train.callbacks.checkpoint.time.monotonic", lambda: clock[0])
    config = CheckpointConfig(save_checkpoint_steps=None, save_checkpoint_seconds=10)
    tick = LambdaCallback(on_train_step_end=lambda _: clock.__setitem__(0, clock[0] + 6))
    trainer(kit).train(1, regression(5), callbacks=[tick, ModelCheckpoint("net", tmp_path, config)])
    assert names(tmp_path) == [f"net-1_{step}{kit.suffix}" for step in (2, 4, 5)]


def test_one_file_is_kept_for_every_few_minutes(kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("misstep.train.callbacks.checkpoint.time.monotonic", lambda: clock[0])
    config = CheckpointConfig(keep_checkpoint_max=None, keep_checkpoint_per_n_minutes=1)
    tick = LambdaCallback(on_train_step_end=lambda _: clock.__setitem__(0, clock[0] + 30))
    trainer(kit).train(1, regression(6), callbacks=[tick, ModelCheckpoint("net", tmp_path, config)])
    assert names(tmp_path) == [f"net-1_{step}{kit.suffix}" for step in (1, 3, 5, 6)]


def test_a_failed_training_leaves_a_checkpoint_when_asked(kit: Kit, tmp_path: Path) -> None:
    config = CheckpointConfig(save_checkpoint_steps=100, exception_save=True)
    with pytest.raises(RuntimeError, match="the machine went away"):
        trainer(kit).train(1, DATA, callbacks=[Fail(2), ModelCheckpoint("net", tmp_path, config)])
    assert names(tmp_path) == [f"net-1_2_breakpoint{kit.suffix}"]


def test_saving_in_the_background_saves_the_weights_of_that_step(kit: Kit, tmp_path: Path) -> None:
    config = CheckpointConfig(async_save=True)
    model = trainer(kit)
    weights: list[Any] = []
    watch = LambdaCallback(on_train_step_end=lambda _: weights.append(kit.weight(model.network)))
    model.train(1, DATA, callbacks=[ModelCheckpoint("net", tmp_path, config), watch])
    saved = [load_checkpoint(tmp_path / f"net-1_{step}{kit.suffix}")["weight"].asnumpy() for step in (1, 2, 3)]
    assert all(np.array_equal(one, other) for one, other in zip(saved, weights))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("saving")]


def test_safetensors_are_safetensors(kit: Kit, tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    model = trainer(kit)
    model.train(1, DATA[:1], callbacks=ModelCheckpoint("net", tmp_path, CheckpointConfig(format="safetensors")))
    assert np.array_equal(load_file(tmp_path / "net-1_1.safetensors")["weight"], kit.weight(model.network))


def test_more_can_be_written_beside_the_weights(kit: Kit, tmp_path: Path) -> None:
    config = CheckpointConfig(append_info=["epoch_num", "step_num", {"lr": 0.5}])
    trainer(kit).train(1, DATA[:1], callbacks=ModelCheckpoint("net", tmp_path, config))
    saved = load_checkpoint(tmp_path / f"net-1_1{kit.suffix}")
    assert [float(saved[name].asnumpy()) for name in ("epoch_num", "step_num", "lr")] == [1, 1, 0.5]


def test_a_configuration_that_saves_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing is saved"):
        CheckpointConfig(save_checkpoint_steps=0)
    with pytest.raises(ValueError, match="cannot both be empty"):
        CheckpointConfig(keep_checkpoint_max=0)


def test_a_training_cut_short_takes_up_where_it_was(kit: Kit, tmp_path: Path) -> None:
    def fresh() -> Model:
        network = kit.linear()
        return Model(network, loss_fn=kit.mse(), optimizer=kit.momentum(network))

    whole = fresh()
    whole.train(3, DATA)
    with pytest.raises(RuntimeError, match="went away"):
        fresh().train(3, DATA, callbacks=[BackupAndRestore(tmp_path), Fail(4)])
    assert names(tmp_path) == [f"backup{kit.suffix}"]
    again = fresh()
    again.train(3, DATA, callbacks=BackupAndRestore(tmp_path), initial_epoch=1)
    assert np.array_equal(kit.weight(again.network), kit.weight(whole.network)), "momentum is restored too"
    assert names(tmp_path) == []


def test_a_signal_ends_training_after_the_step_and_saves_the_network(kit: Kit, tmp_path: Path) -> None:
    steps: list[int] = []

    def kill(run: RunContext) -> None:
        steps.append(run.original_args().cur_step_num)
        if steps[-1] == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    model = trainer(kit)
    asked = OnRequestExit(directory=tmp_path, save_mindir=False)
    model.train(2, DATA, callbacks=[LambdaCallback(on_train_step_begin=kill), asked])
    assert steps == [1, 2]
    assert signal.getsignal(signal.SIGTERM) is before
    assert names(tmp_path / "rank_0") == [f"Net_train{kit.suffix}"]
    resumed = trainer(kit, rate=0.0)
    resumed.train(1, DATA, callbacks=OnRequestExit(directory=tmp_path, save_mindir=False))
    assert np.array_equal(kit.weight(resumed.network), kit.weight(model.network))
    assert not np.array_equal(kit.weight(model.network), WEIGHT)


def test_a_file_can_ask_for_the_end_and_the_network_is_exported(kit: Kit, tmp_path: Path) -> None:
    config = tmp_path / "exit.json"
    config.write_text('{"GracefulExit": 1}')
    steps: list[int] = []
    watch = LambdaCallback(on_train_step_end=lambda run: steps.append(run.original_args().cur_step_num))
    asked = OnRequestExit(directory=tmp_path, config_file=config)
    trainer(kit).train(2, DATA, callbacks=[watch, asked])
    assert steps == [1]
    program = "Net_train.pt2" if kit.name == "torch" else "Net_train.mindir"
    assert set(names(tmp_path / "rank_0")) >= {f"Net_train{kit.suffix}", program}


def test_stop_at_time_stops_after_the_step_that_runs_then(
    kit: Kit, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr("misstep.train.callbacks.monitor.time.time", lambda: clock[0])
    tick = LambdaCallback(on_train_step_end=lambda _: clock.__setitem__(0, clock[0] + 40))
    trainer(kit).train(5, DATA, callbacks=[tick, StopAtTime(1)])
    assert re.fullmatch(r"epoch:  1  step:  2  loss:  [\d.]+\n", capsys.readouterr().out)


def test_callbacks_are_left_also_when_training_fails(kit: Kit) -> None:
    left: list[str] = []

    class Resource(Callback):
        def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
            left.append(type(error).__name__)

    with pytest.raises(RuntimeError, match="went away"):
        trainer(kit).train(1, DATA, callbacks=[Resource(), Fail(1)])
    assert left == ["RuntimeError"]
