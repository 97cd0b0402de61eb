"""The way of a tensor into the pack: at once, or behind a buffer; each memory once, under as many names as it has."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from misstep.capture.keep.buffer import DumpBuffer, Job
from misstep.capture.keep.losses import Losses
from misstep.core.stats import DTYPE_CODES, Array
from misstep.settings import Settings
from misstep.store.pack import Place, bytes_of
from misstep.store.writing.writer import RunWriter

_NAMES: dict[Any, str] = {}
"""By numpy dtype: asking it for its name costs more than writing a small tensor."""


class Owner(Protocol):
    """What it takes of a session."""

    settings: Settings
    writer: RunWriter | None


class IntoPack:
    """Of one session."""

    def __init__(self, owner: Owner, losses: Losses, *, asynchronous: bool) -> None:
        self.kept = 0
        """Tensors stored, those that share memory included."""
        self.asynchronous = asynchronous
        self.buffer: DumpBuffer | None = None
        self._owner = owner
        self._losses = losses
        self._packed: dict[tuple[int, Any], Place | Job] = {}
        """By the first tensor of a memory in this step and by layout: its bytes in the pack or on their way."""

    def begin_step(self) -> None:
        """What memory holds from here on was not kept yet."""
        self._packed.clear()

    def close(self) -> None:
        """Everything on its way is written before this returns."""
        if self.buffer is not None:
            self.buffer.close()

    def lose(self, name: bytes, why: str, *, counted: bool = False) -> None:
        """This one could not be kept."""
        self._losses.lose(self._owner.writer, name, why, counted=counted)

    def store(self, name: bytes, values: Array, memory: int, sample: int = 0) -> None:
        """Into the pack, or on the way there; the second name of the same memory only gets a record."""
        writer = self._owner.writer
        if writer is None or not writer.mine:
            return
        if sample and values.size > sample:
            values = values.reshape(-1)[np.linspace(0, values.size - 1, sample).astype(np.intp)]
        dtype = _NAMES.get(values.dtype) or _NAMES.setdefault(values.dtype, values.dtype.name)
        if dtype not in DTYPE_CODES:
            self.lose(name, f"no name for {dtype}")
            return
        # Aliases share an address in memory; only with the same layout do they also share their bytes.
        layout = values.nbytes if values.flags.c_contiguous and not sample else (values.shape, values.strides)
        same = self._packed.get((memory, layout))
        if self.asynchronous:
            kept: Place | Job | None = self._queue(name, dtype, values, same)
        elif same is None:
            kept = writer.place(name, bytes_of(values), dtype, values.shape)
        else:
            assert isinstance(same, tuple)
            kept = writer.name_place(name, same, dtype, values.shape)
        if kept is None and not self.asynchronous:
            self.lose(name, "", counted=True)
        if kept is not None:
            self.kept += 1
            if same is None:
                self._packed[memory, layout] = kept

    def _queue(self, name: bytes, dtype: str, values: Array, same: Any) -> Job | None:
        if self.buffer is None:
            settings = self._owner.settings
            self.buffer = DumpBuffer(
                self._write_job, limit_bytes=int(settings.dump_buffer_mb * 2**20), when_full=settings.dump_full
            )
        job = Job(name, dtype, values.shape, same)
        if self.buffer.put(job, None if same is not None else values):
            return job
        self.lose(name, "the buffer was full")
        return None

    def _write_job(self, job: Job, data: memoryview | None) -> None:
        """On the buffer's thread, which has the pack to itself."""
        writer = self._owner.writer
        assert writer is not None
        try:
            if job.same is None:
                job.place = self._write(writer, job.name, job.dtype, job.shape, data, None)
            elif job.same.place is not None:
                job.place = self._write(writer, job.name, job.dtype, job.shape, None, job.same.place)
            else:
                self.lose(job.name, "its memory could not be kept")
        except Exception as error:
            self.lose(job.name, str(error))

    def _write(
        self, writer: RunWriter, name: bytes, dtype: str, shape: tuple[int, ...], data: memoryview | None, same: Any
    ) -> Place | None:
        if data is not None:
            place = writer.place(name, data, dtype, shape)
        else:
            place = writer.name_place(name, same, dtype, shape)
        if place is None:
            self.lose(name, "", counted=True)
        return place
