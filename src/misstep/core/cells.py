"""Where a training process is, as a handful of integers: cheap enough to be written at every module call.

The cells lie at the front of the flight recorder's file, mapped into memory, so that they are still there after
kill -9. An adapter writes them by plain assignment; without a recorder they are a plain list, and nobody asks which.

    cells[ENTERED] += 1;  cells[TRAIL + (cells[ENTERED] & TRAIL_MASK)] = id(module)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

ENTERED = 0
"""How many modules were entered so far."""
PHASE = 1
"""What training is busy with, an index into PHASES."""
LINE = 2
"""Line of the user's program that called the network."""
FILE = 3
"""Which file that is: an index into the recorder's list of files."""
COLLECTIVE = 4
"""The collective under way: 1 + index into COLLECTIVES; 0 for none."""
SINCE = 5
"""When it began, in nanoseconds since 1970."""
COLLECTIVES_DONE = 6
STEP = 7
"""The step under way."""
STEP_BEGAN = 8
"""When it began, in nanoseconds since 1970."""
LOGGED = 9
"""Bytes of log text so far."""
TRAIL = 16
TRAIL_LENGTH = 64
TRAIL_MASK = TRAIL_LENGTH - 1
COUNT = 128

Busy = Literal["between", "forward", "backward", "optimizer"]
PHASES: tuple[Busy, ...] = ("between", "forward", "backward", "optimizer")
BETWEEN, FORWARD, BACKWARD, OPTIMIZER = range(4)

COLLECTIVES = (
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "irecv",
    "isend",
    "monitored_barrier",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "wait",
)
"""Calls in which one rank waits for others."""


class Cells(Protocol):
    """A mapped memory of 64-bit integers, or a list that stands in for it."""

    def __getitem__(self, index: int, /) -> int: ...
    def __setitem__(self, index: int, value: int, /) -> None: ...


def no_cells() -> Cells:
    """What an adapter writes to while nobody records."""
    return [0] * COUNT


def trail(cells: Sequence[int]) -> Iterator[int]:
    """The ids of the modules entered last, the latest first."""
    entered = cells[ENTERED]
    for back in range(min(entered, TRAIL_LENGTH)):
        yield cells[TRAIL + ((entered - back) & TRAIL_MASK)]


def collective_name(code: int) -> str:
    """The collective of a cell; empty for none."""
    return COLLECTIVES[code - 1] if 0 < code <= len(COLLECTIVES) else ""
