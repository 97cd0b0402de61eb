"""Where a step of PyTorch training begins and ends.

    torch.autograd.backward              the loss, and when backward runs
    optimizer step hooks (global)        gradients before the update, weights after it
    GradScaler._maybe_opt_step           updates that a gradient scaler skips
    weights that moved by themselves     training without an optimizer of torch (by_hand.py)

A step is one update. Several optimizers that step in one pass of the user's loop share a step (passes.py); one that
steps twice begins the next. With one optimizer the step ends with its update; with several, when the next pass begins.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from threading import get_ident
from time import perf_counter_ns
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.compiler import is_compiling

from misstep.adapters.base import Place, TrainingStopped, Update
from misstep.adapters.pytorch import tensors
from misstep.adapters.pytorch.seams.by_hand import NAME as BY_HAND
from misstep.adapters.pytorch.seams.by_hand import UpdatesByHand
from misstep.adapters.pytorch.seams.functional import FunctionalSteps
from misstep.adapters.pytorch.seams.leaving import leave, left_behind
from misstep.adapters.pytorch.seams.losses import Losses, number
from misstep.adapters.pytorch.seams.optimizer_hooks import around_steps
from misstep.adapters.pytorch.seams.scaler import watch_scaler
from misstep.adapters.step.frame import Frame
from misstep.adapters.step.passes import Pass
from misstep.core import segments
from misstep.core.cells import BACKWARD, BETWEEN, OPTIMIZER, PHASE
from misstep.core.levels import Level

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter

CLOSE: frozenset[Level] = frozenset({"module", "op"})


class StepSeam:
    """Stands in for backward and beside every optimizer while attached."""

    def __init__(self, adapter: PyTorchAdapter) -> None:
        self.adapter = adapter
        self.plain_backward: Callable[..., Any] = torch.autograd.backward
        self.stepped: list[torch.optim.Optimizer] = []
        """The optimizers that have updated their weights in the step under way."""
        self._known: dict[int, weakref.ref[torch.optim.Optimizer]] = {}
        self.losses = Losses(adapter)
        self.backwards = 0
        """Since the last update."""
        self.loop = Pass()
        self.by_hand = UpdatesByHand(self)
        self.functional = FunctionalSteps(self)
        self.scaler: Any = None
        self._initial_told = False
        self._initial: set[int] = set()
        """Ids of the weights told of at step 0."""

    def install(self) -> list[Callable[[], None]]:
        """Put the seams in; what is returned takes them out."""
        return [
            self._patch_backward(),
            watch_scaler(self),
            *self.by_hand.install(),
            self.functional.install(),
            around_steps(self._before_step, self._after_step),
        ]

    def forget(self) -> None:
        """Nothing of the step under way counts any more."""
        self.losses.clear()
        self.stepped.clear()
        self.by_hand.forget()

    def optimizers(self) -> Iterator[torch.optim.Optimizer]:
        for ref in self._known.values():
            optimizer = ref()
            if optimizer is not None:
                yield optimizer

    def network_called(self, module: torch.nn.Module) -> None:
        """A network begins to run: before the first one moves its weights, they are told of as step 0."""
        adapter = self.adapter
        if self._initial_told or not adapter.live or adapter.level not in CLOSE:
            return
        if next(module.parameters(), None) is not None:
            self._tell_initial()

    # ── backward ──────────────────────────────────────────────────────────────────────────────────────────────

    def _patch_backward(self) -> Callable[[], None]:
        adapter = self.adapter
        original = self.plain_backward = torch.autograd.backward

        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():  # Dynamo must find nothing else to trace
                return original(tensors, *args, **kwargs)
            if adapter.inert or adapter.in_backward or adapter.replaying or self.elsewhere():
                return original(tensors, *args, **kwargs)
            caller = sys._getframe(1)
            adapter.guarded("at backward", self.backward_begins, tensors)
            adapter.guarded("at backward", adapter.facts.backward_begins, tensors, caller)
            if adapter.tape.armed:
                adapter.guarded("at backward", adapter.tape.backward_begins, tensors, args, kwargs, caller)
            adapter.in_backward = True
            adapter.cells[PHASE] = BACKWARD
            adapter.clock.switch(segments.BACKWARD)
            try:
                result = original(tensors, *args, **kwargs)
                adapter.cells[PHASE] = BETWEEN
                adapter.clock.switch(segments.GRADIENTS)
                if adapter.tape.armed:
                    adapter.guarded("after backward", adapter.tape.backward_ends)
                if adapter.modules.watching:
                    adapter.guarded("after backward", adapter.modules.backward_ends)
                adapter.guarded("after backward", self.by_hand.backward_ended, tensors, caller)
                return result
            except BaseException as error:
                adapter.user_raised(error, -1)
                raise
            finally:
                adapter.in_backward = False

        torch.autograd.backward = backward

        def undo() -> None:
            if torch.autograd.backward is backward:
                torch.autograd.backward = original

        return undo

    def backward_begins(self, losses: Any) -> None:
        adapter = self.adapter
        start = perf_counter_ns()
        self.close(sys._getframe(1))
        if not adapter.live:
            adapter.go_live()
        self.backwards += 1
        for loss in (losses,) if type(losses) is torch.Tensor else tensors.leaves(losses):
            self.losses.take(loss)
        adapter.cost_ns += perf_counter_ns() - start
        if adapter.listener.stepping:
            node = adapter.catalog.node("loss", "loss", "Loss", phase="loss")
            adapter.listener.at_node(Place(node, "loss", "after", "module"))

    # ── the update ────────────────────────────────────────────────────────────────────────────────────────────

    def _before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> Any:
        if is_compiling():
            return None
        adapter = self.adapter
        if adapter.inert or adapter.replaying or self.elsewhere():
            return None
        adapter.clock.own()
        self.by_hand.pending = False
        adapter.tape.pause()
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        try:
            if self.stepped and optimizer in self.stepped:
                self.loop.ends_here()
                self.close()
            elif self.stepped and self.backwards:
                self.close(sys._getframe(1))
            if not adapter.live:
                adapter.go_live()
            if id(optimizer) not in self._known:
                self._known[id(optimizer)] = weakref.ref(optimizer)
                adapter.names.discover(parameters_of(optimizer), sys._getframe(1))
                self._tell_initial(optimizer)
            if closure is None:
                self._gradients_ready(optimizer)
        except TrainingStopped:
            raise
        except Exception as error:
            adapter.listener.trouble("before an update", error)
            closure = None
        adapter.clock.back(segments.OPTIMIZER)
        if closure is None:
            return None
        watched = self._watched(closure, optimizer)
        if len(args) > 1:
            return (args[0], watched, *args[2:]), kwargs
        return args, {**kwargs, "closure": watched}

    def _watched(self, closure: Callable[[], Any], optimizer: torch.optim.Optimizer) -> Callable[[], Any]:
        """The forward and backward of this step run inside the closure, after our hook; the first call counts."""
        adapter = self.adapter
        done = False

        def watched() -> Any:
            nonlocal done
            adapter.updating = None
            result = closure()
            if not done:
                done = True
                adapter.clock.own()
                adapter.guarded("before an update", self._gradients_ready, optimizer)
                adapter.clock.back(segments.OPTIMIZER)
            adapter.updating = adapter.names.optimizer(optimizer)
            return result

        return watched

    def _gradients_ready(self, optimizer: torch.optim.Optimizer) -> None:
        adapter = self.adapter
        start = perf_counter_ns()
        tape = adapter.tape
        if tape.armed:
            tape.pause()
            tape.gradients_ready()
            if not adapter.in_backward and adapter.level != "op":
                adapter.held_weights.hold(optimizer)
            adapter.moving = {id(weight) for weight in parameters_of(optimizer)}
        elif adapter.moving:
            adapter.moving = set()
        if adapter.level != "off":
            self.gradient_rows([weight for weight in parameters_of(optimizer) if weight.grad is not None])
        adapter.cost_ns += perf_counter_ns() - start
        adapter.listener.before_update(adapter)
        node = adapter.names.optimizer(optimizer, sys._getframe())
        if adapter.listener.stepping:
            adapter.listener.at_node(Place(node, "optimizer", "before", "optimizer"))
        adapter.cells[PHASE] = OPTIMIZER
        adapter.updating = node

    def updated_by_hand(self, weights: list[torch.Tensor], how: str = BY_HAND) -> None:
        """Weights that no optimizer holds have moved since backward."""
        adapter = self.adapter
        start = perf_counter_ns()
        if adapter.level in ("module", "op"):
            adapter.parameter_rows("param", weights, weights)
        elif adapter.level == "guard":
            bad = [weights[place] for place in tensors.nonfinite(weights)]
            adapter.parameter_rows("param", bad, bad)
        adapter.search = None
        adapter.cost_ns += perf_counter_ns() - start
        adapter.listener.after_update(adapter)
        adapter.tape.window_ends(carry=False)
        self.backwards = 0
        self.finish(optimizer_name=how)

    def gradient_rows(self, weights: list[torch.Tensor]) -> None:
        """Of these weights, all of which have a gradient; under the guard, of those whose gradient is bad."""
        adapter = self.adapter
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        if adapter.level in ("module", "op"):
            adapter.parameter_rows("grad", weights, gradients)
        elif adapter.level == "guard":
            bad = tensors.nonfinite(gradients)
            adapter.parameter_rows("grad", [weights[place] for place in bad], [gradients[place] for place in bad])

    def _after_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        adapter = self.adapter
        if adapter.inert or adapter.replaying or self.elsewhere():
            return
        adapter.updating = None
        adapter.cells[PHASE] = BETWEEN
        adapter.clock.own()
        adapter.clock.settle()
        adapter.guarded("after an update", self._updated, optimizer)
        adapter.clock.back(segments.BACKWARD if adapter.in_backward else segments.GAP)

    def _updated(self, optimizer: torch.optim.Optimizer) -> None:
        adapter = self.adapter
        start = perf_counter_ns()
        if adapter.level != "off":
            weights = list(parameters_of(optimizer))
            if adapter.level in CLOSE:
                adapter.parameter_rows("param", weights, weights)
            else:
                bad = [weights[place] for place in tensors.nonfinite(weights)]
                adapter.parameter_rows("param", bad, bad)
        self.stepped.append(optimizer)
        if not self._alone():
            self.loop.stepped(sys._getframe(1))
        adapter.cost_ns += perf_counter_ns() - start
        adapter.search = None
        adapter.listener.after_update(adapter)
        if adapter.tape.armed:
            adapter.tape.window_ends(carry=self._may_share_forward())
        if adapter.listener.stepping:
            adapter.listener.at_node(Place(adapter.names.optimizer(optimizer), "optimizer", "after", "optimizer"))
        self.backwards = 0
        # An optimizer that steps inside backward is one of many, each with a parameter of its own.
        if not adapter.in_backward and self._alone():
            self.finish()

    def _alone(self) -> bool:
        """Whether the program has one optimizer, as far as anybody knows."""
        return self.by_hand.optimizers <= 1 and (len(self._known) == 1 or sum(1 for _ in self.optimizers()) == 1)

    def _may_share_forward(self) -> bool:
        """Whether a forward before this update may be trained by another optimizer after it. At first nobody knows."""
        return not self.adapter.in_backward and (len(self._known) > 1 or self.adapter.listener.step <= 2)

    def skipped(self, optimizer: torch.optim.Optimizer) -> None:
        """A gradient scaler found an overflow and left out the update."""
        self.close()
        self.adapter.go_live()
        self.stepped.append(optimizer)
        self.finish(overflow=True)

    # ── ends ──────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self, frame: FrameType | None = None) -> None:
        """With several optimizers a step ends when a forward or backward begins, in this frame, in another pass of the
        user's loop."""
        if self.stepped:
            if frame is not None and self.loop.goes_on(frame):
                return
            left_behind(self)
            self.finish()
        elif self.by_hand.pending:
            self.by_hand.close()
        elif self.functional.pending:
            self.functional.close()

    def leave(self, *, ends: bool = False) -> None:
        """Another forward begins, or the program `ends`, without an update."""
        leave(self, ends=ends)

    def finish(self, *, overflow: bool = False, left: bool = False, optimizer_name: str = "") -> None:
        adapter = self.adapter
        optimizer = self.stepped[-1] if self.stepped else None
        self.stepped.clear()
        goes_on_with = adapter.clock.own()
        start = perf_counter_ns()
        with adapter.quietly():
            adapter.seer.fetch()
            losses = self.losses.numbers()
            rate = None if optimizer is None else number(optimizer.param_groups[0].get("lr"))
            scale = None if self.scaler is None else float(self.scaler.get_scale())
        self.losses.clear()
        update = Update(
            losses[-1] if losses else None,
            losses if len(losses) > 1 else (),
            rate,
            optimizer_name if optimizer is None else type(optimizer).__name__,
            loss_scale=scale,
            overflow=overflow,
            left=left,
        )
        self.backwards = 0
        adapter.network_ran = False
        adapter.cost_ns += perf_counter_ns() - start
        try:
            adapter.listener.step_done(adapter, update)
        finally:
            adapter.begin_step()
            if overflow or left:
                adapter.tape.window_ends(carry=False)
            adapter.clock.back(goes_on_with)

    def _tell_initial(self, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Step 0: the weights as they are before anything moved them."""
        adapter, catalog = self.adapter, self.adapter.catalog
        weights = list(parameters_of(optimizer)) if optimizer is not None else list(adapter.all_weights())
        weights = [weight for weight in weights if id(weight) not in self._initial]
        if not weights or adapter.level not in CLOSE:
            return
        self._initial_told = True
        self._initial.update(id(weight) for weight in weights)
        frame = Frame(capacity=max(1, len(weights)))
        frame.begin(0)
        seer = tensors.Seer(catalog, frame, {})
        numbers = [
            catalog.tensor(catalog.node(adapter.names.parameter(weight), "parameter", "Parameter"), "param")
            for weight in weights
        ]
        seer.many(numbers, weights, [None] * len(weights))
        seer.fetch()
        adapter.listener.initial(adapter, frame)

    def elsewhere(self) -> bool:
        """Another thread than the one that trains."""
        return self.adapter.thread not in (0, get_ident())


def parameters_of(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]
