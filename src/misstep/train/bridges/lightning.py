"""misstep inside a Lightning Trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from misstep.errors import need
from misstep.train.bridges.relay import Relay, loss_in
from misstep.train.callbacks.base import Callback

if TYPE_CHECKING:
    from lightning.pytorch.callbacks import Callback as LightningCallback
else:
    LightningCallback = need("lightning.pytorch.callbacks", "for LightningBridge").Callback


class LightningBridge(LightningCallback):
    """Watches a Lightning training and runs callbacks of misstep.train in it.

    >>> Trainer(callbacks=[LightningBridge(callbacks=[LossMonitor()], level="module")]).fit(model, loader)

    `request_stop()` becomes `trainer.should_stop`. `settings` are those of `misstep.attach`; without `watch` nothing
    is recorded. Metrics that the module logs are found in `eval_results` at the end of an epoch.
    """

    def __init__(
        self, callbacks: Callback | list[Callback] | None = None, *, watch: bool = True, **settings: Any
    ) -> None:
        super().__init__()
        self.relay = Relay(callbacks, watch=watch, settings=settings)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        optimizer = trainer.optimizers[0] if trainer.optimizers else None
        batches = trainer.num_training_batches
        self.relay.begin(
            network=pl_module,
            optimizer=optimizer,
            epoch_num=trainer.max_epochs,
            batch_num=batches if isinstance(batches, int) else 0,
            train_dataset=trainer.train_dataloader,
            device_number=trainer.world_size,
        )

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.relay.epoch_begin(trainer.current_epoch + 1)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self.relay.step_begin(batch)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.relay.step_end(loss_in(outputs))
        self._stop(trainer)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.sanity_checking:
            self.relay.tell("eval", "begin")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.sanity_checking:
            self.relay.tell("eval", "end")

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self.relay.epoch_end({name: float(value) for name, value in trainer.callback_metrics.items()})
        self._stop(trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.relay.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.relay.failed(exception)

    def _stop(self, trainer: Any) -> None:
        if self.relay.stop_requested:
            trainer.should_stop = True
