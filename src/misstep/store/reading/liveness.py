"""Whether the process that wrote a journal still lives, asked from another process or another machine."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

REMOTE_SECONDS = 60.0
"""A journal on another machine that was not touched for this long belongs to a dead process."""


def birth_of(pid: int) -> str:
    """When a process was born, so that another one with the same number is not taken for it; empty when unknown.

    On Linux: the boot's id and the ticks since; elsewhere nothing is known and the number alone must do.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold spaces and parentheses; behind the last one the fields are plain.
            fields = file.read().rpartition(b")")[2].split()
        return f"{_boot()}:{fields[19].decode()}" if fields[0] not in (b"Z", b"X") else ""
    except (OSError, IndexError):
        return ""


def writer_lives(start: Mapping[str, Any], journal: Path) -> bool:
    """True when the process that wrote this start event is there; the journal's age decides for another machine."""
    try:
        about = os.stat(journal)
        size = about.st_size
    except OSError:
        size = 0
        try:
            about = os.stat(journal.parent)
        except OSError:
            return False
    recent = time.time() - about.st_mtime < REMOTE_SECONDS
    if not start:
        return recent and size == 0  # its directory is made, its first word is on the way
    if start.get("host") != socket.gethostname():
        return recent
    pid, birth = start.get("pid", 0), start.get("birth", "")
    if type(pid) is not int or pid.bit_length() > 31:
        return False
    return birth_of(pid) == birth if birth else process_exists(pid)


def process_exists(pid: int) -> bool:
    if not 0 < pid < 1 << 31:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        return True
    return True


@lru_cache(maxsize=1)
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
