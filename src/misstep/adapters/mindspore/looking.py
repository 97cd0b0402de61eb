"""Facts of a MindSpore program for `misstep diagnose`: cells, losses and activations, gradients and updates.

PyNative shows every cell: what goes into the network and into the loss, what activations give, what backward returns
for each weight. Compiled code shows none of it, and then nothing is said of it: only optimizers, losses and rates.
"""

from __future__ import annotations

import weakref
from time import thread_time
from typing import TYPE_CHECKING, Any

import mindspore as ms
import numpy as np
from mindspore import nn

from misstep.adapters.facts import arrays
from misstep.adapters.facts.schedule import Schedule
from misstep.adapters.mindspore import tensors
from misstep.adapters.mindspore.names import OPTIMIZERS, learning_rate, users_line
from misstep.core.facts import (
    BACKWARD,
    FORWARD,
    STEP,
    Activation,
    Batches,
    Calls,
    Look,
    Modes,
    Objective,
    OptimizerFact,
    Record,
    Setup,
    TensorLook,
    Term,
    WeightFact,
    WeightLook,
)
from misstep.core.stats import Array

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter

_LOSSES: dict[str, str] = {
    "CrossEntropyLoss": "cross_entropy",
    "SoftmaxCrossEntropyWithLogits": "cross_entropy",
    "NLLLoss": "nll",
    "BCEWithLogitsLoss": "bce_logits",
    "BCELoss": "bce",
    "MSELoss": "mse",
    "L1Loss": "l1",
    "SmoothL1Loss": "huber",
    "HuberLoss": "huber",
}
_ACTIVATIONS = {"ReLU": "relu", "Tanh": "tanh", "Sigmoid": "sigmoid"}
_SQUASHING = {**_ACTIVATIONS, "Softmax": "softmax", "LogSoftmax": "logsoftmax"}
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_BATCHES = 24
_TINY = 1e-12


