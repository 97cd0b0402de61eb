"""Disks that fail, for the one seam between a run's files and the operating system (`misstep.store.writing.append`)."""

from __future__ import annotations

import errno
import os
import random
from typing import Any

from misstep.store.writing.disk import Disk


class SmallDisk(Disk):
    """A disk with so many bytes, of which reservations take theirs; shared by all files."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._taken: dict[int, int] = {}
        self._size: dict[int, int] = {}

    def _grow(self, descriptor: int, length: int) -> int:
        """How many bytes of a write fit."""
        size = self._size.get(descriptor, 0)
        more = max(0, size + length - self._taken.get(descriptor, 0))
        if more > self.room:
            fitting = length - (more - self.room)
            if fitting <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return fitting
        return length

    def write(self, descriptor: int, data: Any) -> int:  # type: ignore[override]
        written = os.write(descriptor, memoryview(data)[: self._grow(descriptor, len(data))])
        self._written(descriptor, written)
        return written

    def writev(self, descriptor: int, parts: Any) -> int:  # type: ignore[override]
        return self.write(descriptor, b"".join(bytes(part) for part in parts))

    def _written(self, descriptor: int, count: int) -> None:
        size = self._size[descriptor] = self._size.get(descriptor, 0) + count
        more = max(0, size - self._taken.get(descriptor, 0))
        self._taken[descriptor] = self._taken.get(descriptor, 0) + more
        self.room -= more

    def allocate(self, descriptor: int, start: int, length: int) -> bool | None:  # type: ignore[override]
        more = max(0, start + length - self._taken.get(descriptor, 0))
        if more > self.room:
            return False
        self._taken[descriptor] = self._taken.get(descriptor, 0) + more
        self.room -= more
        return True

    def truncate(self, descriptor: int, size: int) -> None:  # type: ignore[override]
        os.ftruncate(descriptor, size)
        self.room += self._taken.get(descriptor, 0) - size
        self._taken[descriptor] = self._size[descriptor] = size


class NervousDisk(Disk):
    """Short writes, EINTR, EIO and ENOSPC, by chance; the same seed fails alike."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.calm = False

    def write(self, descriptor: int, data: Any) -> int:  # type: ignore[override]
        if not self.calm:
            match self._chance.randrange(12):
                case 0:
                    raise OSError(self._chance.choice((errno.EIO, errno.ENOSPC, errno.EINTR, errno.EDQUOT)), "trouble")
                case 1 | 2 | 3 if len(data) > 1:
                    return os.write(descriptor, memoryview(data)[: self._chance.randrange(1, len(data))])
        return os.write(descriptor, data)

    def writev(self, descriptor: int, parts: Any) -> int:  # type: ignore[override]
        return self.write(descriptor, b"".join(bytes(part) for part in parts))

    def truncate(self, descriptor: int, size: int) -> None:  # type: ignore[override]
        if not self.calm and self._chance.randrange(20) == 0:
            raise OSError(errno.EIO, "trouble")
        os.ftruncate(descriptor, size)
