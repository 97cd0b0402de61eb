"""A hub's card in a run directory: how a training that was started without a hub, or lost its own, finds one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from misstep.protocol.wire import HUB_FILE
from misstep.store.reading.liveness import process_exists


class Cards:
    """The cards of one hub."""

    def __init__(self) -> None:
        self._text: dict[str, Any] = {}
        self._left: set[Path] = set()

    def say(self, *, link: str, http: str, token: str) -> None:
        """What is on them."""
        self._text = {"link": link, "http": http, "token": token, "pid": os.getpid()}

    def leave(self, run: Path) -> None:
        """Leave a card, unless one of a hub that lives is there."""
        there = read_card(run)
        if there is not None and (there == self._text or process_exists(int(there.get("pid", 0)))):
            return
        try:
            draft = run / f".{HUB_FILE}.{os.getpid()}"
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                json.dump(self._text, file)
            os.replace(draft, run / HUB_FILE)
            self._left.add(run)
        except OSError:
            pass  # a run we may read but not write to: its trainee is not ours to debug

    def take_back(self) -> None:
        """Remove those that nobody has replaced."""
        for run in self._left:
            there = read_card(run)
            if there is not None and there.get("token") == self._text["token"]:
                (run / HUB_FILE).unlink(missing_ok=True)


def read_card(run: Path) -> dict[str, Any] | None:
    """The card a hub left in a run directory; None when there is none to read."""
    try:
        card = json.loads((run / HUB_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return card if isinstance(card, dict) else None
