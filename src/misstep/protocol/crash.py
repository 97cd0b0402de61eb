"""A flight record as the page gets it: one report, everything the recorder kept of a run's end.

    GET  /api/v1/runs/{run}/records                       RecordList
    GET  /api/v1/runs/{run}/records/{record}?lang=        CrashReport
    GET  /api/v1/runs/{run}/records/{record}/zip          the bundle itself
    POST /api/v1/runs/{run}/records                       RecordList, after making one of a run that is over

Facts, with numbers as they are: the page makes the sentences, in its own language. Only the likely causes are
sentences already, because the knowledge base holds them in both languages.
"""

from __future__ import annotations

from typing import Any

import msgspec

from misstep.protocol.views import Number, Part


class RecordBrief(Part):
    """A bundle of a run."""

    id: str
    """`crash`, `hang`, `asked`, `end`: the file's name without its ending."""
    time: float
    bytes: int


class RecordList(Part):
    records: tuple[RecordBrief, ...]
    """The newest first."""
    can_make: bool
    """The run is over and a record can be made of what it left."""


class CrashEvent(Part):
    """What ended a process, or why a record of it was made."""

    kind: str
    name: str = ""
    text: str = ""
    code: int | None = None
    seconds: float = 0.0
    memory_killer: bool = False


class CrashSpot(Part):
    """Where a process was."""

    step: int
    phase: str = ""
    node: str = ""
    type: str = ""
    source: str = ""
    code: str = ""
    function: str = ""


class RankEnding(Part):
    rank: int
    event: CrashEvent
    spot: CrashSpot
    last_step: int
    last_time: float
    collective: str = ""
    waiting_seconds: float = 0.0
    collectives: int = 0
    culprit: bool = False
    """It stopped first; of a hang, the one the others wait for."""


class CauseView(Part):
    id: str
    found_in: str
    matched: str
    title: str
    why: str = ""
    advice: str = ""


class FrameView(Part):
    file: str
    line: int
    function: str = ""
    code: str = ""
    library: bool = False
    locals: dict[str, str] = msgspec.field(default_factory=dict)


class ThreadView(Part):
    name: str
    main: bool
    frames: tuple[FrameView, ...]
    """The outermost first."""


class KernelThread(Part):
    """A thread as the operating system saw it."""

    id: str
    name: str = ""
    state: str = ""
    waits_in: str = ""


class HolderView(Part):
    """Who held memory."""

    name: str
    kind: str
    bytes: int
    count: int = 1
    dtype: str = ""
    shape: tuple[int, ...] = ()


class JournalLine(Part):
    kind: str
    rank: int
    time: float
    text: str


class PassedNode(Part):
    order: int
    node: str
    type: str
    phase: str
    done: bool
    here: bool
    source: str = ""
    code: str = ""


class ReachedView(Part):
    """Positions `first` to `last` of `total` in execution order: somewhere there the process ended."""

    first: int
    last: int
    total: int
    nodes: tuple[PassedNode, ...]
    phases: dict[str, int]
    """Each phase of a step with the position of its last node, in order."""


class RecordedStep(Part):
    step: int
    time: float
    seconds: float
    loss: Number | None = None
    learning_rate: Number | None = None
    memory: dict[str, int] = msgspec.field(default_factory=dict)


class BatchView(Part):
    dtype: str
    shape: tuple[int, ...]
    digest: str


class KeptValue(Part):
    """A whole tensor that travels in the record."""

    address: str
    dtype: str
    shape: tuple[int, ...]


class CrashReport(Part):
    run: str
    record: str
    kind: str
    time: float
    bytes: int
    endings: tuple[RankEnding, ...]
    causes: tuple[CauseView, ...]
    events: tuple[JournalLine, ...]
    reached: ReachedView | None
    trail: tuple[str, ...]
    """Modules entered, the latest first."""
    threads: tuple[ThreadView, ...]
    """The culprit's; the one that failed first."""
    machine: tuple[str, ...]
    """Frames of machine code, the innermost first: where a fatal signal struck, or where the main thread was."""
    stacks: dict[str, str]
    """What the fault handler wrote, by occasion."""
    kernel_threads: tuple[KernelThread, ...]
    steps: tuple[RecordedStep, ...]
    memory: dict[str, int]
    limits: dict[str, int]
    holders: tuple[HolderView, ...]
    batch: tuple[BatchView, ...]
    log: tuple[str, ...]
    random: dict[str, str]
    command: tuple[str, ...]
    host: str
    started: float
    versions: dict[str, str]
    device: dict[str, str]
    git: dict[str, str]
    environment: dict[str, str]
    settings: dict[str, Any]
    problems: tuple[str, ...]
    values: tuple[KeptValue, ...] = ()
    left_out: int = 0
    """Whole tensors the run kept that had no room in the record."""


CRASH_PAYLOADS: tuple[type[Part], ...] = (RecordList, CrashReport)
