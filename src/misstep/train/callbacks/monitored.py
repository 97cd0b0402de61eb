"""Callbacks that act on a number: stop when it stalls, lower the learning rate, keep the best weights.

The number is `loss` (of the last training step), `eval_loss`, or a metric that `Model.fit` measured.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from misstep.errors import TrainError, nearest
from misstep.train.callbacks.base import Callback, CallbackParams, RunContext
from misstep.train.checkpoint import save_checkpoint
from misstep.train.steps import framework_for
from misstep.train.values import loss_value, to_numpy

log = logging.getLogger("misstep.train")
Mode: TypeAlias = Literal["auto", "min", "max"]

SMALLER_IS_BETTER = frozenset(
    {
        "eval_loss",
        "hausdorff_distance",
        "loss",
        "mae",
        "mean_surface_distance",
        "mse",
        "perplexity",
        "root_mean_square_distance",
    }
)


class Best:
    """The best value of a number so far."""

    def __init__(self, monitor: str, mode: Mode, min_delta: float) -> None:
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"mode must be 'auto', 'min' or 'max', got {mode!r}")
        self.smaller = mode == "min" or (mode == "auto" and monitor in SMALLER_IS_BETTER)
        self.min_delta = abs(min_delta)
        self.value = math.inf if self.smaller else -math.inf

    def improves(self, value: float, on: float | None = None) -> bool:
        """Whether a value is better, by more than `min_delta`, than the best one or another."""
        other = self.value if on is None else on
        return value < other - self.min_delta if self.smaller else value > other + self.min_delta


class EarlyStopping(Callback):
    """Ends training when `monitor` has not improved for `patience` epochs.

    With a `baseline`, an epoch counts as progress only if it also beats that. `restore_best_weights` puts the weights
    of the best epoch back.
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: bool = False,
        mode: Mode = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        self.monitor = monitor
        self.patience = _patience(patience)
        self.verbose = verbose
        self.baseline = baseline
        self.restore_best_weights = restore_best_weights
        self._make_best: Callable[[], Best] = lambda: Best(monitor, mode, min_delta)
        self._best = self._make_best()
        self._best_weights: Mapping[str, Any] | None = None
        self.wait = 0
        self.stopped_epoch = 0

    @property
    def best(self) -> float:
        """The best value so far."""
        return self._best.value

    def on_train_begin(self, run_context: RunContext) -> None:
        self.wait = self.stopped_epoch = 0
        self._best = self._make_best()
        self._best_weights = None

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        value = monitored(self, self.monitor, params)
        if value is None:
            return
        self.wait += 1
        if self._best.improves(value):
            self._best.value = value
            if self.restore_best_weights:
                self._best_weights = framework_for(params.train_network).snapshot(params.train_network)
            if self.baseline is None or self._best.improves(value, on=self.baseline):
                self.wait = 0
        if self.wait and self.wait >= self.patience:
            self.stopped_epoch = params.cur_epoch_num
            run_context.request_stop()
            if self._best_weights is not None:
                if self.verbose:
                    print("Restoring model weights from the end of the best epoch.", flush=True)
                framework_for(params.train_network).load_weights(params.train_network, self._best_weights)

    def on_train_end(self, run_context: RunContext) -> None:
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping", flush=True)


