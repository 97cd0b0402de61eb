"""Our code among theirs: timed, and its failures kept from the user's program."""

from __future__ import annotations

import os
from time import perf_counter_ns
from types import TracebackType
from typing import TYPE_CHECKING

import mindspore as ms

from misstep.adapters.mindspore.tensors import waiting

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter


class Guard:
    """Times what is ours and keeps its failures from the user's program."""

    __slots__ = ("adapter", "start", "was_busy", "where")

    def __init__(self, adapter: MindSporeAdapter, where: str) -> None:
        self.adapter = adapter
        self.where = where

    def __enter__(self) -> None:
        # What the listener calls of MindSpore while it looks (a learning rate, a copy) is not training.
        self.was_busy, self.adapter.busy = self.adapter.busy, True
        self.start = perf_counter_ns() - waiting.ns

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        adapter = self.adapter
        adapter.cost_ns += perf_counter_ns() - waiting.ns - self.start
        listener = adapter.listening
        adapter.busy = self.was_busy or listener is None
        if error is None or not isinstance(error, Exception):
            return False
        if listener is not None:
            listener.trouble(self.where, error)
        return True


class Nothing:
    """In place of a context that is not needed."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def raised_inside(error: BaseException | None) -> bool:
    """Whether MindSpore itself raised this: what a failed operator should have written must not be read, ever."""
    where = None if error is None else error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    return where is not None and where.tb_frame.f_code.co_filename.startswith(_MINDSPORE)


_MINDSPORE = os.path.join(os.path.dirname(os.path.abspath(ms.__file__)), "")
