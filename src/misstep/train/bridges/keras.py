"""misstep inside Keras 3 on its torch backend.

Keras updates weights with optimizers of its own, which torch's optimizer hooks never hear of. While training runs, the
bridge puts a torch optimizer around `optimizer.apply` that does nothing but call it, so that steps are seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from misstep.errors import TrainError, need
from misstep.train.bridges.relay import Relay
from misstep.train.callbacks.base import Callback

if TYPE_CHECKING:
    from keras.callbacks import Callback as KerasCallback
else:
    KerasCallback = need("keras.callbacks", "for KerasBridge").Callback


class KerasBridge(KerasCallback):
    """Watches `model.fit` and runs callbacks of misstep.train in it.

    >>> model.fit(x, y, callbacks=[KerasBridge([LossMonitor()])])      # KERAS_BACKEND=torch

    The loss of a step is that of its batch, not Keras's running mean. `request_stop()` becomes `model.stop_training`.
    `EarlyStopping(monitor="val_loss")` finds what Keras calls so.
    """

    def __init__(
        self, callbacks: Callback | list[Callback] | None = None, *, watch: bool = True, **settings: Any
    ) -> None:
        super().__init__()
        self.relay = Relay(callbacks, watch=watch, settings=settings)
        self._loss: Any = None
        self._undo: list[Any] = []

    def on_train_begin(self, logs: Any = None) -> None:
        model = self.model
        if not isinstance(model, torch.nn.Module):
            backend = need("keras", "for KerasBridge").backend.backend()
            raise TrainError(f"KerasBridge watches the torch backend, Keras runs on {backend}:  KERAS_BACKEND=torch")
        around = self._put_around(model)
        self.relay.begin(
            network=model,
            optimizer=around,
            loss_fn=model.loss,
            epoch_num=self.params.get("epochs") or 1,
            batch_num=self.params.get("steps") or 0,
        )

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.relay.epoch_begin(epoch + 1)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.relay.step_begin()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.relay.step_end(self._loss)
        self._stop()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.relay.epoch_end({name: float(value) for name, value in (logs or {}).items()})
        self._stop()

    def on_train_end(self, logs: Any = None) -> None:
        while self._undo:
            self._undo.pop()()
        self.relay.end()

    def _put_around(self, model: Any) -> AroundKeras:
        model.optimizer.__dict__.pop("apply", None)  # left by a training that ended with an exception
        model.__dict__.pop("compute_loss", None)
        around = around_class(type(model.optimizer).__name__)(model)
        optimizer, apply, compute_loss = model.optimizer, model.optimizer.apply, model.compute_loss

        def apply_and_tell(gradients: Any, variables: Any = None) -> Any:
            return around.run(lambda: apply(gradients, variables))

        def compute_and_keep(*args: Any, **kwargs: Any) -> Any:
            loss = compute_loss(*args, **kwargs)
            if model.training or torch.is_grad_enabled():
                self._loss = loss.detach()
            return loss

        # Straight into the dictionaries: Keras tracks what is assigned, and would save these with the model.
        optimizer.__dict__["apply"] = apply_and_tell
        model.__dict__["compute_loss"] = compute_and_keep
        self._undo += [lambda: optimizer.__dict__.pop("apply"), lambda: model.__dict__.pop("compute_loss")]
        return around

    def _stop(self) -> None:
        if self.relay.stop_requested:
            self.model.stop_training = True


class AroundKeras(torch.optim.Optimizer):
    """A torch optimizer over Keras's weights whose step is Keras's own update."""

    def __init__(self, model: Any) -> None:
        self._keras = model.optimizer
        self._update: Any = None
        super().__init__([weight.value for weight in model.trainable_weights], {"lr": self._rate()})

    def run(self, update: Any) -> Any:
        """Keras's update, as a step."""
        group = self.param_groups[0]
        if group["lr"] != self._told:  # a callback of ours has set it
            self._keras.learning_rate = group["lr"]
        group["lr"] = self._rate()
        self._update = update
        return self.step()

    def step(self, closure: Any = None) -> Any:
        update, self._update = self._update, None
        return None if update is None else update()

    def _rate(self) -> float:
        self._told = float(self._keras.learning_rate)
        return self._told


def around_class(name: str) -> type[AroundKeras]:
    """Named like Keras's optimizer, for that is the name the run shows."""
    return type(name, (AroundKeras,), {})
