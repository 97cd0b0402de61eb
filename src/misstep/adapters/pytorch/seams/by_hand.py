"""Training without an optimizer of torch: weights moved by hand, by another library's optimizer, or through `.data`.

The rule is simple: a backward, and after it weights that have changed when the next forward or backward begins, are a
step. Gradients are checked as soon as backward ends, because nothing announces the update; the weights are checked
when the step is found.

    backward ends ─► gradients checked ─► … the program moves its weights … ─► next forward begins: moved? a step
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter_ns
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from misstep.adapters.pytorch.tensors import digests, leaves, nonfinite

if TYPE_CHECKING:
    from misstep.adapters.pytorch.seams.steps import StepSeam

NAME = "by hand"
"""What a step's record says where an optimizer's type would stand."""
_SURE_AFTER = 3
"""Steps found by version counters alone after which values are no longer compared."""
_LOOK_AGAIN = 100
"""Backwards after which the graph is searched for weights that no network holds."""
_MOST_NODES = 100_000


class UpdatesByHand:
    """Finds the steps of a program in which no torch optimizer holds the weights."""

    def __init__(self, seam: StepSeam) -> None:
        self.seam = seam
        self.pending = False
        """Gradients were computed, and the weights have not been seen to move since."""
        self._optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._counted = 0
        self._made = 0
        """Optimizers made so far, dead ones included."""
        self._searched = False
        self._judged: tuple[int, int] | None = None
        self._by_hand = False
        self._bare: list[weakref.ref[torch.Tensor]] = []
        """Weights that belong to no network."""
        self._backwards = 0
        self._watched: list[tuple[weakref.ref[torch.Tensor], int]] = []
        self._digests: list[int] = []
        self._sure = 0

    def install(self) -> list[Callable[[], None]]:
        """Put the seams in; what is returned takes them out."""
        return [self._patch_optimizers(), self._patch_grad()]

    def _patch_optimizers(self) -> Callable[[], None]:
        """Notice every optimizer that is made."""
        original = torch.optim.Optimizer.__init__
        by_hand = self

        def __init__(optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            by_hand.optimizer_made(optimizer)

        plain_zero, adapter = torch.optim.Optimizer.zero_grad, self.seam.adapter

        def zero_grad(optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
            """It looks at every gradient: nothing for whoever listens to functions."""
            if torch.compiler.is_compiling() or not adapter.tape.prelude.on:
                return plain_zero(optimizer, *args, **kwargs)
            with adapter.tape.prelude.inside():
                return plain_zero(optimizer, *args, **kwargs)

        torch.optim.Optimizer.__init__ = __init__  # type: ignore[assignment]
        torch.optim.Optimizer.zero_grad = zero_grad  # type: ignore[assignment]

        def undo() -> None:
            if torch.optim.Optimizer.__init__ is __init__:
                torch.optim.Optimizer.__init__ = original
            if torch.optim.Optimizer.zero_grad is zero_grad:
                torch.optim.Optimizer.zero_grad = plain_zero

        return undo

    def _patch_grad(self) -> Callable[[], None]:
        """`torch.autograd.grad` with respect to weights is a backward whose gradients go to the caller."""
        seam = self.seam
        adapter = seam.adapter
        original = torch.autograd.grad

        def grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(outputs, inputs, *args, **kwargs)
            weights = list(leaves(inputs))
            if (
                adapter.inert
                or adapter.in_backward
                or adapter.replaying
                or seam.elsewhere()
                or kwargs.get("create_graph")
                or not all(weight.is_leaf and isinstance(weight, torch.nn.Parameter) for weight in weights)
            ):
                return original(outputs, inputs, *args, **kwargs)
            caller = sys._getframe(1)
            adapter.guarded("at backward", lambda: seam.backward_begins(outputs))
            adapter.guarded("at backward", lambda: adapter.tape.backward_begins(outputs, (), {}, caller))
            adapter.in_backward = True
            try:
                result = original(outputs, inputs, *args, **kwargs)
            finally:
                adapter.in_backward = False
            if not self.holds(weights):
                pairs = [(weight, one) for weight, one in zip(weights, result) if one is not None]
                adapter.guarded(
                    "after backward",
                    lambda: self.gradients_ready([one for one, _ in pairs], [one for _, one in pairs]),
                )
            return result

        torch.autograd.grad = grad

        def undo() -> None:
            if torch.autograd.grad is grad:
                torch.autograd.grad = original

        return undo

    def optimizer_made(self, optimizer: torch.optim.Optimizer) -> None:
        self._made += 1
        self._optimizers.add(optimizer)

    @property
    def optimizers(self) -> int:
        """How many there are now, whether they have stepped or not."""
        count = len(self._optimizers)
        if count > 1 and count != self._counted:
            # One that was thrown away lives on until its cycles are collected, and would hold the end of a step back.
            gc.collect()
            count = self._counted = len(self._optimizers)
        return count

    def forget(self) -> None:
        self.pending = False
        self._watched = []

    # ── after backward ────────────────────────────────────────────────────────────────────────────────────────

    def backward_ended(self, losses: Any, frame: FrameType | None) -> None:
        """Check the gradients that a backward left on weights no optimizer holds."""
        if self._is_by_hand(losses, frame):
            weights = [weight for weight in self._weights() if weight.grad is not None]
            self.gradients_ready(weights, [weight.grad for weight in weights])

    def gradients_ready(self, weights: list[torch.Tensor], gradients: list[Any]) -> None:
        """These gradients are complete, as far as anybody can know; remember the weights they belong to."""
        if not weights:
            return
        first = not self.pending
        self.pending = True
        self._watched = [(weakref.ref(weight), weight._version) for weight in weights]
        self._digests = digests(weights) if self._sure < _SURE_AFTER else []
        self._check(weights, gradients, first=first)

    def _check(self, weights: list[torch.Tensor], gradients: list[torch.Tensor], *, first: bool) -> None:
        """Gradients of weights that no optimizer holds; `first` in the step."""
        adapter = self.seam.adapter
        start = perf_counter_ns()
        adapter.tape.gradients_ready()
        adapter.moving = {id(weight) for weight in weights} if adapter.tape.armed else set()
        bad = nonfinite(gradients) if adapter.level != "off" else []
        if first and adapter.level in ("module", "op"):
            adapter.parameter_rows("grad", weights, gradients)
        elif bad:
            adapter.parameter_rows("grad", [weights[place] for place in bad], [gradients[place] for place in bad])
        adapter.cost_ns += perf_counter_ns() - start
        adapter.listener.before_update(adapter)
        if adapter.tape.from_step:
            adapter.tape.listen()  # without networks, the first function that reads a weight begins the next step

    def holds(self, weights: Iterable[torch.Tensor]) -> bool:
        """Whether an optimizer of torch holds one of these."""
        held = {
            id(one) for optimizer in self._optimizers for group in optimizer.param_groups for one in group["params"]
        }
        return any(id(weight) in held for weight in weights)

    def _is_by_hand(self, losses: Any, frame: FrameType | None) -> bool:
        """Judged anew when an optimizer or a network has come, and now and then."""
        self._backwards += 1
        state = (self._made, len(self.seam.adapter.names.roots))
        if state == self._judged and (not self._by_hand or self._backwards % _LOOK_AGAIN):
            return self._by_hand
        self._judged = state
        known = {id(weight) for weight in self.seam.adapter.all_weights()}
        found = list(_leaves_below(losses))
        if not self._searched and found and not self.holds(found):
            self._searched = True  # one that was made before misstep was attached
            for thing in gc.get_objects():
                if issubclass(type(thing), torch.optim.Optimizer):  # some classes run code when asked by isinstance
                    self._optimizers.add(thing)
        self._by_hand = bool(found) and not self.holds(found)
        if self._by_hand:
            bare = [weight for weight in found if id(weight) not in known]
            self.seam.adapter.names.discover(bare, frame)
            self._bare = [weakref.ref(weight) for weight in bare]
        return self._by_hand

    def _weights(self) -> Iterator[torch.Tensor]:
        seen: set[int] = set()
        alive = (one for ref in self._bare if (one := ref()) is not None)
        for weight in (*self.seam.adapter.all_weights(), *alive):
            if weight.requires_grad and id(weight) not in seen:
                seen.add(id(weight))
                yield weight

    # ── the next forward or backward ──────────────────────────────────────────────────────────────────────────

    def reads_a_weight(self, args: Any) -> bool:
        """Whether a function called now, with gradients on, begins the next forward."""
        if not self.pending or not torch.is_grad_enabled():
            return False
        return any(tensor.requires_grad and tensor.is_leaf for tensor in leaves(args))

    def close(self) -> None:
        """End the step under way if its weights have moved since backward."""
        if not self.pending:
            return
        weights = [weight for ref, _ in self._watched if (weight := ref()) is not None]
        by_version = any(
            weight is None or weight._version != version for ref, version in self._watched for weight in [ref()]
        )
        if not by_version and not (self._digests and digests(weights) != self._digests):
            return
        self._sure = self._sure + 1 if by_version else -(2**31)  # moved through `.data` once: compare values for good
        self.pending = False
        self._watched = []
        self.seam.updated_by_hand(weights)


def _leaves_below(losses: Any) -> Iterator[torch.Tensor]:
    """Every tensor whose gradient a backward from these losses computes."""
    waiting = [loss.grad_fn for loss in leaves(losses) if loss.grad_fn is not None]
    seen = set(waiting)
    while waiting and len(seen) < _MOST_NODES:
        node = waiting.pop()
        variable = getattr(node, "variable", None)
        if variable is not None:
            yield variable
        for below, _ in node.next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                waiting.append(below)
