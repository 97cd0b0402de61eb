"""A progress bar: one line an epoch, with the loss."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from misstep.errors import need
from misstep.train.callbacks.base import Callback, RunContext
from misstep.train.values import loss_value


class ProgressBar(Callback):
    """Shows how far the epoch is and the loss now; `model.train(..., progress=True)` adds one."""

    def __init__(self, *, console: Any = None) -> None:
        self._console = console
        self._bar: Any = None
        self._task: Any = None

    def on_train_begin(self, run_context: RunContext) -> None:
        progress = need("rich.progress", "for the progress bar")
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.fields[loss]}"),
            console=self._console,
        )
        self._bar.start()

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        self._task = self._bar.add_task(f"epoch {params.cur_epoch_num}", total=params.batch_num or None, loss="")

    def on_train_step_end(self, run_context: RunContext) -> None:
        # rich redraws ten times a second; reading the loss only then keeps a device from waiting every step.
        loss: float | None = None
        if self._bar.tasks[-1].completed % 10 == 0:
            loss = loss_value(run_context.original_args().net_outputs)
        fields = {} if loss is None else {"loss": f"loss {loss:.4g}"}
        self._bar.update(self._task, advance=1, **fields)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._bar is not None:
            self._bar.stop()
        return None
