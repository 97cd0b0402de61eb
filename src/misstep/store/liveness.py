"""Whether the process that wrote a journal still lives, asked from another process or another machine."""

from __future__ import annotations

import os
import time
from functools import lru_cache
from pathlib import Path

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


def is_alive(*, host: str, pid: int, birth: str, here: str, touched: float) -> bool:
    """`touched`: when the journal was last written; decides for a process of another machine."""
    if host != here:
        return time.time() - touched < REMOTE_SECONDS
    if birth:
        return birth_of(pid) == birth
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return pid > 0


@lru_cache(maxsize=1)
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
