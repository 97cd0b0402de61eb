"""What REST under /api/v1 answers, as types, and the JSON Schema of everything a browser can meet.

Tables travel by column: a list for each field, all of one length, so that 50,000 nodes are a dozen arrays and not
50,000 objects. Text that repeats (types, files, dtypes, shapes) is sent once and named by its number. Whole tensors
never travel as JSON: `TensorHeader` and `ComparisonHeader` stand in front of raw little-endian bytes.

    GET  /api/v1/runs                                      RunList
    GET  /api/v1/runs/{run}                                RunDetail
    GET  /api/v1/runs/{run}/graph?rank=                    GraphColumns          ETag: the graph's revision
    GET  /api/v1/runs/{run}/scalars?tag=&rank=&points=     list[ScalarSeries]
    GET  /api/v1/runs/{run}/stats?address=&steps=          StatsHistory
    GET  /api/v1/runs/{run}/steps/{step}?rank=             StepTable             immutable, ETag
    GET  /api/v1/runs/{run}/hits?watchpoint=&step=&node=   HitList
    GET  /api/v1/runs/{run}/watchpoints                    WatchList
    GET  /api/v1/runs/{run}/node?name=&step=&rank=         NodeInfo
    GET  /api/v1/runs/{run}/search?q=&limit=&offset=       SearchResult
    GET  /api/v1/runs/{run}/sources                        SourceList
    GET  /api/v1/runs/{run}/tensor?address=&slice=&want=   binary: TensorHeader + data, or Unavailable (404, 409)
    GET  /api/v1/runs/{run}/compare?a=&b=&mode=&atol=&rtol=&slice=&want=   binary: ComparisonHeader + data
    GET  /api/v1/runs/{run}/npy?address=                   application/octet-stream, a .npy file
    GET  /api/v1/runs/{run}/state                          State
    GET  /api/v1/runs/{run}/story?lang=                    RunStory
    POST /api/v1/runs/{run}/command                        Command → Ack | Nack (409)
    POST /api/v1/runs/{run}/watchpoints                    WatchEdit → Ack | Nack
    GET  /api/v1/conditions                                list[ConditionView]
    GET  /api/v1/schema                                    JSON Schema
    …/records, the flight records of a run                 core/crashviews.py

Dumps, checkpoints and comparisons are in held.py.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from misstep.core import messages
from misstep.core.crashviews import CRASH_PAYLOADS
from misstep.core.graph import NodeKind, Phase
from misstep.core.held import HELD, CheckAsk, ComparisonAsk, MapText
from misstep.core.storyviews import STORY_PAYLOADS
from misstep.core.views import (
    HitView,
    Number,
    Part,
    RankView,
    RunBrief,
    SourceView,
    StatsView,
    WatchpointView,
)

UnavailableReason = Literal[
    "not_captured", "not_watched", "freed", "too_large", "other_rank", "running", "no_such_step", "unknown"
]
CompareMode = Literal["a", "b", "difference", "absolute", "relative", "ulp"]


class Failure(Part):
    """Any REST error: a code for programs, a sentence for people."""

    code: str
    text: str
    params: dict[str, Any] = msgspec.field(default_factory=dict)


class RunList(Part):
    runs: tuple[RunBrief, ...]
    total: int
    directory: str


class RunDetail(Part):
    brief: RunBrief
    versions: dict[str, str]
    git: dict[str, str]
    settings: dict[str, Any]
    ranks: tuple[RankView, ...]
    watchpoints: tuple[WatchpointView, ...]
    tags: tuple[str, ...]
    """Curves this run has: loss, learning_rate, seconds …"""
    first_step: int
    last_step: int
    stats_steps: tuple[int, ...] = ()
    """Steps with statistics, at most 10,000, evenly thinned."""
    tensor_steps: tuple[int, ...] = ()
    """Steps with whole tensors in the pack."""
    graph_rev: int = 0
    seconds: float = 0.0
    exit_code: int | None = None
    findings: int = 0
    records: tuple[str, ...] = ()
    """Flight records, the newest first: `crash`, `hang`, `asked`, `end`."""


class ScopeColumns(Part):
    """Scopes by number; scope 0 is the outermost, with an empty label and parent -1."""

    parent: tuple[int, ...]
    label: tuple[str, ...]
    name: tuple[str, ...]


class NodeColumns(Part):
    """Nodes by number, as in the run's catalog; `type`, `file` and `graph` are numbers into its lists."""

    name: tuple[str, ...]
    scope: tuple[int, ...]
    kind: tuple[NodeKind, ...]
    phase: tuple[Phase, ...]
    type: tuple[int, ...]
    order: tuple[int, ...]
    file: tuple[int, ...]
    """-1 when no source line is known."""
    line: tuple[int, ...]
    graph: tuple[int, ...]
    forward: tuple[int, ...]
    """For a backward node the number of its forward node, else -1."""


