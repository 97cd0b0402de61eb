"""The one seam between what a training writes and the operating system: tests put a failing disk in its place.

append.DISK = FaultyDisk(after=3, error=errno.ENOSPC)      ENOSPC, EIO, short writes, EINTR, a slow disk
"""

from __future__ import annotations

import os

from misstep.store.writing.reserve import allocate


class Disk:
    """The system calls a growing file needs, as they are."""

    open = staticmethod(os.open)
    write = staticmethod(os.write)
    writev = staticmethod(os.writev)
    truncate = staticmethod(os.ftruncate)
    sync = staticmethod(os.fsync)
    close = staticmethod(os.close)
    allocate = staticmethod(allocate)
