"""Model: a network, its loss and optimizer, trained and measured in one line.

    model = Model(net, loss_fn=loss, optimizer=optimizer, metrics={"accuracy"})
    model.train(10, dataset, callbacks=[LossMonitor(), ModelCheckpoint()])
    model.eval(test_dataset)                       # {"accuracy": 0.97}

The loop below knows no framework: it moves batches through `Steps`, tells callbacks, and checks what datasets promise.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from misstep.errors import TrainError
from misstep.train.callbacks.base import Callback, CallbackList, CallbackParams, Hook, Phase, RunContext
from misstep.train.data import Batches
from misstep.train.loss_scale import loss_scale_from
from misstep.train.metrics import Loss, Metric, get_metrics
from misstep.train.steps import AMP_LEVELS, AmpLevel, Recipe, Steps, framework_for

log = logging.getLogger("misstep.train")


class Model:
    """A network with everything needed to train and evaluate it, on either framework.

    Without `loss_fn` the network returns the loss itself; without `optimizer` as well it trains itself when called,
    as the result of TrainOneStepWithLossScaleCell does.
    """

    def __init__(
        self,
        network: Any,
        loss_fn: Any = None,
        optimizer: Any = None,
        metrics: Mapping[str, Metric | str] | Iterable[str] | None = None,
        eval_network: Any = None,
        eval_indexes: Sequence[int] | None = None,
        amp_level: AmpLevel = "O0",
        boost_level: str = "O0",
        *,
        loss_scale_manager: Any = None,
        keep_batchnorm_fp32: bool | None = None,
    ) -> None:
        if amp_level not in AMP_LEVELS:
            raise TrainError(f"unknown amp_level {amp_level!r}; levels are {', '.join(AMP_LEVELS)}")
        if boost_level != "O0":
            raise TrainError(f"boost_level {boost_level!r} exists on Ascend only; leave it at 'O0'")
        if loss_fn is not None and optimizer is None and metrics is None:
            log.debug("Model has a loss but no optimizer: it can predict and evaluate, not train")
        self.network = network
        self.loss_fn = loss_fn
        self.optimizer = optimizer
        self.loss_scale_manager = loss_scale_from(loss_scale_manager)
        self._metrics = get_metrics(metrics)
        self._eval_indexes = _checked_indexes(eval_indexes)
        self._has_eval_network = eval_network is not None
        self._steps: Steps = framework_for(network).build_steps(
            Recipe(network, loss_fn, optimizer, eval_network, amp_level, self.loss_scale_manager, keep_batchnorm_fp32)
        )

    @property
    def train_network(self) -> Any:
        """What one training step runs: the network with loss and optimizer on MindSpore, the module on torch."""
        return self._steps.train_network

    @property
    def eval_network(self) -> Any:
        """What one evaluation step runs."""
        return self._steps.eval_network

    def train(
        self,
        epoch: int,
        train_dataset: Any,
        callbacks: Callback | list[Callback] | None = None,
        dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
        *,
        progress: bool = False,
    ) -> None:
        """Trains for `epoch` epochs; `initial_epoch` of them are taken as done.

        Any iterable of batches will do. `dataset_sink_mode` exists on Ascend and GPU; here data always comes step by
        step through Python, so that callbacks see every step.
        """
        self._run(epoch, train_dataset, callbacks, dataset_sink_mode, initial_epoch, progress)

    def fit(
        self,
        epoch: int,
        train_dataset: Any,
        valid_dataset: Any = None,
        valid_frequency: int | Sequence[int] = 1,
        callbacks: Callback | list[Callback] | None = None,
        dataset_sink_mode: bool = False,
        valid_dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
        *,
        progress: bool = False,
    ) -> None:
        """Trains, and evaluates on `valid_dataset` after every `valid_frequency` epochs (or after the epochs listed).

        Callbacks find the results in `metrics` and `eval_results` at the end of that epoch. Short names (`step_end`)
        run for the training steps only; `on_eval_*` for the evaluation.
        """
        if valid_dataset is not None:
            self._check_can_evaluate()
        validation = None if valid_dataset is None else (valid_dataset, valid_frequency)
        self._run(epoch, train_dataset, callbacks, dataset_sink_mode, initial_epoch, progress, validation)

    def eval(
        self, valid_dataset: Any, callbacks: Callback | list[Callback] | None = None, dataset_sink_mode: bool = False
    ) -> dict[str, Any]:
        """The value of every metric over a dataset, by name."""
        self._check_can_evaluate()
        if not self._metrics:
            raise TrainError("eval measures metrics, and this Model has none:  Model(..., metrics={'accuracy'})")
        params = CallbackParams(network=self.network, loss_fn=self.loss_fn, dataset_sink_mode=False)
        with CallbackList(callbacks) as running:
            params.list_callback = running.callbacks
            return self._evaluate(valid_dataset, running, RunContext(params))

    def predict(self, *data: Any) -> Any:
        """The network's output for one batch, with dropout and batch normalisation in evaluation behaviour."""
        with self._steps.evaluating():
            return self._steps.predict(data)

    def _run(
        self,
        epochs: int,
        dataset: Any,
        callbacks: Callback | list[Callback] | None,
        sink: bool,
        initial_epoch: int,
        progress: bool,
        validation: tuple[Any, int | Sequence[int]] | None = None,
    ) -> None:
        self._check_can_train(epochs, initial_epoch)
        if sink:
            log.warning(
                "dataset_sink_mode has no effect on this device: data goes step by step through Python, "
                "and callbacks run after every step"
            )
        batches = Batches(dataset, epochs=epochs - initial_epoch)
        if self.loss_fn is not None:
            batches.check_columns()
        with CallbackList(_with_progress(callbacks, progress)) as running:
            params = self._train_params(batches, running, epochs - initial_epoch)
            context = RunContext(params)
            moments = _Moments(running, "train")
            self._steps.set_training()
            _tell(moments.begin, context)
            for epoch in range(initial_epoch + 1, epochs + 1):
                params.cur_epoch_num = epoch
                _tell(moments.epoch_begin, context)
                self._train_epoch(batches, context, moments, epoch)
                if validation is not None and not context.stop_requested and _is_due(epoch, validation[1]):
                    self._evaluate_between_epochs(validation[0], running, context)
                _tell(moments.epoch_end, context)
                if validation is not None:
                    params.pop("metrics", None)
                    params.pop("eval_results", None)
                if context.stop_requested:
                    break
            _tell(moments.end, context)

    def _train_epoch(self, batches: Batches, context: RunContext, moments: _Moments, epoch: int) -> None:
        params = context.original_args()
        step_begin, step_end, train = moments.step_begin, moments.step_end, self._steps.train
        step = params.cur_step_num
        given = 0
        for batch in batches:
            given += 1
            if batches.size is not None and given > batches.size:
                batches.check_step(given, epoch=epoch)
            step += 1
            params["cur_step_num"] = step
            params["train_dataset_element"] = batch
            for hook in step_begin:
                hook(context)
            params["net_outputs"] = train(batch)
            for hook in step_end:
                hook(context)
            if context.stop_requested:
                return
        batches.check_epoch(given, epoch=epoch)
        if not params.batch_num:
            params.batch_num = given  # a dataset without a length has told it by now

    def _train_params(self, batches: Batches, running: CallbackList, epochs: int) -> CallbackParams:
        return CallbackParams(
            train_network=self._steps.train_network,
            network=self.network,
            epoch_num=epochs,
            batch_num=batches.size or 0,
            mode="train",
            loss_fn=self.loss_fn,
            optimizer=self.optimizer,
            parallel_mode="stand_alone",
            device_number=1,
            train_dataset=batches.dataset,
            train_dataset_element=None,
            list_callback=running.callbacks,
            cur_epoch_num=0,
            cur_step_num=0,
            initial_step=0,
            net_outputs=None,
            dataset_sink_mode=False,
            last_save_ckpt_step=None,
            latest_ckpt_file=None,
            loss_scale_manager=self.loss_scale_manager,
            loss_scale_mananger=self.loss_scale_manager,  # MindSpore's spelling; its callbacks read it
        )

    def _evaluate_between_epochs(self, dataset: Any, running: CallbackList, context: RunContext) -> None:
        params = context.original_args()
        kept = {name: params[name] for name in ("mode", "cur_step_num", "batch_num", "net_outputs")}
        self._evaluate(dataset, running, context, add_loss=True, short_names=False)
        params.update(kept)

    def _evaluate(
        self,
        dataset: Any,
        running: CallbackList,
        context: RunContext,
        *,
        add_loss: bool = False,
        short_names: bool = True,
    ) -> dict[str, Any]:
        batches = Batches(dataset, role="valid_dataset")
        if not self._has_eval_network:
            batches.check_columns()
        params = context.original_args()
        params.update(
            eval_network=self._steps.eval_network,
            valid_dataset=dataset,
            batch_num=batches.size or 0,
            mode="eval",
            cur_step_num=0,
        )
        moments = _Moments(running, "eval", short_names=short_names)
        metrics = self._metrics
        own_loss = Loss() if add_loss and self._loss_index() is not None else None
        for metric in metrics.values():
            metric.clear()
        _tell(moments.begin, context)
        _tell(moments.epoch_begin, context)
        measured = dict(metrics) if own_loss is None else {**metrics, "eval_loss": own_loss}
        with self._steps.evaluating():
            self._eval_epoch(batches, context, moments, measured)
        _tell(moments.epoch_end, context)
        results = {name: metric.eval() for name, metric in metrics.items()}
        params.metrics = results
        params.eval_results = dict(results)
        if own_loss is not None:
            params.eval_results["eval_loss"] = own_loss.eval()
        _tell(moments.end, context)
        return results

    def _eval_epoch(
        self, batches: Batches, context: RunContext, moments: _Moments, metrics: Mapping[str, Metric]
    ) -> None:
        params = context.original_args()
        given = 0
        for batch in batches:
            given += 1
            batches.check_step(given, epoch=1)
            params["cur_step_num"] = given
            params["eval_dataset_element"] = batch
            for hook in moments.step_begin:
                hook(context)
            params["net_outputs"] = outputs = self._steps.evaluate(batch)
            for hook in moments.step_end:
                hook(context)
            for name, metric in metrics.items():
                metric.update(*self._chosen(name, metric, outputs))
            if context.stop_requested:
                return
        batches.check_epoch(given, epoch=1)

    def _chosen(self, name: str, metric: Metric, outputs: tuple[Any, ...]) -> Sequence[Any]:
        """The outputs a metric wants: those it asked for, else the loss for Loss, else prediction and label."""
        wanted = metric.indexes
        if wanted is None:
            if self._has_eval_network and self._eval_indexes is None:
                return outputs
            loss, prediction, label = self._eval_indexes or (0, 1, 2)
            wanted = [loss] if isinstance(metric, Loss) else [prediction, label]
        if max(wanted) >= len(outputs):
            raise TrainError(
                f"metric {name!r} wants outputs {wanted} of the evaluation network, which returns {len(outputs)}; "
                "set eval_indexes=[loss, prediction, label] of Model, or set_indexes of the metric"
            )
        return [outputs[index] for index in wanted]

    def _loss_index(self) -> int | None:
        if self._has_eval_network:
            return self._eval_indexes[0] if self._eval_indexes else None
        return 0

    def _check_can_train(self, epochs: int, initial_epoch: int) -> None:
        if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1:
            raise TrainError(f"the number of epochs must be a whole number from 1 on, got {epochs!r}")
        if not 0 <= initial_epoch < epochs:
            raise TrainError(f"initial_epoch must lie between 0 and {epochs - 1}, got {initial_epoch}")
        if self.loss_fn is not None and self.optimizer is None:
            raise TrainError("this Model has a loss function but no optimizer, so it cannot train; pass optimizer=")

    def _check_can_evaluate(self) -> None:
        if self.loss_fn is None and not self._has_eval_network:
            raise TrainError(
                "without loss_fn the network returns only its loss, so there is no prediction to measure; pass "
                "eval_network= with a network that returns what the metrics need"
            )