class EdgeColumns(Part):
    source: tuple[int, ...]
    target: tuple[int, ...]
    source_slot: tuple[int, ...]
    target_slot: tuple[int, ...]
    dtype: tuple[int, ...]
    shape: tuple[int, ...]


class TensorColumns(Part):
    """Every tensor of the run by number: node, role, slot, call."""

    node: tuple[int, ...]
    role: tuple[int, ...]
    slot: tuple[int, ...]
    call: tuple[int, ...]


class GraphColumns(Part):
    run: str
    rank: int
    rev: int
    scopes: ScopeColumns
    nodes: NodeColumns
    edges: EdgeColumns
    tensors: TensorColumns
    types: tuple[str, ...]
    files: tuple[str, ...]
    graphs: tuple[str, ...]
    dtypes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    roles: tuple[str, ...]


class ScalarSeries(Part):
    """A curve, thinned to the wanted points by keeping the least and the greatest of every bucket."""

    tag: str
    rank: int
    x: tuple[int, ...]
    y: tuple[Number | None, ...]
    total: int
    method: Literal["all", "min-max"] = "all"


class StatsHistory(Part):
    """The statistics of one tensor over steps."""

    address: str
    step: tuple[int, ...]
    columns: dict[str, tuple[Number, ...]]
    """count nan pos_inf neg_inf zeros negatives positives min max mean abs_mean l2 std"""
    dtype: str = "unknown"
    shape: tuple[int, ...] = ()
    total: int = 0


class StepTable(Part):
    """Everything one step showed: a row for each tensor, in execution order."""

    run: str
    rank: int
    step: int
    tensor: tuple[int, ...]
    dtype: tuple[str, ...]
    shape: tuple[tuple[int, ...], ...]
    inputs_bad: tuple[bool, ...]
    columns: dict[str, tuple[Number, ...]]
    loss: Number | None = None
    seconds: float = 0.0


class HitList(Part):
    hits: tuple[HitView, ...]
    total: int
    by_watchpoint: dict[str, int]
    origins: int
    dropped: int = 0
    """Counted but not kept: the watchpoint had reached its limit."""


class WatchList(Part):
    watchpoints: tuple[WatchpointView, ...]
    memory_bytes: int = 0
    memory_limit: int = 0


class DryRun(Part):
    """What a watchpoint would do on the tensors that are there now."""

    hits: int
    tensors: int
    bytes_per_step: int
    seconds_per_step: float
    memory_bytes: int
    examples: tuple[HitView, ...] = ()
    note: str = ""


class Neighbour(Part):
    node: str
    slot: int
    dtype: str = ""
    shape: tuple[int, ...] = ()


class TensorBrief(Part):
    """A tensor of a node at a step, with a small history."""

    address: str
    role: str
    slot: int
    call: int
    stats: StatsView | None
    available: bool
    reason: str = ""
    spark: tuple[Number | None, ...] = ()
    """abs_mean of the last 64 steps."""


class NodeInfo(Part):
    name: str
    type: str
    kind: NodeKind
    phase: Phase
    scope: str
    order: int
    graph: str
    forward: str
    backward: tuple[str, ...]
    source: SourceView | None
    tensors: tuple[TensorBrief, ...]
    producers: tuple[Neighbour, ...]
    consumers: tuple[Neighbour, ...]
    children: int
    watched_by: tuple[int, ...] = ()
    hits: tuple[int, ...] = ()
    same_line: tuple[str, ...] = ()


class FoundNode(Part):
    name: str
    type: str
    kind: NodeKind
    order: int
    index: int
    hits: int = 0
    watched: bool = False
    source: SourceView | None = None


class SearchResult(Part):
    query: str
    total: int
    nodes: tuple[FoundNode, ...]


