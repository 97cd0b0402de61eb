"""Traces made by hand: steps and batches with the times one says, as a training would have written them."""

from __future__ import annotations

from typing import Any

import numpy as np

from misstep.core.segments import EPOCH, FIRST, SEGMENTS
from misstep.store.tracefile import BATCH, BATCH_RECORD, LOAD, LOAD_RECORD, STEP, STEP_RECORD, Records, Trace


def steps(count: int = 60, *, queue: int = -1, asks: int = 1, cpu: float = 1.0, **ms: float) -> Records:
    """Steps that all take so many milliseconds in these segments."""
    records = np.zeros(count, STEP_RECORD)
    records["kind"], records["queue"], records["asks"], records["cpu"] = STEP, queue, asks, cpu * 1e3
    records["number"] = np.arange(1, count + 1)
    for name, value in ms.items():
        records["spent"][:, SEGMENTS.index(name)] = value * 1e3  # type: ignore[arg-type]
    records["flags"][0] = FIRST | EPOCH
    return records


def batches(count: int = 60, *, make: float, cpu: float = 0.2, workers: int = 1, samples: int = 8) -> Records:
    records = np.zeros(count, BATCH_RECORD)
    records["kind"], records["samples"] = BATCH, samples
    records["worker"] = np.arange(count) % workers if workers else -1
    records["fetch"], records["cpu"], records["idle"] = make * 1e3, cpu * 1e3, 100.0
    records["slowest"], records["slowest_index"] = make / samples * 1e3, np.arange(count)
    return records


def load(*, cores: float = 8.0, machine: float = 1.0, own: float = 1.0, delay: float = 0.0) -> Records:
    records = np.zeros(3, LOAD_RECORD)
    records["kind"], records["wall"], records["allowed"] = LOAD, 1.0, cores
    records["machine"], records["own"], records["delay"] = machine, own, delay
    return records


def trace(steps: Records, batches: Records | None = None, loads: Records | None = None) -> Trace:
    empty: Any = np.zeros(0, BATCH_RECORD)
    return Trace(steps, batches if batches is not None else empty, loads if loads is not None else load())


def loader(workers: int, **more: Any) -> dict[str, Any]:
    return {
        "loader": 0,
        "framework": "pytorch",
        "dataset": "Numbers",
        "num_workers": workers,
        "batch_size": 8,
        "prefetch_factor": 2 if workers else None,
        "persistent_workers": False,
        "source": {"file": "train.py", "line": 7, "code": "DataLoader(…)"},
        **more,
    }