class _Moments:
    """The methods to call at each moment of one phase, looked up once."""

    __slots__ = ("begin", "end", "epoch_begin", "epoch_end", "step_begin", "step_end")

    def __init__(self, running: CallbackList, phase: Phase, *, short_names: bool = True) -> None:
        self.begin = running.hooks(phase, "begin", short_names=short_names)
        self.epoch_begin = running.hooks(phase, "epoch_begin", short_names=short_names)
        self.step_begin = running.hooks(phase, "step_begin", short_names=short_names)
        self.step_end = running.hooks(phase, "step_end", short_names=short_names)
        self.epoch_end = running.hooks(phase, "epoch_end", short_names=short_names)
        self.end = running.hooks(phase, "end", short_names=short_names)


def _tell(hooks: tuple[Hook, ...], context: RunContext) -> None:
    for hook in hooks:
        hook(context)


def _is_due(epoch: int, frequency: int | Sequence[int]) -> bool:
    if isinstance(frequency, int):
        if frequency < 1:
            raise TrainError(f"valid_frequency must be at least 1, got {frequency}")
        return epoch % frequency == 0
    return epoch in frequency


def _with_progress(callbacks: Any, progress: bool) -> Any:
    if not progress:
        return callbacks
    from misstep.train.callbacks.progress import ProgressBar

    given = [] if callbacks is None else list(callbacks) if isinstance(callbacks, list | tuple) else [callbacks]
    return [*given, ProgressBar()]


def _checked_indexes(indexes: Sequence[int] | None) -> tuple[int, int, int] | None:
    if indexes is None:
        return None
    if len(indexes) != 3:
        raise TrainError(f"eval_indexes are the positions of loss, prediction and label, got {list(indexes)}")
    loss, prediction, label = indexes
    return int(loss), int(prediction), int(label)
