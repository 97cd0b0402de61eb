"""The step trace: a record of 64 bytes for every step, at every level, appended about once a second.

adapter's clock ─► step      adapter's loaders ─► batch, stages      the kernel's accounts ─► load       ──► trace.bin
"""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, Any

from misstep.adapters.base import Adapter, TrainingStopped, Update
from misstep.adapters.timing.clock import Clock
from misstep.adapters.timing.compilations import CompilationNews
from misstep.adapters.timing.loaders import Loaders
from misstep.capture.machine import Load, resident_bytes
from misstep.capture.profiling import ProfiledSteps
from misstep.core.segments import FIRST, LEFT, SKIPPED, WHOLE
from misstep.store.layout import rank_paths
from misstep.store.tracefile import LOAD, LOAD_LAYOUT, RECORD_BYTES
from misstep.store.writing.append import AppendFile, records_of

if TYPE_CHECKING:
    from misstep.capture.session import Session

_PACK_LOAD = struct.Struct(LOAD_LAYOUT).pack
_WAITING = 4096
_SECONDS = 1.0
_LIMIT = 64 << 20
"""Bytes after which fewer steps are kept: every second, and with every further half of it every fourth, eighth …"""


class StepTrace:
    """Of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._file: AppendFile | None = None
        self._waiting: list[bytes] = []
        self._load = Load()
        self._next = 0.0
        self._steps = 0
        self._interval = 1
        self._next_thinning = _LIMIT
        self._stages_told = 0
        steps: str = session.settings.profile
        self._profiled = ProfiledSteps(session, steps) if steps else None
        self._last_step: int = session.settings.last_step

    def step_done(self, adapter: Adapter, update: Update, number: int) -> None:
        """The step of this number is over."""
        clock: Clock | None = getattr(adapter, "clock", None)
        if clock is None:
            return
        try:
            self._keep(adapter, clock, update, number)
        except Exception as error:
            self._session.trouble("in the step trace", error)
        if self._profiled is not None:
            self._profile(adapter, number)
        if self._last_step and number >= self._last_step:
            raise TrainingStopped(0)

    def _profile(self, adapter: Adapter, number: int) -> None:
        try:
            if self._profiled is not None:
                self._profiled.step_done(adapter, number)
        except Exception as error:
            self._profiled = None
            self._session.trouble("in the profiler", error)

    def _keep(self, adapter: Adapter, clock: Clock, update: Update, number: int) -> None:
        self._steps += 1
        flags = (
            (FIRST if self._steps == 1 else 0)
            | (SKIPPED if update.overflow else 0)
            | (LEFT if update.left else 0)
            | (WHOLE if adapter.traits.seen_too_late else 0)
        )
        record = clock.record(flags, number)
        if self._interval > 1 and number % self._interval:
            return
        self._waiting.append(record)
        if clock.since * 1e-9 >= self._next or len(self._waiting) >= _WAITING:
            self._next = time.perf_counter() + _SECONDS
            self.flush(number)

    def flush(self, number: int = 0) -> None:
        """Everything that waits, into the file."""
        session, writer = self._session, self._session.writer
        if writer is None:
            return
        if self._file is None:
            path = rank_paths(writer.directory, writer.rank).trace
            self._file = AppendFile(path, cut=records_of(RECORD_BYTES))
        for adapter in session.adapters:
            loaders: Loaders | None = getattr(adapter, "loaders", None)
            if loaders is not None:
                self._waiting.extend(loaders.records())
                for facts in loaders.new_facts():
                    writer.event("loader", **facts)
                while loaders.changes:
                    writer.event("change", **loaders.changes.pop(0))
                self._tell_stages(loaders)
            compilations: CompilationNews | None = getattr(adapter, "compilations", None)
            for kind, facts in compilations.news() if compilations is not None else ():
                writer.event(kind, **facts)
        wall, *busy = self._load.since()
        if wall > 0.1:
            cores = min(self._load.cores, 65535)
            self._waiting.append(
                _PACK_LOAD(
                    LOAD, 0, cores, number, time.time_ns(), wall, *busy, self._load.allowed, resident_bytes(), 0, 0
                )
            )
        self._file.append(b"".join(self._waiting))
        self._waiting.clear()
        if self._file.size > self._next_thinning:
            self._next_thinning = self._file.size + _LIMIT // 2
            self._interval *= 2

    def _tell_stages(self, loaders: Loaders, *, last: bool = False) -> None:
        """What samples are made of, as often as there are twice as many as were told of."""
        stages: dict[str, Any] | None = loaders.stages()
        writer = self._session.writer
        if stages is not None and writer is not None and (last or stages["samples"] >= 2 * self._stages_told):
            self._stages_told = stages["samples"]
            writer.event("stages", **stages)

    def close(self) -> None:
        try:
            if self._profiled is not None:
                self._profiled.end()
            self.flush()
        except Exception as error:
            self._session.trouble("in the step trace", error)
        if self._file is not None:
            self._file.close(sync=False)
