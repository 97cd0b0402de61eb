"""How busy the machine is while we train, and how much of that is us: the kernel's accounts, read once a second."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Load:
    """Differences between two looks."""

    def __init__(self) -> None:
        self.cores = os.cpu_count() or 1
        self.allowed = allowed_cores()
        self._then = self._look()

    def since(self) -> tuple[float, float, float, float, float]:
        """Since the last time: seconds, and the cores kept busy by everything, by us and our children, by this process
        alone, and those this thread was denied."""
        now, then = self._look(), self._then
        self._then = now
        wall = max(1e-6, now[0] - then[0])
        return (wall, *(max(0.0, (a - b) / wall) for a, b in zip(now[1:], then[1:])))  # type: ignore[return-value]

    def _look(self) -> tuple[float, float, float, float, float]:
        training = time.process_time()
        return time.perf_counter(), machine_seconds(), training + children_seconds(), training, denied_seconds()


def machine_seconds() -> float:
    """Core seconds the whole machine has been busy."""
    try:
        with open("/proc/stat", "rb") as file:
            user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    except (OSError, ValueError):
        return 0.0
    return (user + nice + system + irq + softirq + steal) / _TICK


def denied_seconds() -> float:
    """How long this thread was ready to run and got no core."""
    try:
        with open(f"/proc/self/task/{threading.get_native_id()}/schedstat", "rb") as file:
            return int(file.read().split()[1]) * 1e-9
    except (OSError, ValueError, IndexError):
        return 0.0


def children_seconds() -> float:
    """CPU time of our direct children, alive or gone: workers of data loaders."""
    total = os.times()
    seconds = total.children_user + total.children_system
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
            children = file.read().split()
    except OSError:
        return seconds
    for child in children[:256]:
        try:
            with open(f"/proc/{int(child)}/stat", "rb") as file:
                facts = file.read().rpartition(b")")[2].split()
            seconds += (int(facts[11]) + int(facts[12])) / _TICK
        except (OSError, ValueError, IndexError):
            continue
    return seconds


def resident_bytes() -> int:
    """Memory this process has; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def allowed_cores() -> float:
    """Cores this process may use: its affinity, and the limit of its control group."""
    cores = float(len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else float(os.cpu_count() or 1)
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores, int(quota) / int(period))
    except (OSError, ValueError):
        pass
    return cores
