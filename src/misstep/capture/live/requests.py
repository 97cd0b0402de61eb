"""What clients ask of the training thread: it waits here until that thread stands still or ends a step.

    link thread ── take, take_order ──► jobs ──► serve, on the training thread ──► answer

Whatever touches the user's objects is done there, and every request is answered once, whatever goes wrong.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from misstep.adapters.base import UncompiledRuns
from misstep.errors import ControlError, MisstepError, TensorUnavailable
from misstep.protocol.views import HitView, QueuedView, hit_view
from misstep.protocol.wire import Answer, AskTensor, Edit, Hits, Order, Record, WatchChanged
from misstep.sentences import control as texts
from misstep.sentences.words import spoken

if TYPE_CHECKING:
    from misstep.capture.live.controller import Controller


class Requests:
    """The requests of one training process."""

    def __init__(self, owner: Controller) -> None:
        self._owner = owner
        self._jobs: deque[tuple[str, Callable[[], None]]] = deque()
        self._queued: dict[str, QueuedView] = {}

    @property
    def waiting(self) -> bool:
        """Whether something waits for the training thread."""
        return bool(self._jobs)

    def queued(self) -> tuple[QueuedView, ...]:
        return tuple(self._queued.values())

    # ── the link thread ──

    def take(self, words: Edit | AskTensor | Record) -> None:
        """A request that touches tensors or watchpoints."""
        if isinstance(words, Edit):
            text = f"{words.edit.op} {words.edit.spec.condition if words.edit.spec else words.edit.watchpoint or ''}"
            self._later(words.id, "watch", text.strip(), lambda: self._edit(words))
        elif isinstance(words, AskTensor):
            self._later(words.id, "tensor", words.address, lambda: self._show(words))
        else:
            self._later("", "record", "", lambda: self._record(words.hit))

    def take_order(self, order: Order) -> bool:
        """Whether the order is one for the training thread; it then waits here. Raises when it makes no sense now."""
        command = order.command
        if command.op == "recheck":
            if self._owner.control.phase != "paused":
                raise ControlError(texts.RECHECK_PAUSED.of(), code="not_paused")
            self._later(order.id, "recheck", "", lambda: self._recheck(order.id))
            return True
        if command.op == "pynative":
            self._check_modes()
            self._later(order.id, "pynative", command.steps, lambda: self._in_pynative(order))
            return True
        return False

    def answer(self, id: str, code: str = "", text: str = "", result: Any = None) -> None:
        self._queued.pop(id, None)
        if id:
            self._owner.send(Answer(id, code, text, result))

    def give_up(self) -> None:
        """Training ended: nothing that waits will be done."""
        for id in list(self._queued):
            self.answer(id, "not_running", texts.ENDED_BEFORE.of())

    def _later(self, id: str, op: str, text: str, job: Callable[[], None]) -> None:
        """For the training thread: now if it waits, else at the end of the step under way."""
        with self._owner.cond:
            if id:
                self._queued[id] = QueuedView(id, op, text)
            self._jobs.append((id, job))
            self._owner.cond.notify_all()

    # ── the training thread ──

    def serve(self) -> None:
        """Everything that waited for the training thread."""
        while self._jobs:
            id, job = self._jobs.popleft()
            self._queued.pop(id, None)
            try:
                job()
            except TensorUnavailable as error:
                self.answer(id, "unavailable", str(error), {"reason": error.reason, "address": error.address})
            except ControlError as error:
                self.answer(id, error.code, str(error))
            except MisstepError as error:
                self.answer(id, "bad_request", str(error))
            except Exception as error:
                self.answer(id, "failed", f"{type(error).__name__}: {error}")

    def _edit(self, words: Edit) -> None:
        result, changed = self._owner.edits.apply(words.edit)
        for op, view in changed:
            self._owner.send(WatchChanged(op, view))
        self.answer(words.id, result=result)

    def _show(self, ask: AskTensor) -> None:
        step_of, link = self._owner.control.step_of, self._owner.link
        header, data = self._owner.look.answer(
            ask.address, slice=ask.slice, want=ask.want, previous=ask.previous, step_of=step_of, id=ask.id
        )
        if link is not None and not link.send(Answer(ask.id, result=header), data):
            self.answer(ask.id, "busy", texts.TOO_MUCH_UNDER_WAY.of())

    def _recheck(self, id: str) -> None:
        hits, link, control = self._owner.session.evaluate_now(), self._owner.link, self._owner.control
        if hits and link is not None:
            views = tuple(hit_view(hit) for hit in hits)
            link.tell_hits(lambda serial: Hits(serial, views))
        self.answer(id, result={"hits": len(hits), "step": control.present, "rev": control.rev})

    def _record(self, view: HitView) -> None:
        writer = self._owner.session.writer
        if writer is not None:
            writer.event(
                "across_ranks",
                condition=view.condition,
                step=view.step,
                rank=view.rank,
                text=spoken(view.reason, view.reason_zh),
            )

    # ── compiled MindSpore code ──

    def _check_modes(self) -> None:
        self._modes()
        if self._owner.world_size > 1 and self._owner.control.phase != "paused":
            raise ControlError(texts.ALL_RANKS_PAUSED.of(), code="not_paused")

    def _modes(self) -> UncompiledRuns:
        modes = self._owner.session.modes
        if modes is None:
            raise ControlError(texts.NOTHING_COMPILED.of(), code="unsupported")
        return modes

    def _in_pynative(self, order: Order) -> None:
        """Between two steps: run some in both modes when they come, or walk through the next one."""
        command, control, modes = order.command, self._owner.control, self._modes()
        with self._owner.cond:
            control.check(command)
            if command.steps:
                text = modes.ask(command.steps, done=control.step)
            else:
                modes.check(inside=None if control.spot is None else control.present)
                text = control.obey(command, now=time.monotonic())
            self._owner.cond.notify_all()
        self._owner.push()
        self.answer(order.id, result={"rev": control.rev, "text": text})
