"""The stage a replay plays on: a second observation of the adapter's, with a frame, a watch and a listener of its own.

The step under way is the first observation, put back when the replay is over, whatever happened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from misstep.adapters.pytorch.names import source_at, source_line
from misstep.adapters.pytorch.observation import Observation
from misstep.adapters.pytorch.replay.undo import Undo
from misstep.adapters.pytorch.seams.operators import OperatorWatch
from misstep.adapters.pytorch.tensors import Seer, leaves
from misstep.adapters.replaying.protocol import QuietListener
from misstep.adapters.step.frame import Frame
from misstep.core.graph import Source

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter

_LARGEST_BEFORE = 64 << 20
"""Bytes an operator may overwrite for which the values before it are still at hand when it makes something bad."""


class ReplayWatch(OperatorWatch):
    """The operator watch of a replay; it also sees to it that nothing of the user's is written to unsaved."""

    def __init__(self, adapter: PyTorchAdapter, undo: Undo, *, watching: bool = True) -> None:
        super().__init__(adapter)
        self.undo = undo
        self.watching = watching
        # Names of operators are given once in a run, whoever watches.
        self.share_names(adapter.operators)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        traits = self._traits.get(func) or self._learn(func)
        earlier = getattr(self.adapter.listener.wants, "earlier", None) if self.watching else None
        if traits.writes:
            written = list(leaves([args[place] for place in traits.writes if place < len(args)]))
            self.undo.writes(written)
            if kwargs:
                self.undo.writes(leaves(kwargs))
            if earlier is not None and sum(one.nbytes for one in written) <= _LARGEST_BEFORE:
                earlier.update((id(one), one.detach().clone()) for one in written)
        if self.watching:
            out = super().__torch_dispatch__(func, types, args, kwargs)
            if earlier:
                earlier.clear()
        else:
            out = func(*args, **(kwargs or {}))
        if not traits.writes and not traits.view:
            self.undo.made(leaves(out))
        return out


@contextlib.contextmanager
def stage(adapter: PyTorchAdapter, undo: Undo, outer: FrameType | None, *, watch: bool) -> Iterator[Frame]:
    """Let the adapter look at the replay instead of the step under way; `outer` is the user's frame we come from."""
    first = Observation.of(adapter)
    frame = Frame()
    frame.begin(adapter.listener.step)
    listener = QuietListener(adapter.listener, frame)
    operators = ReplayWatch(adapter, undo, watching=watch)
    seer = Seer(adapter.catalog, frame, listener.wants if watch else {})
    seer.row_of_memory = operators.row_of
    second = Observation(
        listener=listener,
        frame=frame,
        seer=seer,
        operators=operators,
        modules=first.modules.double(watching=watch),
        level="op" if watch else "off",
        thread=first.thread,
        replaying=True,
        outer=outer,
        stand_in=first.stand_in,
        gradient_rows=first.gradient_rows,
    )

    def place(frame: FrameType | None) -> Source | None:
        if frame is adapter.outer and adapter.stand_in is not None:
            return source_line(adapter.stand_in[0].co_filename, adapter.stand_in[1])
        return source_at(frame)

    watching_already = first.operators.on
    first.operators.stop()
    second.put_into(adapter)
    adapter.names.place = place
    try:
        operators.start()
        yield frame
    finally:
        operators.stop()
        if watching_already:
            first.operators.start()
        adapter.names.place = source_at
        first.put_into(adapter)
