"""`trace.bin`: where the time of every step went. One file of records of 64 bytes; the first byte says which kind.

    step    number, flags, when it began, ten segments, CPU time, how full the data queue was
    batch   one batch made by a data loader: time of its samples, the slowest of them, waiting and CPU time
    load    once a second: how busy the machine was, and how much of that we were

A record is written whole or not at all, so a reader takes what is there, live or after kill -9.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from misstep.core.segments import SEGMENTS

RECORD_BYTES = 64
STEP, BATCH, LOAD = 1, 2, 3

STEP_RECORD = np.dtype(
    [
        ("kind", "u1"),
        ("flags", "u1"),
        ("queue", "i2"),
        ("number", "u4"),
        ("began", "u8"),
        ("spent", "f4", (len(SEGMENTS),)),
        ("cpu", "f4"),
        ("asks", "u4"),
    ]
)
"""`began` in nanoseconds since 1970, `spent` and `cpu` in microseconds; `queue`: batches that lay ready at the first
ask of the step, -1 where there is no queue; `asks`: batches asked for."""
STEP_LAYOUT = "<BBhIQ10ffI"

BATCH_RECORD = np.dtype(
    [
        ("kind", "u1"),
        ("flags", "u1"),
        ("worker", "i2"),
        ("samples", "u4"),
        ("began", "u8"),
        ("fetch", "f4"),
        ("slowest", "f4"),
        ("slowest_index", "i8"),
        ("collate", "f4"),
        ("cpu", "f4"),
        ("delay", "f4"),
        ("idle", "f4"),
        ("bytes", "u8"),
        ("loader", "u4"),
        ("transfer", "f4"),
    ]
)
"""Times in microseconds. `worker`: -1 in the training process itself. `fetch`: all samples; `delay`: ready to run, and
no core was free; `idle`: since the batch before."""
BATCH_LAYOUT = "<BBhIQffqffffQIf"

LOAD_RECORD = np.dtype(
    [
        ("kind", "u1"),
        ("flags", "u1"),
        ("cores", "u2"),
        ("step", "u4"),
        ("time", "u8"),
        ("wall", "f4"),
        ("machine", "f4"),
        ("own", "f4"),
        ("training", "f4"),
        ("delay", "f4"),
        ("allowed", "f4"),
        ("resident", "u8"),
        ("spare", "u8", (2,)),
    ]
)
"""`wall` in seconds; `machine`, `own` and `training`: cores kept busy meanwhile, by everything, by this process and its
children, by the training process alone; `delay`: cores the training thread was denied; `allowed`: cores we may use;
`resident`: bytes the training process has in memory, 0 where the system does not tell."""
LOAD_LAYOUT = "<BBHIQffffffQQQ"

assert STEP_RECORD.itemsize == BATCH_RECORD.itemsize == LOAD_RECORD.itemsize == RECORD_BYTES

Records = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Trace:
    """What one rank's `trace.bin` holds."""

    steps: Records
    batches: Records
    loads: Records


def read_trace(path: Path, *, last: int | None = None) -> Trace:
    """The records there are, of the `last` ones when asked; nothing when there is no such file."""
    try:
        size = path.stat().st_size // RECORD_BYTES
        first = max(0, size - last) if last else 0
        raw: npt.NDArray[Any] = np.fromfile(path, dtype=(np.void, RECORD_BYTES), count=size - first, offset=first * 64)
    except OSError:
        raw = np.empty(0, dtype=(np.void, RECORD_BYTES))
    kinds = raw.view(np.uint8).reshape(-1, RECORD_BYTES)[:, 0] if len(raw) else np.empty(0, np.uint8)
    return Trace(
        raw[kinds == STEP].view(STEP_RECORD),
        raw[kinds == BATCH].view(BATCH_RECORD),
        raw[kinds == LOAD].view(LOAD_RECORD),
    )
