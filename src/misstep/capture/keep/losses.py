"""What a dump could not keep: counted, named, and told in the journal once.

From either thread: the training's own, and the one that writes behind a buffer.
"""

from __future__ import annotations

import threading

from misstep.store.writing.writer import RunWriter

MOST_NAMED = 50
"""Names of lost tensors written into one journal line; the count beside them is complete."""


class Losses:
    """The books of one rank's dump."""

    def __init__(self) -> None:
        self.count = 0
        self._named: list[str] = []
        self._told = 0
        self._said: set[str] = set()
        self._lock = threading.Lock()

    def lose(self, writer: RunWriter | None, name: bytes, why: str = "", *, counted: bool = False) -> None:
        """One tensor less; `counted` when the writer has it in its books already."""
        with self._lock:
            self.count += 1
            if len(self._named) < MOST_NAMED:
                text = name.decode(errors="replace")
                self._named.append(f"{text} ({why})" if why else text)
            if writer is not None and not counted:
                writer.lost["tensor"] = writer.lost.get("tensor", 0) + 1

    def tell(self, writer: RunWriter, step: int) -> None:
        with self._lock:
            named, self._named = self._named, []
            new, self._told = self.count - self._told, self.count
        if new:
            writer.event("lost", counts=dict(writer.lost), tensors=named, new=new, step=step)

    def say_once(self, writer: RunWriter, text: str, *, about: str = "") -> None:
        """A warning of the journal; of several about the same thing only the first."""
        if (about or text) not in self._said:
            self._said.add(about or text)
            writer.event("warning", text=text)
