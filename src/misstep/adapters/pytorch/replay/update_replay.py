"""An optimizer's update, run again after it left something non-finite behind.

The weights before the update are gone, unless a copy was cheap. Without one the update runs from what it left: finite
elements as they are, others from zero. Whatever divides by zero, takes a root of a negative number or multiplies by an
infinite learning rate does so again; that is enough to name the operator, and it is said that it was not exact.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim import optimizer as optimizers

from misstep.adapters.pytorch import tensors
from misstep.adapters.pytorch.names import user_frame
from misstep.adapters.pytorch.replay.rerun import same_bits
from misstep.adapters.pytorch.replay.stage import stage
from misstep.adapters.pytorch.replay.undo import Undo
from misstep.adapters.replaying.affordable import Purse
from misstep.adapters.replaying.protocol import Replayed
from misstep.errors import ReplayError
from misstep.sentences import replay as texts

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter

_SECONDS_PER_TENSOR = 1.5e-6
_GLOBAL_HOOKS = ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")


class HeldWeights:
    """A copy of weights and optimizer state from just before the update, where that costs next to nothing."""

    def __init__(self) -> None:
        self.optimizer: weakref.ref[torch.optim.Optimizer] | None = None
        self._sources: list[torch.Tensor] = []
        self._copies: list[torch.Tensor] = []
        self._purse = Purse(_SECONDS_PER_TENSOR)

    def hold(self, optimizer: torch.optim.Optimizer) -> None:
        """Called before every update."""
        self._purse.step()
        self.optimizer = None
        weights = list(weights_of(optimizer))
        if not self._purse.affords(len(weights)):
            self._sources, self._copies = [], []
            return
        sources = [tensor for weight in weights for tensor in (weight, *_tensors_in(optimizer.state.get(weight, {})))]
        size = sum(tensor.numel() * tensor.element_size() for tensor in sources)
        if not self._purse.affords(len(sources), size):
            self._sources, self._copies = [], []
            return
        with torch.no_grad():
            if len(sources) == len(self._sources) and all(a is b for a, b in zip(sources, self._sources)):
                torch._foreach_copy_(self._copies, sources)
            else:
                self._sources, self._copies = sources, [tensor.detach().clone() for tensor in sources]
        self.optimizer = weakref.ref(optimizer)

    def of(self, optimizer: torch.optim.Optimizer) -> dict[int, torch.Tensor]:
        """By id of a weight or a tensor of the state: its value before the update. Empty when it was not held."""
        if self.optimizer is None or self.optimizer() is not optimizer:
            return {}
        return {id(source): copy for source, copy in zip(self._sources, self._copies)}


def replay_update(adapter: PyTorchAdapter, optimizer: torch.optim.Optimizer) -> Replayed:
    """The update that just ended, again, on copies."""
    began = perf_counter_ns()
    weights = list(weights_of(optimizer))
    if adapter.in_backward:
        raise ReplayError(texts.STEPS_IN_BACKWARD.of())
    before = adapter.held_weights.of(optimizer)
    twins = {id(weight): _twin(weight, before) for weight in weights}
    outer = user_frame(sys._getframe())
    node = adapter.names.optimizer(optimizer)
    with Undo([], list(twins.values())) as undo, _double(optimizer, twins, before):
        for weight in weights:
            twins[id(weight)].grad = weight.grad
        with stage(adapter, undo, outer, watch=True) as frame:
            _see_weights(adapter, "grad", weights, [weight.grad for weight in weights])
            adapter.updating = node
            try:
                _plain_step(optimizer)
            finally:
                adapter.updating = None
            _see_weights(adapter, "param", weights, [twins[id(weight)] for weight in weights])
            adapter.seer.fetch()
            rows = dict(adapter.gradient_rows)
        for twin in twins.values():
            twin.grad = None
    same = bool(before) and all(same_bits(twins[id(weight)], weight) for weight in weights)
    why = texts.UPDATE_DIFFERS if before else texts.FROM_WHAT_IT_LEFT
    exact = texts.EXACT.of() if same else texts.NOT_EXACT.of(why=why)
    return Replayed(frame, exact, (perf_counter_ns() - began) * 1e-9, rows)


def weights_of(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _see_weights(adapter: PyTorchAdapter, role: Any, weights: list[torch.Tensor], values: list[Any]) -> None:
    there = [(weight, value) for weight, value in zip(weights, values) if value is not None]
    with adapter.quietly():
        adapter.parameter_rows(role, [weight for weight, _ in there], [value.detach() for _, value in there])


def _tensors_in(state: Any) -> Iterator[torch.Tensor]:
    for value in state.values() if isinstance(state, dict) else ():
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            yield value


def _twin(tensor: torch.Tensor, before: dict[int, torch.Tensor]) -> Any:
    """The tensor as it was before the update, or a guess at it."""
    with torch.no_grad():
        held = before.get(id(tensor))
        value = tensor.detach().clone() if held is None else held.clone()
        if held is None and value.is_floating_point():
            value = torch.where(torch.isfinite(value), value, torch.zeros_like(value))
    return nn.Parameter(value, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else value


class _double:
    """Lets an optimizer work on copies of its weights and state; everything of it is as before afterwards."""

    def __init__(
        self, optimizer: torch.optim.Optimizer, twins: dict[int, Any], before: dict[int, torch.Tensor]
    ) -> None:
        self.optimizer = optimizer
        self.twins = twins
        self.before = before

    def __enter__(self) -> None:
        optimizer = self.optimizer
        self._space = dict(vars(optimizer))
        # Other dicts, not empty ones: torch may be walking through these right now.
        self._globals = {name: getattr(optimizers, name) for name in _GLOBAL_HOOKS}
        for name, hooks in self._globals.items():
            setattr(optimizers, name, type(hooks)())
        state = type(optimizer.state)(optimizer.state.default_factory)
        for weight, entries in optimizer.state.items():
            twin = self.twins.get(id(weight)) if isinstance(weight, torch.Tensor) else None
            if twin is not None and isinstance(entries, dict):
                state[twin] = {
                    name: _twin(value, self.before) if isinstance(value, torch.Tensor) else value
                    for name, value in entries.items()
                }
        optimizer.state = state
        optimizer.param_groups = [
            {**group, "params": [self.twins[id(weight)] for weight in group["params"]]}
            for group in optimizer.param_groups
        ]
        optimizer._optimizer_step_pre_hooks = type(optimizer._optimizer_step_pre_hooks)()
        optimizer._optimizer_step_post_hooks = type(optimizer._optimizer_step_post_hooks)()

    def __exit__(self, *facts: Any) -> None:
        space = vars(self.optimizer)
        space.clear()
        space.update(self._space)
        for name, hooks in self._globals.items():
            setattr(optimizers, name, hooks)


def _plain_step(optimizer: torch.optim.Optimizer) -> None:
    """The class's own step, without the hooks torch and schedulers wrap around it."""
    step: Any = type(optimizer).step
    while hasattr(step, "__wrapped__") and getattr(step, "hooked", False):
        step = step.__wrapped__
    step(optimizer)


def bad_state(optimizer: torch.optim.Optimizer) -> list[tuple[str, torch.Tensor]]:
    """Tensors of the optimizer's state that hold NaN or Inf: a gradient of 1e30 freezes a weight without a sound."""
    named = [
        (name, value)
        for state in optimizer.state.values()
        if isinstance(state, dict)
        for name, value in state.items()
        if isinstance(value, torch.Tensor) and value.is_floating_point()
    ]
    found = tensors.nonfinite([value for _, value in named])
    return [named[place] for place in found]
