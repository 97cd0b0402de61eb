"""Callbacks that watch: the loss, the clock, the history of an epoch, or anything a function can look at."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from misstep.errors import TrainError
from misstep.train.callbacks.base import Callback, RunContext
from misstep.train.values import loss_value, to_numpy


class LossMonitor(Callback):
    """Prints the loss every `per_print_times` steps (0 never), and ends training with an error when it is NaN or Inf.

    >>> model.train(10, dataset, callbacks=LossMonitor(100))
    epoch: 1 step: 100, loss is 0.6931472
    """

    def __init__(self, per_print_times: int = 1) -> None:
        if isinstance(per_print_times, bool) or not isinstance(per_print_times, int) or per_print_times < 0:
            raise ValueError(f"per_print_times must be a whole number of steps, or 0, got {per_print_times!r}")
        self._every = per_print_times
        self._last_printed = 0
        self._epoch = 0
        self._steps_before = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        self._last_printed = self._epoch = self._steps_before = 0

    def step_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        loss = loss_value(params.net_outputs)
        epoch, step = params.get("cur_epoch_num", 1), params.cur_step_num
        if epoch != self._epoch:  # counted here: not every dataset knows its length
            self._epoch, self._steps_before = epoch, step - 1
        if loss is not None and not math.isfinite(loss):
            raise ValueError(
                f"In epoch: {epoch} step: {step - self._steps_before}, loss is NAN or INF, training process cannot "
                "continue, terminating training. To see where it began:  misstep run --watch overflow <your command>"
            )
        if self._every and step - self._last_printed >= self._every:
            self._last_printed = step
            shown = _as_printed(params.net_outputs, loss)
            print(f"epoch: {epoch} step: {step - self._steps_before}, loss is {shown}", flush=True)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        if params.get("metrics"):
            print(f"Eval result: epoch {params.cur_epoch_num}, metrics: {params.metrics}", flush=True)


class TimeMonitor(Callback):
    """Prints how long each epoch and its steps took; `data_time=True` adds the wait for data."""

    def __init__(self, data_size: int | None = None, data_time: bool = False) -> None:
        self._data_size = data_size
        self._data_time = data_time
        self._started = self._waiting_since = time.perf_counter()
        self._waited = 0.0
        self._steps = 0

    def epoch_begin(self, run_context: RunContext) -> None:
        self._started = self._waiting_since = time.perf_counter()
        self._waited = 0.0
        self._steps = 0

    def step_begin(self, run_context: RunContext) -> None:
        self._waited += time.perf_counter() - self._waiting_since

    def step_end(self, run_context: RunContext) -> None:
        self._steps += 1
        self._waiting_since = time.perf_counter()

    def epoch_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        milliseconds = (time.perf_counter() - self._started) * 1000
        steps = self._steps or self._data_size or params.get("batch_num") or 1
        mode = str(params.get("mode", "")).title()
        data = f" (data time: {self._waited * 1000 / steps:5.3f} ms)" if self._data_time else ""
        print(
            f"{mode} epoch time: {milliseconds:5.3f} ms, per step time: {milliseconds / steps:5.3f} ms{data}",
            flush=True,
        )


class History(Callback):
    """Keeps the last loss of every epoch, and its metrics when there are any, in `history`."""

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: dict[str, list[int]] = {"epoch": []}

    def on_train_begin(self, run_context: RunContext) -> None:
        self.history = {}
        self.epoch = {"epoch": []}

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        self.epoch["epoch"].append(params.get("cur_epoch_num", 1))
        loss = loss_value(params.net_outputs)
        values = {"net_output": params.net_outputs if loss is None else loss, **(params.get("metrics") or {})}
        for name, value in values.items():
            self.history.setdefault(name, []).append(value)


class LambdaCallback(Callback):
    """A callback from functions, one for each moment that matters.

    >>> LambdaCallback(on_train_step_end=lambda run: print(run.original_args().cur_step_num))
    """

    def __init__(
        self,
        on_train_begin: Callable[[RunContext], Any] | None = None,
        on_train_epoch_begin: Callable[[RunContext], Any] | None = None,
        on_train_epoch_end: Callable[[RunContext], Any] | None = None,
        on_train_step_begin: Callable[[RunContext], Any] | None = None,
        on_train_step_end: Callable[[RunContext], Any] | None = None,
        on_train_end: Callable[[RunContext], Any] | None = None,
        on_eval_begin: Callable[[RunContext], Any] | None = None,
        on_eval_epoch_begin: Callable[[RunContext], Any] | None = None,
        on_eval_epoch_end: Callable[[RunContext], Any] | None = None,
        on_eval_step_begin: Callable[[RunContext], Any] | None = None,
        on_eval_step_end: Callable[[RunContext], Any] | None = None,
        on_eval_end: Callable[[RunContext], Any] | None = None,
    ) -> None:
        functions = {name: value for name, value in locals().items() if name.startswith("on_") and value is not None}
        for name, function in functions.items():
            if not callable(function):
                raise TrainError(f"{name} must be a function of the run context, got {type(function).__name__}")
            setattr(self, name, function)


class StopAtTime(Callback):
    """Ends training after `run_time` minutes, at the end of the step that is running then."""

    def __init__(self, run_time: float) -> None:
        self.run_time = run_time * 60

    def on_train_begin(self, run_context: RunContext) -> None:
        run_context.original_args().init_time = time.time()

    def on_train_step_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        if time.time() - params.init_time > self.run_time:
            shown = _as_printed(params.net_outputs, loss_value(params.net_outputs))
            print("epoch: ", params.cur_epoch_num, " step: ", params.cur_step_num, " loss: ", shown, flush=True)
            run_context.request_stop()


def _as_printed(net_outputs: Any, loss: float | None) -> str:
    """The loss with the digits its own precision has: 0.6931472 in float32 on either framework."""
    first = net_outputs[0] if isinstance(net_outputs, tuple | list) and net_outputs else net_outputs
    if loss is None:
        return str(first)
    dtype = to_numpy(first).dtype
    return str(dtype.type(loss)) if dtype.kind == "f" else str(loss)
