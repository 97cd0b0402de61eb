"""The bridges, in the real Lightning, Hugging Face Trainer, Keras and mindspore.train, on tiny models."""

from __future__ import annotations

import os

os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from misstep.capture.process import live_session
from misstep.store.reading.reader import Run, open_run
from misstep.store.runs import list_runs
from misstep.train import (
    Callback,
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    ModelCheckpoint,
)
from misstep.train.callbacks.base import RunContext

from .conftest import regression

EPOCHS, BATCHES = 2, 3

Fit = Callable[..., Any]
"""fit(callbacks, bad_at=step, **bridge options): train two epochs of three batches; the batch of a step may be NaN."""


class Listening(Callback):
    """Writes down what it is told, in order."""

    def __init__(self) -> None:
        self.moments: list[str] = []
        self.losses: list[float] = []
        self.attributes: set[str] = set()

    def _note(self, moment: str, run_context: RunContext) -> None:
        params = run_context.original_args()
        self.moments.append(f"{moment} {params.cur_epoch_num}.{params.cur_step_num}")

    def on_train_begin(self, run_context: RunContext) -> None:
        self._note("begin", run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        self._note("epoch_begin", run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        self._note("step_begin", run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        self._note("step_end", run_context)
        params = run_context.original_args()
        self.losses.append(float(params.net_outputs))
        self.attributes = {name for name, value in params.items() if value is not None}

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        self._note("epoch_end", run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        self._note("end", run_context)


def rows(bad_at: int | None = None) -> list[tuple[Any, Any]]:
    batches = [(x.copy(), y) for x, y in regression(BATCHES, size=4)]
    if bad_at is not None:
        batches[bad_at - 1][0][0, 0] = np.nan
    return batches


# ── one fit for each ─────────────────────────────────────────────────────────────────────────────────────────────────


def fit_lightning(callbacks: Any, folder: Path, bad_at: int | None = None, **options: Any) -> Any:
    import lightning.pytorch as pl

    from misstep.train.bridges import LightningBridge

    class Net(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch: Any, index: int) -> Any:
            x, y = batch
            loss = torch.nn.functional.mse_loss(self.layer(x), y)
            self.log("train_loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    data = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in rows(bad_at)]
    net = Net()
    trainer = pl.Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        callbacks=[LightningBridge(callbacks, dir=str(folder / "missteps"), **options)],
    )
    trainer.fit(net, torch.utils.data.DataLoader(data, batch_size=None))  # type: ignore[arg-type]
    return net


def fit_hugging_face(callbacks: Any, folder: Path, bad_at: int | None = None, **options: Any) -> Any:
    import transformers

    from misstep.train.bridges import HuggingFaceBridge

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x: Any, labels: Any) -> Any:
            y = self.layer(x)
            return {"loss": torch.nn.functional.mse_loss(y, labels), "logits": y}

    data = [{"x": x[i], "labels": y[i]} for x, y in rows(bad_at) for i in range(len(x))]
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "out"),
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=4,
        learning_rate=0.1,
        optim="sgd",
        lr_scheduler_type="constant",
        max_grad_norm=0,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
    )
    net = Net()
    bridge = HuggingFaceBridge(callbacks, dir=str(folder / "missteps"), **options)

    class InOrder(transformers.Trainer):
        def _get_train_sampler(self, *_: Any) -> Any:
            return None

    InOrder(net, arguments, train_dataset=data, callbacks=[bridge]).train()  # type: ignore[arg-type]
    return net


def fit_keras(callbacks: Any, folder: Path, bad_at: int | None = None, **options: Any) -> Any:
    import keras

    from misstep.train.bridges import KerasBridge

    keras.utils.set_random_seed(0)
    net = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    net.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse", run_eagerly=True)
    x = np.concatenate([x for x, _ in rows(bad_at)])
    y = np.concatenate([y for _, y in rows(bad_at)])
    bridge = KerasBridge(callbacks, dir=str(folder / "missteps"), **options)
    net.fit(x, y, batch_size=4, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[bridge])
    return net


def fit_mindspore(callbacks: Any, folder: Path, bad_at: int | None = None, **options: Any) -> Any:
    import mindspore as ms
    from mindspore import nn

    from misstep.train.bridges import MindSporeBridge

    net = nn.Dense(4, 1)
    x = np.concatenate([x for x, _ in rows(bad_at)])
    y = np.concatenate([y for _, y in rows(bad_at)])
    data = ms.dataset.NumpySlicesDataset((x, y), shuffle=False).batch(4)
    model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    bridge = MindSporeBridge(callbacks, dir=str(folder / "missteps"), **options)
    model.train(EPOCHS, data, callbacks=[bridge])
    return net


FITS = {
    "lightning": fit_lightning,
    "hugging face": fit_hugging_face,
    "keras": fit_keras,
    "mindspore": fit_mindspore,
}


@pytest.fixture(params=FITS)
def fit(request: pytest.FixtureRequest, tmp_path: Path) -> Fit:
    def run(callbacks: Any = None, **options: Any) -> Any:
        return FITS[request.param](callbacks, tmp_path, **options)

    run.name = request.param  # type: ignore[attr-defined]
    return run


def recorded(folder: Path) -> Run:
    (only,) = list_runs(folder / "missteps")
    return open_run(only.path)


# ── the same for all ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_callbacks_are_told_the_moments_in_models_order(fit: Fit) -> None:
    listening = Listening()
    fit(listening, watch=False)
    expected = ["begin 0.0"]
    for epoch in (1, 2):
        first = BATCHES * (epoch - 1)
        expected.append(f"epoch_begin {epoch}.{first}")
        for step in range(first + 1, first + BATCHES + 1):
            expected += [f"step_begin {epoch}.{step}", f"step_end {epoch}.{step}"]
        expected.append(f"epoch_end {epoch}.{first + BATCHES}")
    assert listening.moments == [*expected, f"end 2.{2 * BATCHES}"]
    assert {"network", "train_network", "optimizer", "epoch_num", "batch_num", "net_outputs"} <= listening.attributes


def test_the_run_has_the_losses_the_callbacks_were_told(fit: Fit, tmp_path: Path) -> None:
    listening = Listening()
    fit(listening)
    run = recorded(tmp_path)
    steps = [step for step in run.steps() if step.number > 0]
    assert [step.number for step in steps] == list(range(1, EPOCHS * BATCHES + 1))
    assert [step.loss for step in steps] == pytest.approx(listening.losses)
    assert listening.losses[-1] < listening.losses[0]
    assert run.verdict is None
    assert run.state == "finished"
    assert live_session() is None


def test_a_bad_batch_is_named_by_the_verdict(fit: Fit, tmp_path: Path) -> None:
    fit(bad_at=2)
    verdict = recorded(tmp_path).verdict
    assert verdict is not None
    assert (verdict.step, verdict.phase) == (2, "input")


def test_a_loss_that_is_nan_ends_training_through_lossmonitor(fit: Fit, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="loss is NAN or INF"):
        fit(LossMonitor(0), bad_at=2)
    run = recorded(tmp_path)
    assert run.state == "failed"
    assert run.verdict is not None
    assert live_session() is None


def test_request_stop_ends_training(fit: Fit) -> None:
    listening = Listening()
    stopping = LambdaCallback(
        on_train_step_end=lambda run: run.request_stop() if run.original_args().cur_step_num == 2 else None
    )
    fit([listening, stopping], watch=False)
    assert len(listening.losses) == 2
    assert listening.moments[-2:] == ["epoch_end 1.2", "end 1.2"]


def test_history_and_checkpoints_work_there(fit: Fit, tmp_path: Path) -> None:
    history = History()
    fit([history, ModelCheckpoint(directory=str(tmp_path / "saved"))], watch=False)
    assert history.epoch["epoch"] == [1, 2]
    assert list((tmp_path / "saved").glob("CKP-2_*"))


def test_early_stopping_looks_at_the_loss(fit: Fit) -> None:
    stopping = EarlyStopping(monitor="loss", min_delta=1e9, patience=1)
    fit(stopping, watch=False)
    assert stopping.stopped_epoch == 2
    assert np.isfinite(stopping.best)


@pytest.mark.parametrize("name", ["lightning", "hugging face", "keras"])
def test_a_learning_rate_set_by_a_callback_is_used(name: str, tmp_path: Path) -> None:
    """With a rate of zero nothing moves."""
    listening = Listening()
    FITS[name]([LearningRateScheduler(lambda rate, step: 0.0), listening], tmp_path, watch=False)
    first, second = listening.losses[:BATCHES][1:], listening.losses[BATCHES:][1:]
    assert first == pytest.approx(second)


def test_keras_gets_its_optimizer_and_model_back_as_they_were(tmp_path: Path) -> None:
    net = fit_keras(None, tmp_path)
    assert "apply" not in net.optimizer.__dict__
    assert "compute_loss" not in net.__dict__


def test_lightning_metrics_are_results_of_the_epoch(tmp_path: Path) -> None:
    seen: list[dict[str, float]] = []
    noting = LambdaCallback(on_train_epoch_end=lambda run: seen.append(run.original_args().eval_results))
    fit_lightning(noting, tmp_path, watch=False)
    assert [sorted(results) for results in seen] == [["train_loss"], ["train_loss"]]
