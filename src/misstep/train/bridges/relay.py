"""What all bridges share: the session that watches, and the callbacks of misstep.train, told at the right moments.

A bridge only translates: its framework's hooks into these verbs, and its framework's values into the attributes of
`RunContext.original_args()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from misstep.capture.process import attach, live_session
from misstep.capture.session import Session
from misstep.train.callbacks.base import Callback, CallbackList, CallbackParams, Moment, Phase, RunContext


class Relay:
    """One training somewhere else, told to callbacks as if Model ran it."""

    def __init__(
        self, callbacks: Callback | list[Callback] | None, *, watch: bool, settings: Mapping[str, Any]
    ) -> None:
        self.callbacks = CallbackList(callbacks)
        self.params = CallbackParams()
        self.context = RunContext(self.params)
        self.session: Session | None = None
        self._watch = watch
        self._settings = dict(settings)
        self._ours = False
        self._running = False

    @property
    def stop_requested(self) -> bool:
        """Whether a callback asked for the end of training."""
        return self.context.stop_requested

    def begin(self, *, network: Any, optimizer: Any, watched_optimizer: Any = None, **known: Any) -> None:
        """Training begins; `known` are further attributes of the run."""
        self.watch(network, optimizer if watched_optimizer is None else watched_optimizer)
        self.params = CallbackParams(
            {
                "train_network": network,
                "network": network,
                "optimizer": optimizer,
                "loss_fn": None,
                "mode": "train",
                "epoch_num": 1,
                "batch_num": 0,
                "parallel_mode": "stand_alone",
                "device_number": 1,
                "train_dataset": None,
                "train_dataset_element": None,
                "list_callback": self.callbacks.callbacks,
                "cur_epoch_num": 0,
                "cur_step_num": 0,
                "initial_step": 0,
                "net_outputs": None,
                "dataset_sink_mode": False,
                "last_save_ckpt_step": None,
                "latest_ckpt_file": None,
                **known,
            }
        )
        self.context = RunContext(self.params)
        self.callbacks.__enter__()
        self._running = True
        self.tell("train", "begin")

    def watch(self, network: Any, optimizer: Any) -> None:
        """Watch this training, in the session of `misstep run` when the program was started by it."""
        if self._watch and self.session is None:
            self._ours = live_session() is None
            self.session = attach(network, optimizer, **self._settings)

    def epoch_begin(self, epoch: int) -> None:
        self.params.cur_epoch_num = epoch
        self.tell("train", "epoch_begin")

    def step_begin(self, batch: Any = None) -> None:
        self.params.cur_step_num += 1
        self.params.train_dataset_element = batch
        self.tell("train", "step_begin")

    def step_end(self, loss: Any) -> None:
        self.params.net_outputs = loss
        self.tell("train", "step_end")

    def epoch_end(self, results: Mapping[str, Any] | None = None) -> None:
        if results:
            self.params.metrics = dict(results)
            self.params.eval_results = dict(results)
        self.tell("train", "epoch_end")

    def end(self) -> None:
        if self._running:
            self._running = False
            self.tell("train", "end")
            self.callbacks.__exit__(None, None, None)
        self._end_session("finished")

    def failed(self, error: BaseException) -> None:
        """Training ended with an exception; callbacks are left as Model leaves them."""
        if self._running:
            self._running = False
            self.callbacks.__exit__(type(error), error, error.__traceback__)
        if self._ours and self.session is not None:
            self.session.failed(error)
        self._end_session("failed")

    def tell(self, phase: Phase, moment: Moment) -> None:
        try:
            for hook in self.callbacks.hooks(phase, moment, short_names=phase == "train"):
                hook(self.context)
        except Exception as error:
            # Not every framework tells its callbacks of an exception; of one that is ours we know here.
            self.failed(error)
            raise

    def _end_session(self, reason: Literal["finished", "failed"]) -> None:
        if self._ours and self.session is not None:
            self.session.end(reason)
        self.session = None


def loss_in(outputs: Any) -> Any:
    """The loss among what a step returned: itself, or under the name `loss`; detached, never copied to the host."""
    loss: Any = outputs.get("loss") if isinstance(outputs, Mapping) else getattr(outputs, "loss", outputs)
    if isinstance(loss, tuple | list):
        loss = loss[0] if loss else None
    return loss.detach() if hasattr(loss, "detach") else loss
