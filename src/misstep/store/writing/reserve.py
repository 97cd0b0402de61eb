"""Disk blocks taken ahead of a growing file: beyond its end and without moving it, so that readers see no difference.

Finding blocks for a megabyte as it is written is a fourth of what the write costs. Reserved 64 MB at a time it costs
nothing; what is left over is given back when the file is closed, or stays unused behind the end of a killed one's.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Any

MB = 1 << 20
LEAST, MOST = 1 * MB, 64 * MB
"""As much as the file holds already, within these: a small file must not take a large place."""
_FREE_TIMES = 64
"""Only of a disk with so many times the room: the last blocks are for the user's checkpoint."""
_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE of linux/falloc.h


def reserve(descriptor: int, size: int, needed: int) -> int:
    """Take blocks behind a file of `size`, for `needed` bytes and more to come; up to which byte not to ask again.

    os.posix_fallocate moves the end of the file, and writes zeros where the file system cannot reserve; hence libc's.
    """
    wanted = needed + min(max(size, LEAST), MOST)
    if _fallocate is not None and _free(descriptor) >= _FREE_TIMES * wanted:
        _fallocate(descriptor, _KEEP_SIZE, size, wanted)  # where it fails, writing finds its blocks as it always did
    return size + wanted


def allocate(descriptor: int, start: int, length: int) -> bool | None:
    """Take blocks for bytes to come, the end of the file unmoved; False when the disk has none, None when it cannot."""
    if _fallocate is None:
        return None
    ctypes.set_errno(0)
    if _fallocate(descriptor, _KEEP_SIZE, start, length) == 0:
        return True
    return False if ctypes.get_errno() in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else None


def _free(descriptor: int) -> int:
    try:
        disk = os.fstatvfs(descriptor)
    except OSError:
        return 0
    return disk.f_bavail * disk.f_frsize


def _of_libc() -> Any:
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        found = getattr(libc, "fallocate64", None) or libc.fallocate
    except (OSError, AttributeError, TypeError):  # not Linux
        return None
    found.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return found


_fallocate = _of_libc()
