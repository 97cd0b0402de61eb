"""What a PyTorch program does, kept as facts: the seams tell of it here, and once a step it is handed on.

    network called ─► batch, modes        backward begins ─► objective, activations, weights before
    optimizer steps ─► gradients          step done ─► updates ─► records

On most steps only calls are counted; on the steps of the schedule everything is looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import thread_time
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from misstep.adapters.facts.schedule import Schedule
from misstep.adapters.pytorch.facts import graph
from misstep.adapters.pytorch.facts.activations import activations_of
from misstep.adapters.pytorch.facts.calls import CallSeam
from misstep.adapters.pytorch.facts.objective import objective_of, tensor_look
from misstep.adapters.pytorch.facts.values import digest
from misstep.adapters.pytorch.facts.weights import Weights
from misstep.adapters.pytorch.names import source_at, user_frame
from misstep.adapters.pytorch.seams.optimizer_hooks import around_steps
from misstep.adapters.pytorch.tensors import leaves
from misstep.core.facts import (
    BACKWARD,
    EVALUATE,
    FORWARD,
    STEP,
    Activation,
    Batches,
    Calls,
    Look,
    Modes,
    Objective,
    Record,
    TensorLook,
)

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter

_BATCHES = 24
"""Steps at the beginning of which every batch is told from the others."""
_CALLS = 4
"""Steps at the beginning whose calls are kept in any case."""


class FactSeam:
    """Of one attached adapter; `take` hands on what was learnt in a step."""

    def __init__(self, adapter: PyTorchAdapter) -> None:
        self._adapter = adapter
        self.calls = CallSeam(adapter)
        self.weights = Weights(adapter)
        self.evaluating = True
        """Whether the next call of a network without gradients is of interest."""
        self._schedule = Schedule()
        self._looking = True
        self._inputs: list[torch.Tensor] = []
        self._outputs: list[torch.Tensor] = []
        self._network: nn.Module | None = None
        self._hooked = False
        """In this step saved tensors go through hooks of the program (checkpointing): they are not touched."""
        self._objective: Objective | None = None
        self._activations: list[Activation] = []
        self._modes: Modes | None = None
        self._evaluation: Modes | None = None
        self._looks: tuple[TensorLook, ...] = ()
        self._digests: list[str] = []
        self._trained: set[int] = set()
        """Ids of networks called in training."""
        self._steps = 0

    def install(self) -> list[Callable[[], None]]:
        undo = [*self.calls.install(), *self.weights.install(), self._patch_saving()]
        undo += [
            around_steps(self._before_step, self._after_step),
            self._forget,
        ]
        return undo

    def _patch_saving(self) -> Callable[[], None]:
        hooks: Any = saved_tensors_hooks
        original = hooks.__enter__
        seam = self

        def __enter__(self: Any) -> Any:
            seam._hooked = True
            return original(self)

        hooks.__enter__ = __enter__

        def undo() -> None:
            if hooks.__enter__ is __enter__:
                hooks.__enter__ = original

        return undo

    # ── what the seams tell ───────────────────────────────────────────────────────────────────────────────────

    def network_begins(self, module: nn.Module, args: Any, kwargs: Any, frame: Any) -> None:
        """An outermost module is called with gradients on."""
        self.calls.note(FORWARD, frame)
        early = self._steps < _BATCHES
        if not early and not self._looking:
            return
        began = thread_time()
        if self._network is None and next(module.parameters(), None) is not None:
            with torch.no_grad(), self._adapter.quietly():
                self._network = module
                self._trained.add(id(module))
                given = [one for one in leaves((args, kwargs)) if one.grad_fn is None and one.numel()]
                if early:
                    self._digests.append(digest(given[0]) if given else "")
                if self._looking:
                    self._inputs = given[:4]
                    self._looks = tuple(look for one in given[:4] if (look := tensor_look(one)) is not None)
                    self._modes = _modes(module, frame)
        self._schedule.spent(thread_time() - began)

    def network_ends(self, module: nn.Module, output: Any) -> None:
        if self._looking and module is self._network:
            self._outputs = list(leaves(output))[:4]

    def evaluated(self, module: nn.Module, frame: Any) -> None:
        """An outermost module is called without gradients."""
        self.evaluating = False
        if id(module) in self._trained:
            self.calls.note(EVALUATE, frame)
            self._evaluation = _modes(module, frame)

    def backward_begins(self, losses: Any, frame: Any) -> None:
        if self._adapter.replaying:
            return
        self.calls.cleared()
        first = BACKWARD not in self.calls.order
        self.calls.note(BACKWARD, frame)
        loss = next(iter(leaves(losses)), None)
        if not (self._looking and first) or loss is None:
            return
        began = thread_time()
        with torch.no_grad(), self._adapter.quietly():
            reached: list[torch.Tensor] | None = None
            if loss.grad_fn is None:
                self._objective = Objective(value=float(loss.detach().float().mean()), leaf=True)
                reached = []
            elif not self._hooked:
                found = graph.walk(loss.grad_fn)
                name = self._adapter.names.parameter
                reached = found.weights if found.complete else None
                self._objective = objective_of(loss, found, name, self._inputs, self._outputs)
                self._activations = activations_of(found, name)
            self.weights.before(reached)
        self._outputs = []  # the user's graph is freed as early as without us
        self._schedule.spent(thread_time() - began)

    def _before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not self._off():
            closure = len(args) > 1 or kwargs.get("closure") is not None
            self._adapter.guarded("before an update", self._gradients, optimizer, closure)

    def _gradients(self, optimizer: torch.optim.Optimizer, closure: bool) -> None:
        self.calls.cleared()
        self.calls.before_update(optimizer, judge=not closure)  # a closure clears them later, inside the update
        self.calls.note(STEP, sys._getframe(3))
        number = self.weights.met(optimizer)
        self.weights.stepped[number] = self.weights.stepped.get(number, 0) + 1
        if self._looking:
            began = thread_time()
            with torch.no_grad(), self._adapter.quietly():
                self.weights.gradients_ready(optimizer)
            self._schedule.spent(thread_time() - began)

    def _after_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if not self._off():
            with torch.no_grad(), self._adapter.quietly():
                self._adapter.guarded("after an update", self.calls.after_update, optimizer)

    def _off(self) -> bool:
        adapter = self._adapter
        return bool(torch.compiler.is_compiling() or adapter.inert or adapter.replaying or adapter.steps.elsewhere())

    # ── what is handed on ─────────────────────────────────────────────────────────────────────────────────────

    def take(self, step: int, *, complete: bool, last: bool = False) -> list[Record]:
        """Of the step of this number; `complete`: it ended with an update. The next step begins."""
        if not complete:
            self.calls.skipped += not last
            return []
        began = thread_time()
        self._steps += 1
        records: list[Record] = []
        with torch.no_grad(), self._adapter.quietly():
            if self._looking or self._steps <= _CALLS:
                records.append(self._calls(step))
            if self._looking:
                records = [*self._look(step), *records]
            if self._steps in (4, _BATCHES):
                records.append(self._batches(step))
        self._begin(step + 1)
        self._schedule.spent(thread_time() - began)
        return records

    def close(self, step: int) -> list[Record]:
        """What is left to say when training is over."""
        records: list[Record] = [self._calls(step)]
        setup = self.weights.setup(step, self._adapter.rank()[1])
        if setup is not None:
            records.append(setup)
        if 0 < self._steps < _BATCHES:
            records.append(self._batches(step))
        return records

    def _begin(self, step: int) -> None:
        self.calls.order.clear()
        self.calls.clip = None
        self._network = None
        self._inputs, self._outputs, self._looks = [], [], ()
        self._objective, self._activations, self._modes = None, [], None
        self._hooked = False
        self._looking = self.calls.looking = self._schedule.wants(step)
        self.evaluating |= self._looking

    def _forget(self) -> None:
        """Hold nothing of the program any more."""
        self.weights = Weights(self._adapter)
        self._begin(0)

    def _look(self, step: int) -> list[Record]:
        self._schedule.looked(step)
        if self.calls.counts.get(STEP, 0) == 0:
            self.weights.gradients_ready(None)
        weights, between, undone = self.weights.looks(step)
        scaler = self._adapter.steps.scaler
        records: list[Record] = []
        setup = self.weights.setup(step, self._adapter.rank()[1])
        if setup is not None:
            records.append(setup)
        records.append(
            Look(
                step=step,
                weights=weights,
                inputs=self._looks,
                objective=self._objective,
                activations=tuple(self._activations),
                modes=self._modes,
                evaluation=self._evaluation,
                clip=self.calls.clip,
                loss_scale=None if scaler is None else float(scaler.get_scale()),
                between=between,
                undone=undone,
            )
        )
        self._evaluation = None
        return records

    def _calls(self, step: int) -> Calls:
        calls = self.calls
        return Calls(
            step=step,
            order="".join(calls.order),
            lines=dict(calls.lines),
            counts=dict(calls.counts),
            leftover=calls.leftover,
            leftover_part=calls.leftover_part,
            judged=calls.judged,
            skipped=calls.skipped,
            steps=self._steps,
            rates=tuple(
                tuple(float(group.get("lr", 0.0)) for group in optimizer.param_groups)
                for optimizer, _, _ in self.weights.optimizers()
            ),
        )

    def _batches(self, step: int) -> Batches:
        known = [
            one for one in self._adapter.loaders.known() if (one.get("samples") or 0) > (one.get("batch_size") or 1)
        ]
        return Batches(
            step, tuple(self._digests), loader=bool(known), source=str(known[0].get("source") or "") if known else ""
        )


def _modes(module: nn.Module, frame: Any) -> Modes:
    norms = [one.training for one in module.modules() if isinstance(one, _NormBase) and one.track_running_stats]
    dropouts = [one.training for one in module.modules() if isinstance(one, _DropoutNd) and one.p > 0]
    return Modes(
        network=module.training,
        norms=(sum(norms), len(norms) - sum(norms)),
        dropouts=(sum(dropouts), len(dropouts) - sum(dropouts)),
        line=str(source_at(user_frame(frame)) or ""),
    )
