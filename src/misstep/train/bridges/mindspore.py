"""misstep inside mindspore.train.Model.

MindSpore's callbacks and ours have the same methods and the same context, so the bridge hands the moments through.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from mindspore.train.callback import Callback as MindSporeCallback

from misstep.train.bridges.relay import Relay
from misstep.train.callbacks.base import MOMENTS, Callback


class MindSporeBridge(MindSporeCallback):
    """Watches a `mindspore.train.Model` and runs callbacks of misstep.train in it.

    >>> model.train(1, dataset, callbacks=[MindSporeBridge([LossMonitor()])])

    MindSpore's Model takes only objects of its own Callback class; several of ours go into one bridge.
    """

    def __init__(self, callbacks: Callback | list[Callback] | None = None, *, watch: bool = True, **settings: Any):
        super().__init__()
        self.relay = Relay(callbacks, watch=watch, settings=settings)

    def __enter__(self) -> MindSporeBridge:
        self.relay.callbacks.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.relay.callbacks.__exit__(kind, error, trace)
        if error is not None:
            self.relay.failed(error)
        else:
            self.relay.end()

    def _hand_on(self, phase: Any, moment: Any, run_context: Any) -> None:
        if moment == "begin" and phase == "train":
            params = run_context.original_args()
            for count in ("cur_epoch_num", "cur_step_num"):  # ours may ask before the first epoch
                params.setdefault(count, 0)
            self.relay.watch(params.train_network, params.optimizer)
        self.relay.context = run_context
        self.relay.tell(phase, moment)


def _handing_on(phase: str, moment: str) -> Any:
    def handed_on(self: MindSporeBridge, run_context: Any) -> None:
        self._hand_on(phase, moment, run_context)

    handed_on.__name__ = f"on_{phase}_{moment}"
    return handed_on


for _phase in ("train", "eval"):
    for _moment in MOMENTS:
        setattr(MindSporeBridge, f"on_{_phase}_{_moment}", _handing_on(_phase, _moment))