class ReduceLROnPlateau(Callback):
    """Multiplies the learning rate by `factor` when `monitor` has not improved for `patience` epochs.

    After a reduction, `cooldown` epochs pass before it counts again; the rate never falls below `min_lr`.
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: bool = False,
        mode: Mode = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
    ) -> None:
        if not 0 < factor < 1:
            raise ValueError(f"factor must lie between 0 and 1, got {factor}")
        self.monitor = monitor
        self.factor = factor
        self.patience = _patience(patience)
        self.verbose = verbose
        self.cooldown = cooldown
        self.min_lr = min_lr
        self._make_best: Callable[[], Best] = lambda: Best(monitor, mode, min_delta)
        self._best = self._make_best()
        self.cooldown_counter = 0
        self.wait = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        self.cooldown_counter = self.wait = 0
        self._best = self._make_best()

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        value = monitored(self, self.monitor, params)
        if value is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self._best.improves(value):
            self._best.value = value
            self.wait = 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce(params)
                self.cooldown_counter = self.cooldown
                self.wait = 0

    def _reduce(self, params: CallbackParams) -> None:
        framework = framework_for(params.network)
        rate = framework.learning_rate(params.optimizer)
        if rate <= self.min_lr:
            return
        lower = max(rate * self.factor, self.min_lr)
        framework.set_learning_rate(params.optimizer, lower)
        if self.verbose:
            print(
                f"Epoch {params.cur_epoch_num:05d}: ReduceLROnPlateau reducing learning rate to {lower:g}.", flush=True
            )


class LearningRateScheduler(Callback):
    """Sets the learning rate of the next step: by a function of (rate, steps done), a schedule or a torch scheduler.

    >>> LearningRateScheduler(lambda rate, step: rate * 0.1 if step == 1000 else rate)
    >>> LearningRateScheduler(CosineDecayLR(0.0, 0.1, decay_steps=5000))
    """

    def __init__(self, learning_rate_function: Any) -> None:
        from misstep.train.schedules import LearningRateSchedule

        if not callable(learning_rate_function) and not hasattr(learning_rate_function, "step"):
            raise TrainError(
                "LearningRateScheduler takes a function of (learning rate, step), a schedule or a torch scheduler, "
                f"got {type(learning_rate_function).__name__}"
            )
        self.learning_rate_function = learning_rate_function
        self._schedule = isinstance(learning_rate_function, LearningRateSchedule)
        self._steps_itself = hasattr(learning_rate_function, "get_last_lr")

    def on_train_begin(self, run_context: RunContext) -> None:
        if self._schedule:
            self._set(run_context.original_args(), self.learning_rate_function(0))

    def on_train_step_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        if self._steps_itself:
            self.learning_rate_function.step()
        elif self._schedule:
            self._set(params, self.learning_rate_function(params.cur_step_num))
        else:
            rate = framework_for(params.network).learning_rate(params.optimizer)
            self._set(params, self.learning_rate_function(rate, params.cur_step_num), before=rate)

    @staticmethod
    def _set(params: CallbackParams, rate: float, before: float | None = None) -> None:
        if before is None or not math.isclose(rate, before, rel_tol=1e-10):
            framework_for(params.network).set_learning_rate(params.optimizer, float(rate))


class SaveBest(Callback):
    """Evaluates during training and keeps the checkpoint with the best `metric`.

    >>> model.train(10, dataset, callbacks=SaveBest(model, test_dataset))

    `every` is "epoch", or a number of steps. The file is `{prefix}.ckpt` (`.pt` for torch) in `directory`.
    """

    def __init__(
        self,
        eval_model: Any,
        ds_eval: Any,
        metric: str = "accuracy",
        *,
        mode: Mode = "auto",
        every: Literal["epoch"] | int = "epoch",
        directory: str | Path = ".",
        prefix: str = "best",
        verbose: bool = True,
    ) -> None:
        self.model = eval_model
        self.ds_eval = ds_eval
        self.metric = metric
        self.every = every
        self.directory = Path(directory)
        self.prefix = prefix
        self.verbose = verbose
        self._best = Best(metric, mode, 0.0)
        self.path: Path | None = None

    @property
    def best(self) -> float:
        """The best value so far."""
        return self._best.value

    def on_train_step_end(self, run_context: RunContext) -> None:
        if self.every != "epoch" and run_context.original_args().cur_step_num % self.every == 0:
            self._evaluate(run_context.original_args())

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        if self.every == "epoch":
            self._evaluate(run_context.original_args())

    def _evaluate(self, params: CallbackParams) -> None:
        results = self.model.eval(self.ds_eval)
        if self.metric not in results:
            raise TrainError(f"SaveBest watches {self.metric!r}, which is not measured{nearest(self.metric, results)}")
        value = _scalar(self.metric, results[self.metric])
        if not self._best.improves(value):
            return
        self._best.value = value
        self.path = self.directory / f"{self.prefix}{framework_for(params.network).suffix}"
        save_checkpoint(params.train_network, self.path)
        params.latest_ckpt_file = str(self.path)
        if self.verbose:
            print(f"Save the best checkpoint, the {self.metric} is {value}", flush=True)


def monitored(callback: Callback, name: str, params: CallbackParams) -> float | None:
    """The number a callback watches; None, with a warning, when nobody measured it."""
    if name == "loss":
        value: Any = loss_value(params.net_outputs)
    else:
        value = {**(params.get("metrics") or {}), **(params.get("eval_results") or {})}.get(name)
    if value is None:
        known = sorted({"loss", *(params.get("eval_results") or {})})
        log.warning(
            "%s watches %r, which is not there after epoch %s (there is: %s); metrics are measured by Model.fit",
            type(callback).__name__, name, params.cur_epoch_num, ", ".join(known),
        )  # fmt: skip
        return None
    return _scalar(name, value)


def _scalar(name: str, value: Any) -> float:
    array = np.asarray(to_numpy(value), dtype=np.float64)
    if array.size != 1:
        raise TrainError(f"{name!r} is {array.size} numbers, one a class; watch a metric that is a single number")
    return float(array.reshape(-1)[0])


def _patience(patience: int) -> int:
    if isinstance(patience, bool) or not isinstance(patience, int) or patience < 0:
        raise ValueError(f"patience must be a whole number of epochs, got {patience!r}")
    return patience
