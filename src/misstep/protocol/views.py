"""The small shapes every message and payload is made of: a tensor's numbers, a hit, a watchpoint, a rank, a run.

JSON knows no NaN: a `Number` is a float or one of three words, made with `number()` and read with `as_float()`.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from misstep.core.graph import Phase, Source
from misstep.core.stats import TensorStats
from misstep.core.watching.watch import Action, Birth, ErrorMark, Hit, Reading, Severity, Watchpoint
from misstep.sentences.text import in_both, said

Number = float | Literal["NaN", "Infinity", "-Infinity"]
ControlPhase = Literal[
    "running", "pausing", "paused", "stepping", "terminating", "detached", "ended", "lost", "offline"
]
"""`lost`: the link to the process broke. `offline`: the run is finished and read from its directory."""
Granularity = Literal["module", "operator"]


def number(value: float | int | bool | None) -> Number | None:
    """A float that JSON can carry."""
    if value is None:
        return None
    value = float(value)
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def as_float(value: Number | None) -> float | None:
    """Back from `number`."""
    return None if value is None else float(value)


class Part(msgspec.Struct):
    """A piece of a message."""


class SourceView(Part):
    file: str
    line: int
    code: str = ""


class PlaceView(Part):
    """Where training stands inside a step."""

    node: str
    phase: Phase
    when: Literal["before", "after"]
    kind: Literal["module", "operator", "optimizer"]
    type: str = ""
    call: int = 1
    source: SourceView | None = None


class Reason(Part):
    """Why training stands still, or ended."""

    kind: Literal[
        "start",
        "user",
        "watchpoint",
        "step",
        "node",
        "until",
        "step_end",
        "other_rank",
        "across_ranks",
        "signal",
        "end",
    ]
    text: str = ""
    watchpoint: int | None = None
    hit: int | None = None
    rank: int | None = None
    text_zh: str = ""

    def __post_init__(self) -> None:
        in_both(self)


class QueuedView(Part):
    """A command or an edit that waits for its moment."""

    id: str
    op: str
    text: str
    text_zh: str = ""

    def __post_init__(self) -> None:
        in_both(self)


class RankView(Part):
    rank: int
    phase: ControlPhase
    step: int
    rev: int = 0
    place: PlaceView | None = None
    reason: Reason | None = None
    host: str = ""
    pid: int = 0
    alive: bool = True
    dropped: dict[str, int] = {}
    """What the link could not carry, by kind; hits are never among it."""
    memory_bytes: int = 0
    memory_limit: int = 0
    queued: tuple[QueuedView, ...] = ()


class StatsView(Part):
    count: int
    nan: int
    pos_inf: int
    neg_inf: int
    zeros: int
    negatives: int
    positives: int
    min: Number
    max: Number
    mean: Number
    abs_mean: Number
    l2: Number
    std: Number
    dtype: str = "unknown"
    shape: tuple[int, ...] = ()


class ReadingView(Part):
    """One parameter of a condition: threshold, what was found, whether it tripped."""

    parameter: str
    threshold: Number | bool
    actual: Number | None
    hit: bool


class HitView(Part):
    id: int
    watchpoint: int
    address: str
    node: str
    role: str
    slot: int
    step: int
    rank: int
    reason: str
    call: int = 1
    severity: Severity = "warning"
    birth: Birth = "unknown"
    order: int = 0
    condition: str = ""
    stats: StatsView | None = None
    readings: tuple[ReadingView, ...] = ()
    errors: tuple[ErrorMark, ...] = ()
    outdated: bool = False
    reason_zh: str = ""
    """The reason in Chinese."""

    def __post_init__(self) -> None:
        in_both(self, "reason")


class WatchpointView(Part):
    id: int
    condition: str
    parameters: dict[str, Number | bool] = {}
    on: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    then: Action = "note"
    enabled: bool = True
    limit: int | None = None
    name: str = ""
    origin: Literal["user", "recommended", "guard"] = "user"
    tensors: int | None = None
    """How many tensors it watches at present."""
    hits: int = 0
    but: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    note: str = ""
    """What the budget took away, when it took something."""


class RunBrief(Part):
    """A line in the list of runs."""

    run: str
    state: Literal["starting", "running", "paused", "finished", "failed", "stopped", "lost"]
    live: bool
    started: float
    phase: ControlPhase = "offline"
    step: int = 0
    loss: Number | None = None
    world_size: int = 1
    ranks: tuple[int, ...] = ()
    host: str = ""
    command: tuple[str, ...] = ()
    hits: int = 0
    spark: tuple[Number | None, ...] = ()
    """The last losses, at most 64."""
    found: str = ""
    """The first bad value, else the first finding, else the exception that ended it."""
    found_zh: str = ""
    bad: Literal["", "nan", "inf"] = ""
    """What was born in it; a run can finish and still have gone wrong."""
    params: dict[str, float | str | bool] = {}
    """Of its command line: `--lr 3e-4`, `model.width=64`, `--amp`."""
    tags: tuple[str, ...] = ()
    note: str = ""
    pinned: bool = False


def source_view(source: Source | None) -> SourceView | None:
    return None if source is None else SourceView(source.file, source.line, source.code)


def stats_view(stats: TensorStats) -> StatsView:
    return StatsView(
        **{
            name: getattr(stats, name)
            for name in ("count", "nan", "pos_inf", "neg_inf", "zeros", "negatives", "positives")
        },
        **{name: number(getattr(stats, name)) for name in ("min", "max", "mean", "abs_mean", "l2", "std")},  # type: ignore[arg-type]
        dtype=stats.dtype,
        shape=tuple(stats.shape),
    )


def hit_view(hit: Hit) -> HitView:
    address = hit.address
    return HitView(
        id=hit.id,
        watchpoint=hit.watchpoint,
        address=str(address),
        node=address.node,
        role=address.role,
        slot=address.slot,
        step=address.step or 0,
        rank=address.rank or 0,
        reason=hit.reason,
        call=address.call,
        severity=hit.severity,
        birth=hit.birth,
        order=hit.order,
        condition=hit.condition,
        stats=None if hit.stats is None else stats_view(hit.stats),
        readings=tuple(_reading(reading) for reading in hit.readings),
        errors=hit.errors,
        outdated=hit.outdated,
        reason_zh=said(hit.reason, "zh"),
    )


def watchpoint_view(
    watchpoint: Watchpoint, *, tensors: int | None = None, hits: int = 0, note: str = ""
) -> WatchpointView:
    return WatchpointView(
        id=watchpoint.id,
        condition=watchpoint.condition,
        parameters={
            name: value if isinstance(value, bool) else number(value)  # type: ignore[misc]
            for name, value in watchpoint.parameters.items()
        },
        on=tuple(str(pattern) for pattern in watchpoint.on),
        but=tuple(str(pattern) for pattern in watchpoint.but),
        types=watchpoint.types,
        nodes=watchpoint.nodes,
        then=watchpoint.then,
        enabled=watchpoint.enabled,
        limit=watchpoint.limit,
        name=watchpoint.name,
        origin=watchpoint.origin,
        tensors=tensors,
        hits=hits,
        note=note,
    )


def _reading(reading: Reading) -> ReadingView:
    threshold = reading.threshold
    shown = threshold if isinstance(threshold, bool) else number(threshold)
    return ReadingView(reading.parameter, shown, number(reading.actual), reading.hit)  # type: ignore[arg-type]
