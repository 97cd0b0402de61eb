"""What a framework's compiler did in this training process, and what of it nobody was told yet.

    a graph      compiled: which function, how long by stage, and why again
    a break      where the compiler gave the code back to Python
    hooks        that compiled code does not call

Each is a flat record, and becomes a `compiled`, `graph_break` or `ignored_hooks` line of the journal.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

Kind = Literal["compiled", "graph_break", "ignored_hooks"]

MOST = 2_000
"""Records kept of one process: code that is compiled again for every batch must not grow the run without bound."""


class CompilationNews(Protocol):
    """What an adapter of a framework that compiles has under the name `compilations`."""

    def news(self) -> list[tuple[Kind, dict[str, Any]]]:
        """What was compiled since this was last asked."""


class Compilations:
    """Of one training process."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Kind, dict[str, Any]]] = []
        self._kept = 0
        self._left_out = 0

    def add(self, kind: Kind, **facts: Any) -> None:
        if self._kept < MOST:
            self._kept += 1
            self._waiting.append((kind, facts))
        else:
            self._left_out += 1

    def news(self) -> list[tuple[Kind, dict[str, Any]]]:
        """What was added since this was last asked."""
        news, self._waiting = self._waiting, []
        return news

    @property
    def left_out(self) -> int:
        """Records beyond the limit."""
        return self._left_out