class SourceLine(Part):
    file: str
    line: int
    code: str
    nodes: tuple[str, ...]
    total: int = 0


class SourceList(Part):
    lines: tuple[SourceLine, ...]
    total: int


class Histogram(Part):
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    nan: int = 0
    pos_inf: int = 0
    neg_inf: int = 0


class Found(Part):
    """The next element that is not finite, in the order of the slice's memory; None when there is none."""

    index: tuple[int, ...] | None
    value: Number | None = None


class Tile(Part):
    """A rectangle of the sliced tensor; row and column count pooled blocks when pool > 1."""

    row: int
    column: int
    rows: int
    columns: int
    pool: int = 1


class TensorHeader(Part):
    """In front of a tile's bytes: u32 little-endian header length, this as JSON, then `bytes` bytes in C order.

    `data_dtype` is what the bytes are: bfloat16 and float8 are widened to float32. With pool > 1 the data are
    float32 and each element stands for pool x pool: NaN before Inf before the value of the greatest magnitude.
    """

    address: str
    dtype: str
    shape: tuple[int, ...]
    slice: str
    sliced_shape: tuple[int, ...]
    data_dtype: str
    data_shape: tuple[int, ...]
    bytes: int
    origin: Literal["live", "stored"]
    id: str = ""
    tile: Tile | None = None
    stats: StatsView | None = None
    """Of the slice asked for."""
    histogram: Histogram | None = None
    found: Found | None = None
    step: int | None = None
    rank: int = 0


class Differences(Part):
    """Two tensors, element by element."""

    count: int
    out_of_tolerance: int
    max_absolute: Number
    mean_absolute: Number
    max_relative: Number
    max_ulp: int
    cosine: Number
    l2: Number
    atol: float
    rtol: float
    same_nonfinite: bool
    worst: tuple[int, ...] = ()


class ComparisonHeader(Part):
    a: str
    b: str
    mode: CompareMode
    slice: str
    sliced_shape: tuple[int, ...]
    data_dtype: str
    data_shape: tuple[int, ...]
    bytes: int
    differences: Differences
    id: str = ""
    tile: Tile | None = None
    a_stats: StatsView | None = None
    b_stats: StatsView | None = None


class Unavailable(Part):
    """The tensor is known but its values are not here: why, and the command that gets them."""

    address: str
    reason: UnavailableReason
    text: str
    code: str = "unavailable"


class ParameterView(Part):
    name: str
    type: Literal["number", "flag"]
    default: Number | bool | None = None
    required: bool = False
    help: str = ""


class ConditionView(Part):
    name: str
    title: str
    help: str
    category: str
    parameters: tuple[ParameterView, ...]
    needs: tuple[str, ...] = ()


PAYLOADS: tuple[type[Part], ...] = (
    RunList, RunDetail, GraphColumns, ScalarSeries, StatsHistory, StepTable, HitList, WatchList, DryRun, NodeInfo,
    SearchResult, SourceList, TensorHeader, ComparisonHeader, Unavailable, ConditionView, Failure,
)  # fmt: skip

_SENT = (*get_args(messages.ClientMessage), messages.Resume, messages.WatchSpec, CheckAsk, ComparisonAsk, MapText)
_FROM_CLIENTS = {kind.__name__ for kind in _SENT}


def schema() -> dict[str, Any]:
    """One JSON Schema: every message and payload under `$defs`, `ServerMessage` and `ClientMessage` as the unions."""
    spoken = (*get_args(messages.ServerMessage), *get_args(messages.ClientMessage))
    kinds = (*spoken, *PAYLOADS, *CRASH_PAYLOADS, *STORY_PAYLOADS, *HELD)
    _, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    for name, definition in definitions.items():
        # The hub writes every field, so a reader may rely on all of them; a client may leave out the defaults.
        if name not in _FROM_CLIENTS and definition.get("type") == "object":
            definition["required"] = list(definition["properties"])
        definition["additionalProperties"] = True
    unions = {
        name: {"oneOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in get_args(union)]}
        for name, union in (("ServerMessage", messages.ServerMessage), ("ClientMessage", messages.ClientMessage))
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "misstep",
        "description": f"Messages and payloads of misstep, protocol {messages.PROTOCOL}.",
        "$defs": dict(sorted({**definitions, **unions}.items())),
    }
