"""The samples of the MindSpore guide "自定义调试信息" (custom debugging information), with misstep.train for mindspore.

Callbacks and metrics are here; Print, the recorder's configuration and the logs are tested beside their code.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import misstep.train as nn
from misstep.train import Callback, LossMonitor, Model, ModelCheckpoint, SummaryCollector, save_checkpoint

from .conftest import Kit, regression

CENTRES = np.array([[2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0]], np.float32)


def flowers(batches: int) -> list[tuple[Any, Any]]:
    """Three kinds of points, easily told apart."""
    rng = np.random.default_rng(3)
    labels = [rng.integers(0, 3, 20).astype(np.int32) for _ in range(batches)]
    return [(CENTRES[label] + rng.normal(0, 0.3, (20, 4)).astype(np.float32), label) for label in labels]


def classifier(kit: Kit) -> Any:
    return kit.linear(np.zeros((3, 4), np.float32), np.zeros(3, np.float32))


class MindSporeLabels:
    """MindSpore's cross entropy takes int32, torch's int64: the data set gives each what it wants."""

    def __init__(self, kit: Kit, batches: int) -> None:
        kind = np.int64 if kit.name == "torch" else np.int32
        self.data = [(kit.tensor(x), kit.tensor(y.astype(kind))) for x, y in flowers(batches)]


def test_callbacks_are_passed_as_a_list(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    network = kit.linear()
    model = Model(network, loss_fn=kit.mse(), optimizer=kit.sgd(network))
    epoch, dataset = 2, regression(2)

    ckpt_cb = ModelCheckpoint()
    loss_cb = LossMonitor()
    summary_cb = SummaryCollector(summary_dir="./summary_dir")
    model.train(epoch, dataset, callbacks=[ckpt_cb, loss_cb, summary_cb])

    assert re.findall(r"epoch: \d step: \d, loss is", capsys.readouterr().out) == [
        "epoch: 1 step: 1, loss is",
        "epoch: 1 step: 2, loss is",
        "epoch: 2 step: 1, loss is",
        "epoch: 2 step: 2, loss is",
    ]
    written = sorted(path.name for path in tmp_path.iterdir() if path.suffix == kit.suffix)
    assert written == [f"CKP-{epoch}_{step}{kit.suffix}" for epoch in (1, 2) for step in (1, 2)]
    assert (tmp_path / "summary_dir" / "scalars.jsonl").exists()


def test_the_base_class_has_the_six_methods_of_the_guide() -> None:
    for name in ("begin", "epoch_begin", "epoch_end", "step_begin", "step_end", "end"):
        assert callable(getattr(Callback(), name))


class StopAtTime(Callback):
    def __init__(self, run_time: float) -> None:
        super(StopAtTime, self).__init__()  # noqa: UP008  as printed
        self.run_time = run_time * 60

    def begin(self, run_context: Any) -> None:
        cb_params = run_context.original_args()
        cb_params.init_time = time.time()

    def step_end(self, run_context: Any) -> None:
        cb_params = run_context.original_args()
        epoch_num = cb_params.cur_epoch_num
        step_num = cb_params.cur_step_num
        loss = cb_params.net_outputs
        cur_time = time.time()
        if (cur_time - cb_params.init_time) > self.run_time:
            print("epoch: ", epoch_num, " step: ", step_num, " loss: ", loss)
            run_context.request_stop()


def test_training_stops_at_the_given_time(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    network = kit.linear()
    model = Model(network, loss_fn=kit.mse(), optimizer=kit.sgd(network))
    model.train(1000, regression(2), callbacks=[StopAtTime(run_time=0)])
    printed = capsys.readouterr().out
    number = r"\d\.\d+(e-\d+)?"
    assert re.fullmatch(rf"epoch:  1  step:  1  loss:  (tensor\()?{number}\)?\n", printed)


class SaveCallback(Callback):
    def __init__(self, eval_model: Any, ds_eval: Any) -> None:
        super(SaveCallback, self).__init__()  # noqa: UP008  as printed
        self.model = eval_model
        self.ds_eval = ds_eval
        self.acc = 0

    def step_end(self, run_context: Any) -> None:
        cb_params = run_context.original_args()
        result = self.model.eval(self.ds_eval)
        if result["accuracy"] > self.acc:
            self.acc = result["accuracy"]
            file_name = str(self.acc) + ".ckpt"
            save_checkpoint(save_obj=cb_params.train_network, ckpt_file_name=file_name)
            print("Save the maximum accuracy checkpoint,the accuracy is", self.acc)


def test_the_checkpoint_with_the_highest_accuracy_is_saved(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    net = classifier(kit)
    data = MindSporeLabels(kit, 4).data
    model = Model(net, loss_fn=kit.cross_entropy(), optimizer=kit.sgd(net, 0.5), metrics={"accuracy": nn.Accuracy()})
    model.train(2, data, callbacks=SaveCallback(model, data))

    lines = capsys.readouterr().out.splitlines()
    accuracies = [line.removeprefix("Save the maximum accuracy checkpoint,the accuracy is ") for line in lines]
    assert accuracies == sorted(accuracies, key=float)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{value}.ckpt" for value in accuracies)
    best = classifier(kit)
    nn.load_checkpoint(f"{accuracies[-1]}.ckpt", net=best)
    again = Model(best, loss_fn=kit.cross_entropy(), metrics={"accuracy"}).eval(data)
    assert again == {"accuracy": float(accuracies[-1])}


def test_metrics_are_passed_as_a_dictionary_and_come_back_as_one(kit: Kit) -> None:
    net = classifier(kit)
    net_loss, net_opt = kit.cross_entropy(), kit.sgd(net, 0.5)
    ds_eval = MindSporeLabels(kit, 4).data

    metrics = {
        "accuracy": nn.Accuracy(),
        "loss": nn.Loss(),
        "precision": nn.Precision(),
        "recall": nn.Recall(),
        "f1_score": nn.F1(),
    }
    model = Model(network=net, loss_fn=net_loss, optimizer=net_opt, metrics=metrics)
    before = model.eval(ds_eval)
    model.train(5, ds_eval)
    result = model.eval(ds_eval)

    assert list(result) == ["accuracy", "loss", "precision", "recall", "f1_score"]
    assert before["loss"] == pytest.approx(np.log(3), rel=1e-6)  # three classes, nothing learned yet
    assert result["accuracy"] > 0.95
    assert result["precision"].shape == result["recall"].shape == result["f1_score"].shape == (3,)


def test_accuracy_of_the_guide_is_two_thirds(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    from misstep.train import Accuracy

    x = kit.tensor(np.array([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]))
    y = kit.tensor(np.array([1, 0, 1]))
    metric = Accuracy()
    metric.clear()
    metric.update(x, y)
    accuracy = metric.eval()
    print("Accuracy is ", round(accuracy, 4))

    assert capsys.readouterr().out.split() == ["Accuracy", "is", "0.6667"]
