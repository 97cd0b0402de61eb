"""The card a hub leaves in a run directory or a folder of runs: where it listens, and the token that proves it.

Somebody else's card is no card: a folder may be writable for others, and a hub's orders move a training.
"""

from __future__ import annotations

import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misstep.protocol.wire import HUB_FILE
from misstep.store.codec import from_json
from misstep.store.reading.liveness import process_exists

_LARGEST = 64 << 10


@dataclass(frozen=True, slots=True)
class Card:
    """How to reach one hub."""

    link: str
    http: str
    token: str
    pid: int = 0
    host: str = ""
    certificate: str = ""
    """The certificate it shows, when it speaks TLS: a file."""

    @property
    def gone(self) -> bool:
        """Its process was on this machine and is no more: who listens there now is somebody else."""
        return self.host == socket.gethostname() and self.pid > 0 and not process_exists(self.pid)

    def plain(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def read_card(directory: Path) -> Card | None:
    """The card in a directory; None when there is none, it is nonsense, or somebody else could have written it."""
    try:
        descriptor = os.open(directory / HUB_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_uid not in (os.getuid(), 0) or about.st_mode & 0o022:
                return None
            plain = from_json(file.read(_LARGEST))
    except (OSError, ValueError):
        return None
    if not isinstance(plain, dict):
        return None
    words = [plain.get(name, "") for name in ("link", "http", "token", "host", "certificate")]
    pid = plain.get("pid", 0)
    if not all(isinstance(word, str) for word in words) or type(pid) is not int or not words[2]:
        return None
    link, http, token, host, certificate = words
    return Card(link, http, token, pid, host, certificate)
