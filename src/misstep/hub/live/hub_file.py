"""A hub's cards in run directories: how a training that was started without a hub, or lost its own, finds one."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from misstep.protocol.wire import HUB_FILE
from misstep.store.codec import to_json
from misstep.store.hubcard import Card, read_card
from misstep.store.reading.liveness import process_exists


class Cards:
    """The cards of one hub."""

    def __init__(self) -> None:
        self._card = Card("", "", "")
        self._left: set[Path] = set()

    def say(self, *, link: str, http: str, token: str, certificate: str = "") -> None:
        """What is on them."""
        self._card = Card(link, http, token, os.getpid(), socket.gethostname(), certificate)

    def leave(self, run: Path) -> None:
        """Leave a card, unless one of a hub that lives is there."""
        there = read_card(run)
        if there is not None and (there == self._card or process_exists(there.pid)):
            return
        draft = run / f".{HUB_FILE}.{os.getpid()}"
        try:
            draft.unlink(missing_ok=True)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(to_json(self._card.plain()))
            os.replace(draft, run / HUB_FILE)
            self._left.add(run)
        except OSError:
            pass  # a run we may read but not write to: its trainee is not ours to debug

    def take_back(self) -> None:
        """Remove those that nobody has replaced."""
        for run in self._left:
            there = read_card(run)
            if there is not None and there.token == self._card.token:
                (run / HUB_FILE).unlink(missing_ok=True)
