"""Memory: the switch for reuse, and a report of one step from measured lifetimes.

naive      every tensor of the step has memory of its own: what no reuse would need
live peak  the most that was alive at one moment: what perfect reuse would need
actual     what the process really held at its highest

report = measure_memory(lambda: train_step(batch))
print(report)      # who holds memory at the peak, with the line that asked for it
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Protocol, TypeAlias

from misstep.core.graph import Source
from misstep.errors import TrainError

Phase: TypeAlias = Literal["before", "forward", "backward"]
"""When memory was asked for; `before` the step: weights, optimizer state, the batch."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Tensors that one line of the program made and that are alive at the peak."""

    bytes: int
    tensors: int
    operator: str
    shape: tuple[int, ...]
    """Of the largest."""
    dtype: str
    phase: Phase
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """One step's memory. None stands for what this framework or platform does not tell."""

    framework: str
    allocations: int
    naive_bytes: int
    standing_bytes: int
    """Of tensors the step used and found there."""
    live_peak_bytes: int | None
    actual_peak_bytes: int | None
    """Of the whole process, Python included, on a CPU; of torch's allocator on a GPU."""
    resident_before_bytes: int | None
    holders: tuple[Holder, ...] = ()
    """At the live peak, largest first."""
    notes: tuple[str, ...] = ()

    @property
    def saved_by_reuse(self) -> float | None:
        """The share of the naive sum that reuse can save: 0.75 when a quarter is enough."""
        if self.live_peak_bytes is None or not self.naive_bytes:
            return None
        return 1 - self.live_peak_bytes / self.naive_bytes

    def __str__(self) -> str:
        lines = [f"naive sum   {_size(self.naive_bytes)}  {self.allocations} allocations, and what was there before"]
        if self.live_peak_bytes is not None:
            saved = f"  reuse can save {self.saved_by_reuse:.0%}" if self.saved_by_reuse else ""
            lines.append(f"live peak   {_size(self.live_peak_bytes)}{saved}")
        if self.actual_peak_bytes is not None:
            before = self.resident_before_bytes or 0
            lines.append(f"actual peak {_size(self.actual_peak_bytes)}  of the process; {_size(before).strip()} before")
        if self.holders:
            lines.append("at the live peak:")
        for holder in self.holders:
            line = "" if holder.source is None else f"  {holder.source.file}:{holder.source.line}"
            shape = "x".join(map(str, holder.shape)) or "scalar"
            count = f"{holder.tensors} x " if holder.tensors > 1 else ""
            what = f"{count}{holder.operator or 'tensor'} {shape} {holder.dtype}"
            lines.append(f"  {_size(holder.bytes)}  {holder.phase:8}  {what}{line}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


@dataclass(frozen=True, slots=True)
class MemoryReuse:
    """What the switch did, and what it cannot do here."""

    on: bool
    effects: tuple[str, ...]
    limits: tuple[str, ...]


class Meter(Protocol):
    """One framework's measurement, entered around the step."""

    allocations: int

    def watch(self) -> AbstractContextManager[None]: ...

    def report(self, *, top: int, actual: int | None, before: int | None) -> MemoryReport: ...


def measure_memory(step: Callable[[], Any], *, top: int = 10) -> MemoryReport:
    """Run one step and report its memory; it runs several times slower meanwhile, and computes the same.

    >>> print(measure_memory(lambda: train_step(batch)))
    """
    names = [name for name in ("torch", "mindspore") if name in sys.modules]
    if not names:
        raise TrainError("measure_memory watches torch and mindspore, and this program has imported neither")
    meters: list[Meter] = [import_module(f"misstep.train.memory.{name}").make_meter() for name in names]
    before = resident_bytes()
    fresh = _forget_peak()
    with ExitStack() as watching:
        for meter in meters:
            watching.enter_context(meter.watch())
        step()
    actual = resident_bytes(peak=True) if fresh else None
    busiest = max(meters, key=lambda meter: meter.allocations)
    return busiest.report(top=top, actual=actual, before=before)


def set_memory_reuse(on: bool) -> MemoryReuse:
    """Let tensors share memory (the default), or give each its own, as far as the platform lets us.

    What takes effect is said in the result; nothing is pretended.
    """
    if not isinstance(on, bool):
        raise TrainError(f"set_memory_reuse takes True or False, got {on!r}")
    effects: list[str] = []
    limits: list[str] = []
    for name in ("torch", "mindspore"):
        if name in sys.modules:
            done, not_done = import_module(f"misstep.train.memory.{name}").switch_reuse(on)
            effects += done
            limits += not_done
    if not effects and not limits:
        limits.append("no framework is imported yet; call this after importing yours")
    _reuse[:] = [MemoryReuse(on, tuple(effects), tuple(limits))]
    return _reuse[0]


def memory_reuse() -> MemoryReuse:
    """The last word on memory reuse; on, as everywhere, when nobody said anything."""
    return _reuse[0] if _reuse else MemoryReuse(True, (), ())


def resident_bytes(*, peak: bool = False) -> int | None:
    """Memory of this process, or its highest since `_forget_peak`; None where /proc does not tell."""
    name = "VmHWM:" if peak else "VmRSS:"
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith(name)), None)
    except OSError:
        return None


_reuse: list[MemoryReuse] = []


def _forget_peak() -> bool:
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
            clear.write("5")
    except OSError:
        return False
    return True


def _size(count: int) -> str:
    value = float(count)
    for unit in ("B", "KB", "MB"):
        if value < 1024:
            return f"{value:7.1f} {unit:2}"
        value /= 1024
    return f"{value:7.2f} GB"


def largest(holders: Iterable[Holder], top: int) -> tuple[Holder, ...]:
    """The `top` largest; the rest as one, so that the sum is still the peak."""
    ordered = sorted(holders, key=lambda holder: -holder.bytes)
    shown, rest = ordered[:top], ordered[top:]
    if rest:
        total, tensors = sum(holder.bytes for holder in rest), sum(holder.tensors for holder in rest)
        shown.append(Holder(total, tensors, f"{len(rest)} other lines:", (), "", rest[0].phase))
    return tuple(shown)
