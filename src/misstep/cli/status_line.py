"""One calm line at the bottom of the terminal while the command runs, outside the lines the command writes to.

The terminal is told to scroll only the rows above the last one, so the command's output goes by as always and our line
is never in its way. On anything but a terminal nothing is drawn.
"""

from __future__ import annotations

import os
import unicodedata
from typing import TextIO

from misstep.cli.render.shown import bare, shown

_SAVE, _RESTORE, _CLEAR_LINE = "\x1b7", "\x1b8", "\x1b[2K"


class StatusLine:
    """Draws and redraws one line; `close` leaves the terminal as it was."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: TextIO = bare(stream)
        self._size: tuple[int, int] | None = None
        self._shown = ""

    def draw(self, text: str) -> None:
        size = self._terminal_size()
        if size is None:
            return
        columns, rows = size
        text = clip(shown(text), columns - 1)
        if size == self._size and text == self._shown:
            return
        out = ""
        if size != self._size:
            out += self._reserve(rows)
        out += f"{_SAVE}\x1b[{rows};1H{_CLEAR_LINE}\x1b[2m{text}\x1b[0m{_RESTORE}"
        self._size, self._shown = size, text
        self._write(out)

    def close(self) -> None:
        """Give the last row back."""
        if self._size is not None:
            rows = self._size[1]
            self._write(f"{_SAVE}\x1b[r\x1b[{rows};1H{_CLEAR_LINE}{_RESTORE}")
            self._size = None

    def _reserve(self, rows: int) -> str:
        # A line feed first: with the cursor on the last row, the text there must move up, not be drawn over.
        # Setting the region sends the cursor home, hence the saving.
        return f"\n\x1b[1A{_SAVE}\x1b[1;{rows - 1}r{_RESTORE}"

    def _terminal_size(self) -> tuple[int, int] | None:
        try:
            columns, rows = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            return None
        return (columns, rows) if columns >= 20 and rows >= 4 else None

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            pass  # the terminal went away; the command may go on without it


def can_draw(stream: TextIO) -> bool:
    """True for a terminal that understands cursor movements."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def clip(text: str, columns: int) -> str:
    """The text cut to so many columns of a terminal; a Chinese character takes two."""
    width = 0
    for position, character in enumerate(text):
        width += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if width > columns:
            return text[:position]
    return text
