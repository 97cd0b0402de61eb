"""The text of a file with edits laid over it: each changes a span, and an outer one may ask for what is inside it.

Comments and formatting stay because nothing is written that did not have to change.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes `start` to `end` become `text`; a function is asked when the text around it is known."""

    start: int
    end: int
    text: str | Callable[[], str]
    rank: int = 0
    """Of insertions at one place, the lowest comes first: what opens around the most."""
    owner: Span | None = None
    """What the edit belongs to: asked for a part of that, a page leaves it out."""


@dataclass(slots=True)
class Page:
    """A file's bytes: `ast` counts columns in UTF-8."""

    text: str
    data: bytes = b""
    lines: list[int] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.data = self.text.encode()
        self.lines = [0, *accumulate(len(line) for line in self.data.splitlines(keepends=True))]

    def span(self, node: ast.expr | ast.stmt | ast.keyword | ast.alias | ast.arg) -> Span:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.lines[node.lineno - 1] + node.col_offset, self.lines[node.end_lineno - 1] + node.end_col_offset

    def change(
        self, start: int, end: int, text: str | Callable[[], str], *, rank: int = 0, owner: Span | None = None
    ) -> None:
        self.edits.append(Edit(start, end, text, rank, owner))

    def original(self, start: int, end: int) -> str:
        return self.data[start:end].decode()

    def written(self, start: int = 0, end: int | None = None) -> str:
        """This part with every edit inside of it."""
        end = len(self.data) if end is None else end
        inside = [
            one
            for one in self.edits
            if start <= one.start
            and one.end <= end
            and (one.owner is None or (start <= one.owner[0] and one.owner[1] <= end))
        ]
        inside.sort(key=lambda one: (one.start, one.end > one.start, one.rank, one.start - one.end))
        parts: list[str] = []
        at = start
        for one in inside:
            if one.start < at:
                continue  # inside of one that was just written
            parts += [self.original(at, one.start), one.text if isinstance(one.text, str) else one.text()]
            at = one.end
        return "".join([*parts, self.original(at, end)])

    def of(self, node: ast.expr) -> str:
        """An expression as it will stand."""
        return self.written(*self.span(node))

    def call_parens(self, node: ast.Call) -> Span:
        """Where the arguments begin and end, inside the parentheses."""
        begin = self.data.index(b"(", self.span(node.func)[1])
        return begin + 1, self.span(node)[1] - 1

    def receiver(self, node: ast.Call | ast.Attribute) -> Span:
        """What stands before the dot of a method, parentheses included."""
        function = node.func if isinstance(node, ast.Call) else node
        assert isinstance(function, ast.Attribute)
        after = self.span(function)[1] - len(function.attr.encode())
        return self.span(node)[0], self.data.rindex(b".", 0, after)

    def widened(self, span: Span, within: Span) -> Span:
        """A span with the parentheses around it."""
        start, end = span
        while True:
            before = len(self.data[within[0] : start].rstrip()) + within[0]
            after = end + len(self.data[end : within[1]]) - len(self.data[end : within[1]].lstrip())
            if before <= within[0] or after >= within[1]:
                return start, end
            if self.data[before - 1 : before] != b"(" or self.data[after : after + 1] != b")":
                return start, end
            start, end = before - 1, after + 1
