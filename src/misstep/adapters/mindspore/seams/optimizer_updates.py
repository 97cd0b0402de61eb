"""Where a step of MindSpore training ends: an optimizer is called, or a loss scale skips the call.

A step is one update. Several optimizers called in one pass of the user's loop share a step (passes.py); one that is
called twice begins the next. With a single optimizer the step ends with its update; with several, or while there are
gradients that nobody was given yet, when a forward begins in the next pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from mindspore import nn
from mindspore.amp import LossScaler

from misstep.adapters.base import Place, Update
from misstep.adapters.mindspore import tensors
from misstep.adapters.mindspore.functions import held_by
from misstep.adapters.mindspore.names import learning_rate
from misstep.adapters.mindspore.replay.tape import of_weights
from misstep.adapters.mindspore.replay.update_replay import HeldUpdate, run_again
from misstep.adapters.mindspore.seams.by_hand import NAME as BY_HAND
from misstep.adapters.mindspore.seams.by_hand import UpdatesByHand
from misstep.adapters.step.passes import Pass
from misstep.core import segments
from misstep.core.cells import BETWEEN, OPTIMIZER, PHASE

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter


class Updates:
    """The losses, gradients and optimizers of the step under way."""

    def __init__(self, adapter: MindSporeAdapter, *, rerun: bool = False) -> None:
        self.adapter = adapter
        self.rerun = rerun
        """These are the updates of a replay: what is missing from it is not news."""
        self.losses: list[Any] = []
        """As tensors: to read one is to wait for it."""
        self.owed: list[Any] = []
        """Losses of compiled code that nobody has waited for yet; they have no row."""
        self.gradients: dict[int, Any] = {}
        """By id of a parameter."""
        self.stepped: list[nn.Cell] = []
        """Optimizers that have updated their weights in this step."""
        self.loop = Pass()
        self._judged = 0
        """Losses of this step that an update has followed."""
        self._awaiting: set[int] = set()
        """Weights, by id, whose gradients are there and no optimizer was given yet."""
        self._idle: set[int] = set()
        """Weights that are differentiated and never updated."""
        self.loss_scale: float | None = None
        self.scaler: Any = None
        """MindSpore's own loss scale, where a functional loop uses one."""
        self.held = HeldUpdate()
        self._scale_before: float | None = None
        self._overflowed = False
        """Gradients that came out of the last backward, in a loop with a loss scale, hold NaN or Inf."""
        self._rate: float | None = None
        self.by_hand = UpdatesByHand(self)

    # ── losses ────────────────────────────────────────────────────────────────────────────────────────────────

    def tell_loss(self, result: Any) -> None:
        adapter = self.adapter
        adapter.go_live()
        for loss in tensors.leaves(result)[:1]:
            self.losses.append(loss)
            if adapter.level != "off":
                adapter.flow.loss(loss)

    def owe_loss(self, result: Any) -> None:
        """The loss of a graph that may still be running: told once its gradients are there."""
        self.adapter.go_live()
        self.owed.append(result)

    def loss_so_far(self) -> float | None:
        return tensors.number(self.losses[-1]) if self.losses else None

    def differentiated(self, weights: Any) -> None:
        """Backward gives gradients of these weights."""
        self._awaiting.update(id(weight) for weight in tensors.leaves(weights))
        self._awaiting -= self._idle

    def arrived(self, gradients: Any, weights: Any) -> None:
        """Backward is over. A loop with a loss scale looks at its gradients next, so nobody waits for us."""
        if self.scaler is not None and weights is not None and self.adapter.level != "off":
            self._overflowed = bool(self.adapter.flow.bad_only(of_weights(gradients, weights)))
        if weights is not None and not self.rerun:
            self.differentiated_by_hand(tensors.leaves(weights), of_weights(gradients, weights))

    def differentiated_by_hand(self, weights: Sequence[Any], gradients: Sequence[Any]) -> None:
        """Gradients of weights that no optimizer holds: nothing will announce their update, so they are judged now."""
        adapter = self.adapter
        found = self.by_hand.unheld(weights)
        if not found or self.scaler is not None:
            return
        adapter.go_live()
        adapter.tell_initial()
        self._read_what_passed(gradients)
        adapter.tape.learn()
        self._tell_gradients(list(zip(found, gradients)))
        self.by_hand.gradients_ready(found)
        adapter.listener.before_update(adapter)

    def moved_inside(self, weights: list[Any], loss: Any) -> None:
        """Compiled code without an optimizer has moved these weights: that was a whole step."""
        adapter = self.adapter
        adapter.go_live()
        if loss is not None:
            self.tell_loss(loss)
        adapter.listener.before_update(adapter)
        self._tell_weights(weights)
        adapter.listener.after_update(adapter)
        self._finish(by_hand=True)

    def close_by_hand(self) -> None:
        """A forward begins, or the program ends: have weights moved that no optimizer holds?"""
        adapter = self.adapter
        with adapter.guarded("at the end of a step"):
            moved = self.by_hand.moved()
            if moved:
                self._tell_weights(moved)
                adapter.listener.after_update(adapter)
                self._finish(by_hand=True)

    # ── one update ────────────────────────────────────────────────────────────────────────────────────────────

    def update(self, run: Callable[[], Any], optimizer: nn.Cell, gradients: Any, frame: FrameType) -> Any:
        """A call of an optimizer."""
        adapter = self.adapter
        adapter.clock.own()
        with adapter.guarded("before an update"):
            self.before(optimizer, tensors.leaves(gradients), frame)
            if adapter.tape.armed or adapter.level == "op":
                self.held.hold(optimizer, tensors.leaves(gradients), run, at_any_cost=adapter.level == "op")
        adapter.clock.back(segments.OPTIMIZER)
        adapter.cells[PHASE] = OPTIMIZER
        result = adapter.undisturbed(run)
        adapter.cells[PHASE] = BETWEEN
        adapter.clock.own()
        adapter.clock.settle()
        self.after([optimizer], frame)
        adapter.clock.back(segments.GAP)
        return result

    def before(self, optimizer: nn.Cell, gradients: Sequence[Any], frame: FrameType, *, whole: bool = False) -> None:
        """`whole`: compiled together with the step, which has not run yet."""
        if any(optimizer is one for one in self.stepped):
            self.loop.ends_here()
            self.close()
        adapter = self.adapter
        node = adapter.names.optimizer(optimizer, frame)
        adapter.go_live()
        adapter.tell_initial()
        self._read_what_passed(gradients)
        adapter.tape.learn()
        self._tell_gradients(list(zip(optimizer.parameters, gradients)))
        rate = tensors.number(learning_rate(optimizer))
        self._rate = rate if self._rate is None else self._rate
        adapter.compare_with_rehearsal()
        if adapter.listener.stepping and not whole:
            adapter.listener.at_node(Place(node, "optimizer", "before", "optimizer"))
        adapter.listener.before_update(adapter)

    def after(self, optimizers: Sequence[nn.Cell], frame: FrameType, *, whole: bool = False) -> None:
        """Weights have moved; `whole`: nothing more can belong to this step."""
        adapter = self.adapter
        with adapter.guarded("after an update"):
            adapter.flow.settle()
            weights = self._tell_weights([weight for one in optimizers for weight in one.parameters])
            if adapter.walking or (adapter.listener.stepping and not whole):
                node = adapter.names.optimizer(optimizers[0])
                adapter.listener.at_node(Place(node, "optimizer", "after", "optimizer"))
            adapter.listener.after_update(adapter)
            if adapter.replayed is not None and adapter.traits.seen_too_late:
                self._weights(weights)  # the replay took the place of these rows
            adapter.tape.clear()
            self.held.let_go()
        self.stepped.extend(optimizers)
        self._judged = len(self.losses)
        self.loop.stepped(frame)
        self._awaiting.difference_update(id(weight) for one in optimizers for weight in one.parameters)
        alone = not adapter.seams.several_optimizers() and sum(1 for _ in adapter.names.optimizers()) <= 1
        if whole or (alone and not self._awaiting):
            self.close()

    def skip(self, optimizer: nn.Cell | None, scale: float | None) -> None:
        """A loss scale found an overflow and did not call the optimizer."""
        adapter = self.adapter
        self.close()
        with adapter.guarded("at a skipped update"):
            self._read_what_passed(())
            self.stepped.extend([] if optimizer is None else [optimizer])
            self.loss_scale = scale
            self._finish(overflow=True)

    def forward_begins(self, function: Any, frame: FrameType) -> None:
        """A function with a loss scale in it: gradients that nobody updated with, and that overflowed, were skipped.

        The scaler's own methods are compiled in graph mode, so they are no place to listen.
        """
        self.close(frame)
        self._skip_if_overflowed()
        self.leave()
        self.scaler = scaler_of(function) or self.scaler
        if self.scaler is not None and not self.losses:
            self._scale_before = tensors.number(self.scaler.scale_value)

    def _skip_if_overflowed(self) -> None:
        """Gradients that no optimizer was given, of a loop with a loss scale: were they left out for an overflow?"""
        if self.scaler is not None and self._overflowed and not self.stepped:
            self.skip(next(self.adapter.names.optimizers(), None), None)
            self._scale_before = tensors.number(self.scaler.scale_value)

    def leave(self, *, ends: bool = False) -> None:
        """Another forward begins, or the program `ends`, without an update: a bad step is told of as it is.

        Several forwards may share an update, so nothing is said of a finite one before the end.
        """
        adapter = self.adapter
        if ends:
            self.close()
            self._skip_if_overflowed()
        if self.rerun or adapter.level == "off" or self.stepped or not (self.losses or ends):
            return
        with adapter.guarded("at a step without an update"):
            if ends:
                self._read_what_passed(())
            bad = bool(adapter.flow.bad_only(self.losses))
            adapter.flow.settle()
            if bad or (ends and (self.losses or not adapter.listener.frame.all_finite)):
                adapter.listener.before_update(adapter)
                self._finish(left=True)

    def close(self, frame: FrameType | None = None) -> None:
        """With several optimizers a step ends when a forward begins, in this frame, in another pass of the user's
        loop."""
        if self.by_hand.pending:
            self.close_by_hand()
        if not self.stepped or (frame is not None and self.loop.goes_on(frame)):
            return
        adapter = self.adapter
        with adapter.guarded("at the end of a step"):
            if adapter.level != "off" and adapter.flow.bad_only(self.losses[self._judged :]):
                adapter.listener.before_update(adapter)  # the loss of one more update, which was left out
            self._finish()

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────

    def _tell_gradients(self, pairs: list[tuple[Any, Any]]) -> None:
        """Rows for (weight, gradient) pairs; under the guard, for those that are bad."""
        adapter = self.adapter
        self.gradients.update({id(parameter): gradient for parameter, gradient in pairs})
        if adapter.level == "guard":
            bad = adapter.flow.bad_only([gradient for _, gradient in pairs])
            pairs = [pair for place, pair in enumerate(pairs) if place in bad]
        if adapter.level != "off":
            named = [(adapter.names.parameter(parameter), parameter, gradient) for parameter, gradient in pairs]
            adapter.flow.gradients((name, *pair, adapter.names.users(name)) for name, *pair in named)

    def _tell_weights(self, weights: list[Any]) -> list[Any]:
        """Rows for weights that have moved; under the guard, for those that are bad. The weights that got one."""
        adapter = self.adapter
        if adapter.level == "guard":
            bad = adapter.flow.bad_only(weights)
            weights = [weight for place, weight in enumerate(weights) if place in bad]
        self._weights(weights, watched=adapter.level == "op" and self._see_operators(weights))
        return weights

    def _weights(self, weights: Sequence[Any], *, watched: bool = False) -> None:
        adapter = self.adapter
        if adapter.level != "off":
            adapter.flow.weights(((adapter.names.parameter(weight), weight) for weight in weights), watched=watched)

    def _see_operators(self, weights: Sequence[Any]) -> bool:
        """Rows for the operators of an update that wrote something bad: it is compiled, and nobody saw them."""
        if self.held.optimizer is None or not self.adapter.flow.bad_only(weights):
            return False
        run_again(self.adapter, self.held, self.adapter.flow)
        return True

    def _read_what_passed(self, gradients: Sequence[Any]) -> None:
        for gradient in gradients[:1]:
            # To wait for the loss of a graph is to spin, to wait for the last of its results is to sleep (measured:
            # half of the CPU time of a step in graph mode). The gradient of the first weight comes last.
            tensors.wait_for(gradient)
        owed, self.owed = self.owed, []
        for result in owed:
            if (loss := tensors.scalar_of(result)) is not None:
                self.tell_loss(loss)
        self.adapter.flow.settle()

    def _finish(self, *, overflow: bool = False, left: bool = False, by_hand: bool = False) -> None:
        adapter = self.adapter
        rate, optimizer = self._rate, type(self.stepped[0]).__name__ if self.stepped else BY_HAND if by_hand else ""
        self.by_hand.forget()
        read = [tensors.number(loss) for loss in self.losses]
        losses = tuple(loss for loss in read if loss is not None)
        self.losses, self.stepped, self._rate, self._judged = [], [], None, 0
        self._overflowed = False
        self._idle |= set() if overflow or left else self._awaiting
        self._awaiting.clear()
        scale = self.loss_scale if self.scaler is None else self._scale_before
        update = Update(
            loss=losses[-1] if losses else None,
            losses=losses if len(losses) > 1 else (),
            learning_rate=rate,
            optimizer=optimizer,
            loss_scale=scale,
            overflow=overflow,
            left=left,
        )
        goes_on_with = adapter.clock.own()
        try:
            adapter.listener.step_done(adapter, update)
        finally:
            self.gradients.clear()
            adapter.step_ended()
            adapter.clock.back(goes_on_with)


_SCALERS: dict[int, tuple[Any, Any]] = {}
"""By function: what it is, and its scaler; looked for once."""


def scaler_of(function: Any) -> Any | None:
    """The loss scale a function multiplies its loss with: in its closure or among its globals."""
    known = _SCALERS.get(id(function))
    if known is None or known[0] is not function:
        if len(_SCALERS) >= 64:
            _SCALERS.clear()
        known = _SCALERS[id(function)] = (
            function,
            next((one for one in held_by(function) if isinstance(one, LossScaler)), None),
        )
    return known[1]
