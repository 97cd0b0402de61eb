"""The batches a process makes: how long its samples took, which of them was slowest, and what the process waited for.

One record a batch, packed where it is made: in a worker into its lane, in the training process into a list.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sized
from time import perf_counter_ns, thread_time_ns, time_ns
from typing import Any

from misstep.adapters.timing.stages import Stages
from misstep.store.tracefile import BATCH, BATCH_LAYOUT

_PACK = struct.Struct(BATCH_LAYOUT).pack
_LOOK_NS = 50_000_000
"""Between two looks at the scheduler's account, which is a file."""
_PROFILE_NS = 1_000_000_000
"""Between two samples made under the profiler; the first few come sooner."""
_SOON = (1, 3, 8, 20)


class BatchClock:
    """Of one process, or one worker of a data loader."""

    def __init__(self, worker: int, put: Callable[[bytes], None], said: Callable[[Stages], None]) -> None:
        self.worker, self._put, self._said = worker, put, said
        self.stages = Stages()
        self.loader = 0
        self._samples = self._slowest = self._fetch = self._profiled = 0
        self._slowest_index = -1
        self._made = 0
        """Samples made so far, by which the profiler's turns come."""
        self._next_profile = self._next_look = 0
        self._delay = self._delay_told = run_delay_ns()
        self._ended = self._began = self._cpu = 0
        self._offset = time_ns() - perf_counter_ns()

    def begin(self) -> None:
        self._began, self._cpu = perf_counter_ns(), thread_time_ns()
        self._samples = self._slowest = self._fetch = self._profiled = 0
        self._slowest_index = -1

    def sample(self, make: Callable[[Any], Any], index: Any) -> Any:
        """Make one sample."""
        began = perf_counter_ns()
        self._made += 1
        if self._made in _SOON or (self._made > _SOON[-1] and began >= self._next_profile):
            self._next_profile = began + _PROFILE_NS
            self._profiled += 1  # its time is partly the profiler's: it counts as the others of its batch do
            return self.stages.run(make, index)
        result = make(index)
        took = perf_counter_ns() - began
        self._samples += 1
        self._fetch += took
        if took > self._slowest:
            self._slowest = took
            self._slowest_index = index if isinstance(index, int) else -1
        return result

    def several(self, make: Callable[[Any], Any], indices: Any) -> Any:
        """Make many samples in one call."""
        began = perf_counter_ns()
        result = make(indices)
        self._samples += len(indices) if isinstance(indices, Sized) else 1
        self._fetch += perf_counter_ns() - began
        return result

    def end(self, batch: Any, collate_ns: int) -> None:
        """A batch is complete."""
        now = perf_counter_ns()
        if now >= self._next_look:
            self._next_look = now + _LOOK_NS
            self._delay = run_delay_ns()
        delay, self._delay_told = self._delay - self._delay_told, self._delay
        samples = self._samples + self._profiled
        fetch = self._fetch if not self._profiled else self._fetch * samples // max(1, self._samples)
        cpu = thread_time_ns() - self._cpu
        self._put(
            _PACK(
                BATCH,
                1 if self._profiled else 0,
                self.worker,
                samples,
                self._began + self._offset,
                fetch * 1e-3,
                self._slowest * 1e-3,
                self._slowest_index,
                collate_ns * 1e-3,
                cpu * 1e-3,
                delay * 1e-3,
                (self._began - self._ended) * 1e-3 if self._ended else 0.0,
                bytes_in(batch),
                self.loader,
                0.0,
            )
        )
        if self._profiled:
            self._said(self.stages)
        self._ended = perf_counter_ns()


def run_delay_ns() -> int:
    """How long this thread was ready to run while others ran; 0 where the system does not tell."""
    try:
        with open(f"/proc/self/task/{threading.get_native_id()}/schedstat", "rb") as file:
            return int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def bytes_in(batch: Any, depth: int = 3) -> int:
    """Bytes of the tensors and arrays in a batch, as far as they are easily found."""
    size = getattr(batch, "nbytes", None)
    if isinstance(size, int):
        return size
    if depth and isinstance(batch, list | tuple):
        return sum(bytes_in(one, depth - 1) for one in batch[:16])
    if depth and isinstance(batch, dict):
        return sum(bytes_in(one, depth - 1) for one in list(batch.values())[:16])
    return 0


class Timed:
    """A dataset whose samples are timed; everything else is the dataset's own. Only a data loader's fetcher sees it."""

    def __init__(self, dataset: Any, clock: BatchClock) -> None:
        self._dataset, self._clock = dataset, clock
        many = getattr(dataset, "__getitems__", None)
        if many:
            self.__getitems__ = lambda indices: clock.several(many, indices)

    def __getitem__(self, index: Any) -> Any:
        return self._clock.sample(self._dataset.__getitem__, index)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)
