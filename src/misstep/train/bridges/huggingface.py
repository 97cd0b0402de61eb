"""misstep inside a Hugging Face Trainer.

The Trainer tells its callbacks neither batch nor loss of a step, so the bridge listens to the model itself: the loss
is what the model returns. A Trainer that computes the loss elsewhere tells it when it logs, every `logging_steps`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from misstep.errors import need
from misstep.train.bridges.relay import Relay, loss_in
from misstep.train.callbacks.base import Callback

if TYPE_CHECKING:
    from transformers import TrainerCallback
else:
    TrainerCallback = need("transformers", "for HuggingFaceBridge").TrainerCallback


class HuggingFaceBridge(TrainerCallback):
    """Watches the training of a Trainer and runs callbacks of misstep.train in it.

    >>> Trainer(model, args, train_dataset=data, callbacks=[HuggingFaceBridge([LossMonitor()])]).train()

    A step is one update of the weights, however many batches are accumulated for it; its loss is that of the last.
    `request_stop()` becomes `control.should_training_stop`.
    """

    def __init__(
        self, callbacks: Callback | list[Callback] | None = None, *, watch: bool = True, **settings: Any
    ) -> None:
        self.relay = Relay(callbacks, watch=watch, settings=settings)
        self._loss: Any = None
        self._batch: Any = None
        self._hook: Any = None
        self._results: dict[str, float] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        model = known["model"]
        self._hook = model.register_forward_hook(self._model_ran, with_kwargs=True)
        self.relay.begin(
            network=model,
            optimizer=known.get("optimizer"),
            epoch_num=int(state.num_train_epochs),
            batch_num=int(state.max_steps // max(1, state.num_train_epochs)),
            train_dataset=known.get("train_dataloader"),
            device_number=args.world_size,
        )

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        self._results = {}
        self.relay.epoch_begin(int(state.epoch or 0) + 1)

    def on_step_begin(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        if "optimizer" in known:
            self.relay.params.optimizer = known["optimizer"]
        self.relay.step_begin(self._batch)

    def on_step_end(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        self.relay.params.train_dataset_element = self._batch
        self.relay.step_end(self._loss)
        self._stop(control)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **known: Any) -> None:
        if self._loss is None and logs and "loss" in logs:
            self._loss = logs["loss"]

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **known: Any) -> None:
        self._results = {name: value for name, value in (metrics or {}).items() if isinstance(value, int | float)}
        self.relay.params.update(metrics=self._results, eval_results=self._results)
        self.relay.tell("eval", "end")

    def on_epoch_end(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        self.relay.epoch_end(self._results)
        self._stop(control)

    def on_train_end(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
        self.relay.end()

    def _model_ran(self, model: Any, args: Any, inputs: dict[str, Any], outputs: Any) -> None:
        if model.training:
            self._batch = inputs or args
            loss = loss_in(outputs)
            self._loss = loss if getattr(loss, "ndim", None) == 0 else None

    def _stop(self, control: Any) -> None:
        if self.relay.stop_requested:
            control.should_training_stop = True
