"""Where a step of PyTorch training begins and ends.

    torch.autograd.backward              the loss, and when backward runs
    optimizer step hooks (global)        gradients before the update, weights after it
    GradScaler._maybe_opt_step           updates that a gradient scaler skips

A step is one update. Several optimizers that step after one backward share a step; one optimizer stepping twice, or
another backward in between, begins the next. With a single optimizer the step ends with its update; with several, when
the next forward or backward begins.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from threading import get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from misstep.adapters.base import Place, TrainingStopped, Update
from misstep.adapters.frame import Frame
from misstep.adapters.pytorch import tensors
from misstep.core.cells import BACKWARD, BETWEEN, OPTIMIZER, PHASE

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter


class StepSeam:
    """Stands in for backward and beside every optimizer while attached."""

    def __init__(self, adapter: PyTorchAdapter) -> None:
        self.adapter = adapter
        self.plain_backward: Callable[..., Any] = torch.autograd.backward
        self.stepped: list[torch.optim.Optimizer] = []
        """The optimizers that have updated their weights in the step under way."""
        self._known: dict[int, weakref.ref[torch.optim.Optimizer]] = {}
        self._losses: list[torch.Tensor] = []
        self._backwards = 0
        """Since the last update."""
        self._scaler: Any = None
        self._initial_told = False
        self._initial: set[int] = set()
        """Ids of the weights told of at step 0."""

    def install(self) -> list[Callable[[], None]]:
        """Put the seams in; what is returned takes them out."""
        return [
            self._patch_backward(),
            self._patch_scaler(),
            register_optimizer_step_pre_hook(self._before_step).remove,
            register_optimizer_step_post_hook(self._after_step).remove,
        ]

    def forget(self) -> None:
        """Nothing of the step under way counts any more."""
        self._losses.clear()
        self.stepped.clear()

    def optimizers(self) -> Iterator[torch.optim.Optimizer]:
        for ref in self._known.values():
            optimizer = ref()
            if optimizer is not None:
                yield optimizer

    def network_called(self, module: torch.nn.Module) -> None:
        """A network begins to run: before the first one moves its weights, they are told of as step 0."""
        if self.adapter.live and not self._initial_told and next(module.parameters(), None) is not None:
            self._tell_initial()

    # ── backward ──────────────────────────────────────────────────────────────────────────────────────────────

    def _patch_backward(self) -> Callable[[], None]:
        adapter = self.adapter
        original = self.plain_backward = torch.autograd.backward

        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if adapter.inert or adapter.in_backward or adapter.replaying or self._elsewhere():
                return original(tensors, *args, **kwargs)
            caller = sys._getframe(1)
            adapter.guarded("at backward", lambda: self._backward_begins(tensors))
            adapter.guarded("at backward", lambda: adapter.tape.backward_begins(tensors, args, kwargs, caller))
            adapter.in_backward = True
            adapter.cells[PHASE] = BACKWARD
            try:
                result = original(tensors, *args, **kwargs)
                adapter.cells[PHASE] = BETWEEN
                adapter.guarded("after backward", adapter.tape.backward_ends)
                adapter.guarded("after backward", adapter.modules.backward_ends)
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

    def _backward_begins(self, losses: Any) -> None:
        adapter = self.adapter
        start = perf_counter_ns()
        self.close()
        adapter.go_live()
        self._backwards += 1
        for loss in tensors.leaves(losses):
            self._losses.append(loss.detach())
            adapter.loss_row(loss, len(self._losses))
        adapter.cost_ns += perf_counter_ns() - start
        if adapter.listener.stepping:
            node = adapter.catalog.node("loss", "loss", "Loss", phase="loss")
            adapter.listener.at_node(Place(node, "loss", "after", "module"))

    # ── the update ────────────────────────────────────────────────────────────────────────────────────────────

    def _before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> Any:
        adapter = self.adapter
        if adapter.inert or adapter.replaying or self._elsewhere():
            return None
        adapter.tape.pause()
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        try:
            if self.stepped and (optimizer in self.stepped or self._backwards):
                self.close()
            adapter.go_live()
            if id(optimizer) not in self._known:
                self._known[id(optimizer)] = weakref.ref(optimizer)
                adapter.names.discover(parameters_of(optimizer), sys._getframe(1))
                self._tell_initial(optimizer)
            if closure is None:
                self._gradients_ready(optimizer)
                return None
        except TrainingStopped:
            raise
        except Exception as error:
            adapter.listener.trouble("before an update", error)
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
                adapter.guarded("before an update", lambda: self._gradients_ready(optimizer))
            adapter.updating = adapter.names.optimizer(optimizer)
            return result

        return watched

    def _gradients_ready(self, optimizer: torch.optim.Optimizer) -> None:
        adapter = self.adapter
        start = perf_counter_ns()
        adapter.tape.pause()
        adapter.tape.gradients_ready()
        if adapter.tape.armed and not adapter.in_backward:
            adapter.held_weights.hold(optimizer)
        adapter.moving = {id(weight) for weight in parameters_of(optimizer)} if adapter.tape.armed else set()
        weights = [weight for weight in parameters_of(optimizer) if weight.grad is not None]
        gradients: list[torch.Tensor] = [weight.grad for weight in weights]
        if adapter.level in ("module", "op"):
            adapter.parameter_rows("grad", weights, gradients)
        elif adapter.level == "guard":
            bad = tensors.nonfinite(gradients)
            adapter.parameter_rows("grad", [weights[place] for place in bad], [gradients[place] for place in bad])
        adapter.cost_ns += perf_counter_ns() - start
        adapter.listener.before_update(adapter)
        node = adapter.names.optimizer(optimizer, sys._getframe())
        if adapter.listener.stepping:
            adapter.listener.at_node(Place(node, "optimizer", "before", "optimizer"))
        adapter.cells[PHASE] = OPTIMIZER
        adapter.updating = node

    def _after_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        adapter = self.adapter
        if adapter.inert or adapter.replaying or self._elsewhere():
            return
        adapter.updating = None
        adapter.cells[PHASE] = BETWEEN
        adapter.guarded("after an update", lambda: self._updated(optimizer))

    def _updated(self, optimizer: torch.optim.Optimizer) -> None:
        adapter = self.adapter
        start = perf_counter_ns()
        weights = list(parameters_of(optimizer))
        if adapter.level in ("module", "op"):
            adapter.parameter_rows("param", weights, weights)
        elif adapter.level == "guard":
            bad = [weights[place] for place in tensors.nonfinite(weights)]
            adapter.parameter_rows("param", bad, bad)
        self.stepped.append(optimizer)
        adapter.cost_ns += perf_counter_ns() - start
        adapter.search = None
        adapter.listener.after_update(adapter)
        adapter.tape.window_ends(carry=self._may_share_forward())
        if adapter.listener.stepping:
            adapter.listener.at_node(Place(adapter.names.optimizer(optimizer), "optimizer", "after", "optimizer"))
        self._backwards = 0
        # An optimizer that steps inside backward is one of many, each with a parameter of its own.
        if sum(1 for _ in self.optimizers()) == 1 and not adapter.in_backward:
            self._finish()

    def _may_share_forward(self) -> bool:
        """Whether a forward before this update may be trained by another optimizer after it. At first nobody knows."""
        return not self.adapter.in_backward and (len(self._known) > 1 or self.adapter.listener.step <= 2)

    def _patch_scaler(self) -> Callable[[], None]:
        from torch.amp.grad_scaler import GradScaler

        original = GradScaler._maybe_opt_step

        def _maybe_opt_step(scaler: Any, optimizer: Any, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
            self._scaler = scaler
            found = not self.adapter.inert and bool(sum(one.item() for one in state["found_inf_per_device"].values()))
            result = original(scaler, optimizer, state, *args, **kwargs)
            if found:
                self.adapter.guarded("at a skipped update", lambda: self._skipped(optimizer))
            return result

        GradScaler._maybe_opt_step = _maybe_opt_step

        def undo() -> None:
            if GradScaler._maybe_opt_step is _maybe_opt_step:
                GradScaler._maybe_opt_step = original

        return undo

    def _skipped(self, optimizer: torch.optim.Optimizer) -> None:
        self.close()
        self.adapter.go_live()
        self.stepped.append(optimizer)
        self._finish(overflow=True)

    # ── ends ──────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """With several optimizers a step ends when the next forward or backward begins."""
        if self.stepped:
            self._finish()

    def _finish(self, *, overflow: bool = False) -> None:
        adapter = self.adapter
        optimizer = self.stepped[-1] if self.stepped else None
        self.stepped.clear()
        start = perf_counter_ns()
        with adapter.quietly():
            adapter.seer.fetch()
            losses = tuple(_number(loss) for loss in self._losses)
            self._losses.clear()
            update = Update(
                loss=losses[-1] if losses else None,
                losses=losses if len(losses) > 1 else (),
                learning_rate=None if optimizer is None else _number(optimizer.param_groups[0].get("lr")),
                optimizer="" if optimizer is None else type(optimizer).__name__,
                loss_scale=None if self._scaler is None else float(self._scaler.get_scale()),
                overflow=overflow,
            )
        adapter.network_ran = False
        adapter.cost_ns += perf_counter_ns() - start
        try:
            adapter.listener.step_done(adapter, update)
        finally:
            adapter.begin_step()
            if overflow:
                adapter.tape.window_ends(carry=False)

    def _tell_initial(self, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Step 0: the weights as they are before anything moved them."""
        adapter, catalog = self.adapter, self.adapter.catalog
        weights = list(parameters_of(optimizer)) if optimizer is not None else list(adapter.all_weights())
        weights = [weight for weight in weights if id(weight) not in self._initial]
        if not weights or adapter.level not in ("module", "op"):
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

    def _elsewhere(self) -> bool:
        """Another thread than the one that trains."""
        return self.adapter.thread not in (0, get_ident())


def parameters_of(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _number(value: Any) -> Any:
    """A loss or rate as a float; a loss that is no scalar counts as its mean."""
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            return float(value.item() if value.numel() == 1 else value.float().mean().item())
    return None if value is None else float(value)
