"""Where backward is, module by module: it enters with the first gradient of an output, and leaves with the last one of
an input.

A module whose inputs need no gradient (the first of a network) is left when all of backward is over.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from misstep.adapters.base import Place

Run = TypeVar("Run", bound=Hashable)
"""One run of a module within the step, as its adapter knows it."""


class BackwardPath(Generic[Run]):
    """Of the step under way. `place` says where a run stands: which node, and which call of it."""

    def __init__(self, place: Callable[[Run], tuple[int, int]]) -> None:
        self._place = place
        self._awaited: dict[Run, set[int]] = {}
        """By run: its inputs whose gradient has not come yet."""
        self._inside: dict[Run, None] = {}
        """Entered and not known to be left, in that order."""

    def clear(self) -> None:
        self._awaited.clear()
        self._inside.clear()

    def awaits(self, run: Run, source: int) -> None:
        """The gradient of this input will come."""
        self._awaited.setdefault(run, set()).add(source)

    def enters(self, run: Run) -> Place | None:
        """A gradient of one of its outputs came; a place when it is the first."""
        if run in self._inside:
            return None
        self._inside[run] = None
        node, call = self._place(run)
        return Place(node, "backward", "before", "module", call)

    def leaves(self, run: Run, source: int) -> Place | None:
        """The gradient of this input came; a place when it is the last."""
        awaited = self._awaited.get(run)
        if awaited is not None:
            awaited.discard(source)
        if awaited or run not in self._inside:
            return None
        del self._inside[run]
        return self._after(run)

    def ends(self) -> list[Place]:
        """All of backward is over: the modules that leaves, the last entered first."""
        places = [self._after(run) for run in reversed(self._inside)]
        self._inside.clear()
        return places

    def _after(self, run: Run) -> Place:
        node, call = self._place(run)
        return Place(node, "backward", "after", "module", call)
