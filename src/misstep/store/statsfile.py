"""The statistics file: a header and rows of 128 bytes, one per tensor and step, that readers map into memory.

A row checks itself: its `check` is a weighted sum of its other 31 words modulo 2^32. The weights are odd, so that any
single damaged word is noticed, and the start is not zero, so that a block of zeros (a hole left by a crash) is no row.
One native call computes it for all rows of a step; readers do it in numpy.
A torn last row is dropped by integer division.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from misstep import kernels
from misstep.core.stats import HEAD, ROW, SUMMARY
from misstep.errors import RunDamaged, RunTooNew
from misstep.kernels.records import CHECK_START, CHECK_WEIGHTS

MAGIC = b"MSTPSTAT"
VERSION = 1
HEADER_BYTES = 128
ROW_BYTES = ROW.itemsize

_HEADER = struct.Struct("<8sIII")

Rows = npt.NDArray[np.void]


def header() -> bytes:
    return _HEADER.pack(MAGIC, VERSION, HEADER_BYTES, ROW_BYTES).ljust(HEADER_BYTES, b"\0")


def checks(rows: Rows) -> npt.NDArray[np.uint32]:
    """The right `check` of every row."""
    words = rows.view("<u4").reshape(-1, ROW_BYTES // 4)
    sums: npt.NDArray[np.uint32] = words @ CHECK_WEIGHTS
    sums += np.uint32(CHECK_START)
    return sums


class RowBuilder:
    """Joins the two halves of a step's rows in a buffer that is used again for the next step."""

    def __init__(self) -> None:
        self._rows: Rows = np.zeros(512, dtype=ROW)

    def build(self, head: Rows, summary: Rows) -> memoryview:
        """The bytes of the rows, valid until the next call."""
        count = len(head)
        if len(summary) != count:
            raise ValueError(f"{count} heads but {len(summary)} summaries in one step")
        if count > len(self._rows):
            self._rows = np.zeros(max(count, 2 * len(self._rows)), dtype=ROW)
        rows = self._rows[:count]
        head, summary = np.ascontiguousarray(head, dtype=HEAD), np.ascontiguousarray(summary, dtype=SUMMARY)
        kernels.seal_rows(head, summary, rows, count)
        return rows.view(np.uint8).data


class StatsReader:
    """The rows of one rank, mapped; columns that are searched are kept in memory and grow with the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: Rows = np.empty(0, dtype=ROW)
        self.unfinished = 0
        self.damaged_rows: set[int] = set()
        empty: npt.NDArray[np.uint32] = np.empty(0, dtype="<u4")
        self._known = empty, empty
        """The tensor and the step of every row."""

    def refresh(self) -> None:
        """Map what has been added."""
        try:
            size = os.stat(self.path).st_size
        except FileNotFoundError:
            return
        if size < HEADER_BYTES:
            self.unfinished = size
            return
        count, self.unfinished = divmod(size - HEADER_BYTES, ROW_BYTES)
        if count <= len(self.rows):
            return
        with open(self.path, "rb") as file:
            magic, version, header_bytes, row_bytes = _HEADER.unpack(file.read(_HEADER.size))
            if magic != MAGIC:
                raise RunDamaged(f"{self.path} does not begin as a statistics file does", run=str(self.path))
            if version > VERSION or row_bytes != ROW_BYTES or header_bytes != HEADER_BYTES:
                raise RunTooNew(
                    f"{self.path} was written by a later misstep (statistics version {version}, this one reads"
                    f" {VERSION}):  pip install -U misstep",
                    run=str(self.path),
                )
            self.rows = np.memmap(file, dtype=ROW, mode="r", offset=HEADER_BYTES, shape=(count,)).view(np.ndarray)

    def of_tensors(self, tensors: npt.ArrayLike, *, first: int | None = None, last: int | None = None) -> Rows:
        """The sound rows of these tensors in these steps (both ends belong), in the order they were written."""
        wanted = np.atleast_1d(np.asarray(tensors, dtype=np.int64))
        column, steps = self._columns()
        if wanted.size == 1:
            chosen = column == np.uint32(wanted[0])
        else:
            # By what is asked for, not by what is there: a damaged row may name tensor 4,294,967,295.
            table = np.zeros(int(wanted.max(initial=0)) + 2, dtype=bool)
            table[wanted] = True
            chosen = table[np.minimum(column, len(table) - 1)]
        if first is not None:
            chosen &= steps >= first
        if last is not None:
            chosen &= steps <= last
        return self._sound(np.flatnonzero(chosen))

    def of_step(self, step: int) -> Rows:
        """The sound rows of one step, in the order they were written."""
        return self._sound(np.flatnonzero(self._columns()[1] == step))

    def kept_steps(self) -> npt.NDArray[np.uint32]:
        """The numbers of the steps that have rows."""
        return np.unique(self._columns()[1])

    def verify(self) -> None:
        """Check every row, so that `damage` tells of all that is wrong."""
        block = 1 << 16
        for start in range(0, len(self.rows), block):
            self._sound(np.arange(start, min(start + block, len(self.rows))))

    def damage(self, *, alive: bool) -> list[str]:
        sentences = []
        name = f"{self.path.parent.name}/{self.path.name}"
        if self.damaged_rows:
            count = len(self.damaged_rows)
            sentences.append(
                f"{name}: {count:,} damaged row{'s' * (count > 1)} skipped, the first is row {min(self.damaged_rows):,}"
            )
        if self.unfinished and not alive:
            sentences.append(f"{name}: the last row was cut off after {self.unfinished} bytes")
        return sentences

    def _columns(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        # Read and replaced as one: a comparison asks from several threads.
        tensors, steps = self._known
        known, rows = len(tensors), self.rows
        if known < len(rows):
            tensors = np.concatenate([tensors, rows["tensor"][known:]])
            steps = np.concatenate([steps, rows["step"][known:]])
            self._known = tensors, steps
        return tensors, steps

    def _sound(self, places: npt.NDArray[np.intp]) -> Rows:
        rows = np.ascontiguousarray(self.rows[places])
        sound = rows["check"] == checks(rows)
        if not sound.all():
            self.damaged_rows.update(places[~sound].tolist())
            rows = rows[sound]
        return rows