class FactSeam:
    """Of one attached adapter; `take` hands on what was learnt in a step."""

    def __init__(self, adapter: MindSporeAdapter) -> None:
        self._adapter = adapter
        self.looking = True
        self._schedule = Schedule()
        self._made: dict[int, tuple[weakref.ref[Any], str]] = {}
        """By id of an optimizer: it, and the line that made it. Held weakly: their number tells where steps end."""
        self._counts: dict[str, int] = {}
        self._lines: dict[str, str] = {}
        self._order: list[str] = []
        self._steps = 0
        self._stepped: dict[int, int] = {}
        self._told: tuple[Any, ...] = ()
        self._digests: list[str] = []
        self._begin(1)

    def _begin(self, step: int) -> None:
        self.looking = self._schedule.wants(step)
        self._order.clear()
        self._inputs: tuple[TensorLook, ...] = ()
        self._output: Any = None
        self._terms: list[Term] = []
        self._shapes: tuple[tuple[int, ...], ...] = ()
        self._activations: list[Activation] = []
        self._modes: Modes | None = None
        self._last: tuple[Any, str, str] = (None, "", "")
        """The last activation: its output, its kind, and the layer before it."""
        self._layer = ""
        self._before: list[tuple[Any, Array]] = []
        self._gradients: dict[int, float] = {}

    def met(self, optimizer: Any, frame: Any) -> None:
        """An optimizer is made."""
        self._made[id(optimizer)] = (weakref.ref(optimizer), str(users_line(frame) or ""))

    def _optimizers(self) -> list[tuple[Any, str]]:
        living = [(made(), line) for made, line in self._made.values()]
        return [(one, line) for one, line in living if one is not None]

    # ── what the seams tell ───────────────────────────────────────────────────────────────────────────────────

    def cell_done(self, cell: Any, args: Any, output: Any) -> None:
        """A cell has run, inside a network or as one."""
        if isinstance(cell, OPTIMIZERS):
            return
        began = thread_time()
        with self._adapter.guarded("after a cell"):
            self._cell(cell, args, output)
        self._schedule.spent(thread_time() - began)

    def _cell(self, cell: Any, args: Any, output: Any) -> None:
        kind = type(cell).__name__
        given = [one for one in tensors.leaves(args) if isinstance(one, ms.Tensor)]
        out = next((one for one in tensors.leaves(output) if isinstance(one, ms.Tensor)), None)
        if out is None:
            return
        if kind in _LOSSES and len(given) >= 2:
            self._loss(cell, _LOSSES[kind], given, out)
        elif kind in _SQUASHING:
            if kind in _ACTIVATIONS:
                seen = arrays.activation(_ACTIVATIONS[kind], self._layer, tensors.array(out))
                self._activations += [seen] if seen is not None else []
            self._last = (out, _SQUASHING[kind], self._layer)
        elif not self._adapter.depth and not self._inputs and cell.trainable_params():
            self._network(cell, given, out)
        elif cell.trainable_params() and not list(cell.cells()):
            self._layer = self._adapter.names.parameter(cell.trainable_params()[0])

    def _network(self, cell: Any, given: list[Any], out: Any) -> None:
        self._count(FORWARD)
        self._inputs = tuple(arrays.look_at(tensors.array(one)) for one in given[:4])
        self._output = out
        if self._steps < _BATCHES:
            self._digests.append(self._inputs[0].digest if self._inputs else "")
        parts = [one for _, one in cell.cells_and_names()]
        norms = [bool(one.training) for one in parts if isinstance(one, _NORMS)]
        dropouts = [bool(one.training) for one in parts if isinstance(one, nn.Dropout)]
        self._modes = Modes(
            network=bool(cell.training),
            norms=(sum(norms), len(norms) - sum(norms)),
            dropouts=(sum(dropouts), len(dropouts) - sum(dropouts)),
        )

    def _loss(self, cell: Any, kind: str, given: list[Any], out: Any) -> None:
        prediction, target = tensors.array(given[0]), tensors.array(given[1])
        last, before, layer = self._last
        below = (before,) if last is given[0] else ()
        classes = int(prediction.shape[1]) if kind in ("cross_entropy", "nll") and prediction.ndim > 1 else None
        whole = target.dtype.kind in "iu" or (target.ndim == 1 and kind.startswith("bce"))
        self._terms.append(
            Term(
                kind=kind,
                below=below if below != ("logsoftmax",) else (),
                layer=layer,
                reduction=str(getattr(cell, "reduction", "") or "mean"),
                prediction=arrays.look_at(prediction),
                target=arrays.look_at(target),
                classes=classes,
                top_target=arrays.top_share(target) if whole else None,
                top_prediction=arrays.top_share(prediction.argmax(1)) if classes and prediction.shape[0] >= 8 else None,
                rows_sum_to_one=arrays.is_distribution(prediction),
                log_rows=arrays.are_log_rows(prediction) if kind == "nll" and prediction.ndim == 2 else None,
                spread=arrays.spread(prediction),
            )
        )
        batch = prediction.shape[0] if prediction.ndim else 0
        if kind in ("mse", "l1", "huber") and batch > 1 and prediction.shape != target.shape:
            result = np.broadcast_shapes(prediction.shape, target.shape)
            if result[-2:] == (batch, batch):
                self._shapes = (tuple(prediction.shape), tuple(int(size) for size in result))

    def backward_begins(self, weights: Any) -> None:
        """Before the weights move: what they are, in samples."""
        self._count(BACKWARD)
        if self.looking and weights is not None and not self._before:
            began = thread_time()
            with self._adapter.guarded("at backward"):
                known = {id(one): one for _, one in self._adapter.parameters()}
                known |= {id(one): one for one in tensors.leaves(weights)}
                self._before = [(one, arrays.sample(tensors.array(one))) for one in known.values()]
            self._schedule.spent(thread_time() - began)

    def backward_ends(self, gradients: Any, weights: Any) -> None:
        if not self.looking or weights is None:
            return
        began = thread_time()
        with self._adapter.guarded("after backward"):
            given, held = tensors.leaves(gradients), tensors.leaves(weights)
            for weight, gradient in zip(held, given[-len(held) :]):
                norm = float(np.linalg.norm(np.asarray(tensors.array(gradient), np.float64)))
                self._gradients[id(weight)] = norm
        self._schedule.spent(thread_time() - began)

    def _count(self, letter: str) -> None:
        self._counts[letter] = self._counts.get(letter, 0) + 1
        if len(self._order) < 48:
            self._order.append(letter)

    # ── what is handed on ─────────────────────────────────────────────────────────────────────────────────────

    def take(self, step: int, *, complete: bool, last: bool = False) -> list[Record]:
        """Of the step of this number; the next one begins."""
        if not complete:
            return []
        began = thread_time()
        self._steps += 1
        self._count(STEP)
        for optimizer in self._adapter.updates.stepped:
            self._stepped[id(optimizer)] = self._stepped.get(id(optimizer), 0) + 1
        records: list[Record] = []
        if self.looking:
            self._schedule.looked(step)
            setup = self._setup(step)
            records += [setup] if setup is not None else []
            records += [self._look(step), self._calls(step)]
        if self._steps == _BATCHES:
            records.append(Batches(step, tuple(self._digests)))
        self._begin(step + 1)
        self._schedule.spent(thread_time() - began)
        return records

    def close(self, step: int) -> list[Record]:
        """What is left to say when training is over."""
        records: list[Record] = [self._calls(step)]
        if 0 < self._steps < _BATCHES:
            records.append(Batches(step, tuple(self._digests)))
        return records

    def _look(self, step: int) -> Look:
        name = self._adapter.names.parameter
        looks = []
        for weight, before in self._before:
            now = tensors.array(weight)
            after = arrays.sample(now)
            same = bool(np.array_equal(before, after))
            size = float(np.linalg.norm(np.asarray(before, np.float64)))
            change = float(np.linalg.norm(np.asarray(after, np.float64) - np.asarray(before, np.float64)))
            looks.append(
                WeightLook(
                    name(weight),
                    norm=size,
                    gradient=self._gradients.get(id(weight)),
                    update=0.0 if same else change / max(size, _TINY),
                    moved=not same,
                    alike=arrays.alike(now),
                    digest=arrays.digest(before),
                )
            )
        return Look(
            step=step,
            weights=tuple(looks),
            inputs=self._inputs,
            objective=self._objective(),
            activations=tuple(self._activations),
            modes=self._modes,
            loss_scale=self._adapter.updates.loss_scale,
        )

    def _objective(self) -> Objective | None:
        if not self._terms and self._output is None:
            return None
        output = None if self._output is None else tensors.array(self._output)
        losses = self._adapter.updates.losses
        return Objective(
            value=tensors.number(losses[-1]) if losses else None,
            reached=len(self._before),
            terms=tuple(self._terms[:4]),
            broadcast=self._shapes,
            output=None if output is None else arrays.look_at(output),
            output_spread=None if output is None else arrays.spread(output),
        )

    def _calls(self, step: int) -> Calls:
        rates = tuple((tensors.number(learning_rate(one)) or 0.0,) for one, _ in self._optimizers())
        return Calls(step, "".join(self._order), dict(self._lines), dict(self._counts), steps=self._steps, rates=rates)

    def _setup(self, step: int) -> Setup | None:
        adapter, name = self._adapter, self._adapter.names.parameter
        for optimizer in adapter.names.optimizers():
            self._made.setdefault(id(optimizer), (weakref.ref(optimizer), ""))
        made = self._optimizers()
        held: dict[int, list[int]] = {}
        weights: dict[int, Any] = {}
        networked: set[int] = set()
        for network in adapter.names.networks():
            for weight in network.get_parameters():
                if not _is_statistic(weight):
                    weights[id(weight)] = weight
                    networked.add(id(weight))
        for number, (optimizer, _) in enumerate(made):
            for weight in optimizer.parameters:
                weights.setdefault(id(weight), weight)
                held.setdefault(id(weight), []).append(number)
        news = (
            len(made),
            frozenset((key, one.requires_grad, len(held.get(key, ()))) for key, one in weights.items()),
        )
        if news == self._told:
            return None
        self._told = news
        return Setup(
            step=step,
            weights=tuple(
                _weight(name(one), one, held.get(key, []), known=key in networked) for key, one in weights.items()
            ),
            optimizers=tuple(
                OptimizerFact(
                    number,
                    type(optimizer).__name__,
                    line,
                    (_options(optimizer),),
                    sum(id(one) not in networked for one in optimizer.parameters),
                    self._stepped.get(id(optimizer), 0) or self._steps,
                )
                for number, (optimizer, line) in enumerate(made)
            ),
            world=adapter.rank()[1],
        )


def _is_statistic(weight: Any) -> bool:
    """Means and variances of normalisation layers are parameters in MindSpore."""
    return str(weight.name).endswith(("moving_mean", "moving_variance"))


def _weight(name: str, weight: Any, held: list[int], *, known: bool) -> WeightFact:
    values = np.asarray(arrays.sample(tensors.array(weight)), np.float64)
    return WeightFact(
        name,
        tuple(weight.shape),
        bool(weight.requires_grad),
        tuple(dict.fromkeys(held)),
        len(held),
        known,
        std=float(values.std()) if values.size > 1 else None,
        constant=bool(values.size > 1 and (values == values[0]).all()),
    )


def _options(optimizer: Any) -> dict[str, float]:
    numbers: dict[str, float] = {"lr": tensors.number(learning_rate(optimizer)) or 0.0}
    for name in ("momentum", "weight_decay", "beta1", "beta2", "eps"):
        value = getattr(optimizer, name, None)
        try:
            found = tensors.number(value) if isinstance(value, ms.Tensor) else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
        if found is not None:
            numbers[name] = found
    return numbers
