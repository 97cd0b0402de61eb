"""The one place where text goes to a terminal: what came from a run or a file shows itself and commands nothing.

A name must not set the window's title, clear the screen, or turn the line around: escapes, control characters and
marks of direction are written out.

Colours of our own are made behind it: rich styles segments after their text was escaped, and the status line writes to
the bare stream.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_COMMANDING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # all but tab and line feed
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"  # turning lines around, breaking them, halves
)


def shown(text: str) -> str:
    r"""The text with everything that would command a terminal written out.

    >>> shown("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return _COMMANDING.sub(_written_out, text) if _COMMANDING.search(text) else text


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


class Terminal(Console):
    """rich's console, whose text cannot command the terminal, and in which `[red]` is five characters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(file=bare(sys.stdout), highlight=False, markup=False, emoji=False, soft_wrap=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(shown(segment.text), segment.style)


class Guarded:
    """A stream through which only shown text goes; everything else about it is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        return self.stream.write(shown(text))

    def writelines(self, lines: Iterable[str]) -> None:
        self.stream.writelines(map(shown, lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def bare(stream: Any) -> Any:
    """The stream itself, for who draws."""
    return stream.stream if isinstance(stream, Guarded) else stream


@contextlib.contextmanager
def guarded_streams() -> Iterator[None]:
    """While a command runs, whatever it prints is shown."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = Guarded(before[0]), Guarded(before[1])
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
