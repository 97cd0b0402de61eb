"""The short line of a step that has nothing unusual to tell: an array, in a third of the bytes of a record with names.

    [7,1794765845.213,0.3125,0.000251,0.001,0.031,1,"Adam",300,1.5,3561930154]
     │ time           loss   seconds  rate  share │ name   rows norm crc32 of everything before its comma
     number                                       └ level, an index into LEVELS

Most lines of a journal are such steps, and a small network takes thousands of them a second. A step with more to tell
(several losses, a loss scale, NaN) is written in full; `rows` and `norm` are left out when there are none.
"""

from __future__ import annotations

import math
import mmap
import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

from misstep import kernels
from misstep.core.levels import LEVELS
from misstep.core.run import Step

_FULL = b'{"kind":"step"'
_EVERY_LOSS, _LOSS_INTERVAL = 256, 16
_LEVEL_CODES: dict[str, int] = {level: code for code, level in enumerate(LEVELS)}


def loss_interval(step: int, interval: int) -> int:
    """Guarded steps show their loss alone, which is in the journal too: it keeps its own row in every step at first,
    in one of sixteen later, or as seldom as other rows."""
    return interval if step <= _EVERY_LOSS else max(interval, _LOSS_INTERVAL)


def quiet_line(
    number: int,
    time: float,
    loss: float | None,
    seconds: float,
    rate: float | None,
    overhead: float,
    level: str,
    name: str,
) -> bytes | None:
    """The line of a step without rows; None when it must be written in full."""
    if (loss is not None and loss - loss != 0.0) or (rate is not None and rate - rate != 0.0):
        return None
    try:
        return kernels.step_line(number, time, loss, seconds, rate, overhead, _LEVEL_CODES[level], name, 0, None)
    except (ValueError, KeyError):
        return None


def step_line(step: Step, rows: int) -> bytes | None:
    """The line; None for a step that must be written in full."""
    loss, norm, level = step.loss, step.gradient_norm, _LEVEL_CODES.get(step.captured)
    if (
        level is None
        or step.losses
        or step.loss_scale is not None
        or step.overflow
        or step.left
        or step.epoch is not None
        or not math.isfinite(loss or 0.0)
        or not math.isfinite(norm or 0.0)
        or not math.isfinite(step.learning_rate or 0.0)
    ):
        return None
    try:
        return kernels.step_line(
            step.number,
            step.time,
            loss,
            step.seconds,
            step.learning_rate,
            step.overhead,
            level,
            step.optimizer,
            rows,
            norm,
        )
    except ValueError:
        return None


def read_step_line(line: bytes) -> dict[str, Any] | None:
    """What the same step would be as a record of the journal; None when the line is damaged."""
    cut = line.rfind(b",")
    body = line[: max(cut, 0)]
    try:
        if line[cut:] != b",%d]" % zlib.crc32(body):
            return None
        number, time, loss, seconds, rate, overhead, level, optimizer, *more = msgspec.json.decode(body + b"]")
        step = {
            "number": number,
            "loss": loss,
            "seconds": seconds,
            "learning_rate": rate,
            "overhead": overhead,
            "captured": LEVELS[level],
            "gradient_norm": more[1] if len(more) > 1 else None,
            "optimizer": optimizer,
            "time": time,
        }
    except (ValueError, TypeError, IndexError, RecursionError):
        return None
    return {"kind": "step", "time": time, "step": step, "rows": more[0] if more else 0}


def steps_before(data: mmap.mmap, end: int) -> Iterator[bytes]:
    """The lines of steps in a journal, short or full, walking back from `end`, where a line begins."""
    while end > 0:
        begin = data.rfind(b"\n", 0, end - 1) + 1
        if data[begin : begin + 1] == b"[" or data[begin : begin + len(_FULL)] == _FULL:
            yield data[begin : end - 1]
        end = begin
