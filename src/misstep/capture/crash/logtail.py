"""The last lines a program printed or logged, kept in the flight recorder's ring.

The streams stay what they are: only their `write` is looked at, as an attribute of the object itself. What the program
logs to a file alone is taken where every record passes. A line is copied once, and nothing here waits or raises.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import Any

from misstep.store.bundle.ring import Ring
from misstep.store.writing.scrubbed import scrubber

_LONGEST = 2000


class LogTail:
    """Copies what goes to stdout, stderr and the loggers into a ring."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._lock = threading.Lock()
        self._logging = threading.local()
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            self._watch_stream(stream)
        self._watch_loggers()

    def release(self) -> None:
        while self._undo:
            self._undo.pop()()

    def add(self, text: str) -> None:
        # Never waits: a signal handler may print while this very thread is in here.
        if self._lock.acquire(blocking=False):
            try:
                self._ring.log(scrubber().text(text[-_LONGEST:]).encode("utf-8", "replace"))
            finally:
                self._lock.release()

    def _watch_stream(self, stream: Any) -> None:
        try:
            original = stream.write

            def write(text: str) -> Any:
                if not getattr(self._logging, "busy", False):
                    try:
                        self.add(text)
                    except Exception:
                        pass  # what was no text is the stream's own to complain about
                return original(text)

            stream.write = write
        except AttributeError:
            return  # no stream at all, or one that cannot be touched

        def undo() -> None:
            if stream.__dict__.get("write") is write:
                del stream.write

        self._undo.append(undo)

    def _watch_loggers(self) -> None:
        loggers: Any = logging.Logger
        original = loggers.callHandlers

        def callHandlers(logger: logging.Logger, record: logging.LogRecord) -> None:
            outer = getattr(self._logging, "busy", False)
            if not outer:
                try:
                    self.add(f"{record.levelname} {record.name}: {record.getMessage()}\n")
                except Exception:
                    pass  # a message that does not fit its arguments: logging itself will say so
            self._logging.busy = True
            try:
                original(logger, record)
            finally:
                self._logging.busy = outer

        loggers.callHandlers = callHandlers

        def undo() -> None:
            if loggers.callHandlers is callHandlers:
                loggers.callHandlers = original

        self._undo.append(undo)
