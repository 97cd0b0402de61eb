"""What REST answers about things that lie still: dumps, checkpoints, and two of them side by side.

A thing has a name the hub gave it (a run's own, a path below the hub's folder, the last part of a path given on the
command line); a moment of it is `name@120#3`. Work that may take long is a job: asked for with POST, looked at by its
number, cancelled by it.

    GET  /api/v1/things                                    ThingList
    GET  /api/v1/things/dump?of=&step=&rank=&q=&offset=    DumpTable             what was kept, one step of one rank
    GET  /api/v1/things/tensor?of=&address=&slice=&want=   binary: TensorHeader + data
    GET  /api/v1/things/npy?of=&address=                   a .npy file
    GET  /api/v1/things/checkpoint?of=                     CheckpointView
    GET  /api/v1/things/series?of=&read=                   CheckpointSeries      a large one is read with read=1
    POST /api/v1/checks              CheckAsk              JobView
    GET  /api/v1/checks/{id}                               HitList
    POST /api/v1/maps                MapText               MapText               with its number
    GET  /api/v1/maps/{id}                                 MapText
    POST /api/v1/comparisons         ComparisonAsk         JobView
    GET  /api/v1/comparisons/{id}                          ComparisonTable
    GET  /api/v1/comparisons/{id}/pair?row=&mode=&slice=   binary: ComparisonHeader + data
    GET  /api/v1/comparisons/{id}/graph?side=a             GraphColumns
    GET  /api/v1/comparisons/{id}/map                      the map file `misstep diff --map` reads
    GET  /api/v1/jobs/{id}?wait=                           JobView
    POST /api/v1/jobs/{id}/cancel                          JobView
"""

from __future__ import annotations

from typing import Literal

from misstep.protocol.views import Number, Part, StatsView

ThingKind = Literal["run", "dump", "checkpoint"]
JobState = Literal["waiting", "running", "done", "failed", "cancelled"]


class Moment(Part):
    """One step of one rank of a thing, and how much of it was kept; step is None where nobody counted."""

    step: int | None
    rank: int
    tensors: int
    bytes: int


class Thing(Part):
    """Something that holds tensors and can be opened by its name."""

    name: str
    kind: ThingKind
    format: str = ""
    bytes: int = 0
    modified: float = 0.0
    live: bool = False


class ThingList(Part):
    things: tuple[Thing, ...]
    directory: str
    more: bool = False
    """There were too many to list all."""


class DumpRow(Part):
    """A tensor that was kept."""

    address: str
    node: str
    role: str
    slot: int
    call: int
    type: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    order: int
    source: str = ""
    stats: StatsView | None = None
    """None where the values cannot be read."""


class DumpTable(Part):
    of: str
    kind: ThingKind
    format: str
    moments: tuple[Moment, ...]
    step: int | None
    rank: int
    query: str
    total: int
    """Tensors of this step and rank that fit the search."""
    offset: int
    rows: tuple[DumpRow, ...]
    asked: tuple[str, ...] = ()
    """What was to be dumped, in the words of the journal."""
    dropped: int = 0
    """Tensors that should have been kept and were not."""
    dropped_names: tuple[str, ...] = ()
    note: str = ""


class CheckAsk(Part):
    of: str
    watch: tuple[str, ...] = ()
    """Watchpoints in words, `max > 6e4 on *:output`; the recommended ones when there is none."""
    first: int | None = None
    last: int | None = None
    rank: int | None = None


class WeightView(Part):
    """One tensor of a checkpoint."""

    name: str
    address: str
    section: Literal["weights", "optimizer"]
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    trainable: bool | None
    state: Literal["fine", "nan", "inf", "exploding", "all zero", "constant", "unreadable"]
    stats: StatsView


class CheckpointView(Part):
    of: str
    format: str
    parameters: int
    checksum: str
    summary: str
    weights: tuple[WeightView, ...]
    extras: dict[str, str]


class CheckpointSeries(Part):
    """Checkpoints of one training, by their names, and the tensors that are the same in all of them."""

    of: str
    names: tuple[str, ...]
    """In order; only the one asked for where it stands alone."""
    read: bool
    """Small enough, or insisted on; otherwise nobody knows what is unchanged."""
    bytes: int
    unchanged: tuple[str, ...]
    """Addresses."""


class MapText(Part):
    """A map file, TOML or JSON; `id` names it in links."""

    text: str
    id: str = ""


class ComparisonAsk(Part):
    a: str
    b: str
    map: str = ""
    """The number of a map; empty for none."""


class JobView(Part):
    id: str
    state: JobState
    done: int = 0
    total: int = 0
    """0 while nobody knows how much there is to do."""
    seconds: float = 0.0
    text: str = ""
    """Why it failed."""


class ComparisonColumns(Part):
    """A row for each pair in execution order, and for each parameter that is missing on one side."""

    left: tuple[str, ...]
    """`layer1.0.bn1:output`; empty when it is only on the right."""
    right: tuple[str, ...]
    left_node: tuple[str, ...]
    right_node: tuple[str, ...]
    left_address: tuple[str, ...]
    """With step and rank, as the thing itself calls it."""
    right_address: tuple[str, ...]
    type: tuple[str, ...]
    dtype: tuple[str, ...]
    shape: tuple[tuple[int, ...], ...]
    step: tuple[int | None, ...]
    source: tuple[str, ...]
    verdict: tuple[Literal["identical", "noise", "different", "shape", "dtype", "missing"], ...]
    part: tuple[Literal["", "cause", "consequence"], ...]
    how: tuple[str, ...]
    layout: tuple[str, ...]
    note: tuple[str, ...]
    count: tuple[int, ...]
    equal: tuple[int, ...]
    relative: tuple[Number | None, ...]
    expected: tuple[Number | None, ...]
    """The relative difference that rounding explains."""
    max_abs: tuple[Number | None, ...]
    max_rel: tuple[Number | None, ...]
    cosine: tuple[Number | None, ...]
    max_ulp: tuple[Number | None, ...]
    share_within: tuple[Number | None, ...]


class Unmatched(Part):
    name: str
    node: str
    type: str
    dtype: str
    shape: tuple[int, ...]
    address: str


class ComparisonTable(Part):
    id: str
    a: str
    b: str
    map: str
    close: bool
    summary: str
    counts: dict[str, int]
    first: int
    """The row of the first difference; -1 when all are close."""
    cause: int
    """The row of the first cause; -1 when there is none."""
    rows: ComparisonColumns
    only_left: tuple[Unmatched, ...]
    only_right: tuple[Unmatched, ...]
    notes: tuple[str, ...]
    seconds: float
    dtypes: tuple[str, ...] = ()
    sections: tuple[Literal["weights", "optimizer"], ...] = ()
    """Of two checkpoints: which part of the checkpoint each row belongs to."""


HELD: tuple[type[Part], ...] = (
    ThingList, DumpTable, CheckpointView, CheckpointSeries, JobView, MapText, ComparisonTable, CheckAsk, ComparisonAsk,
)  # fmt: skip
