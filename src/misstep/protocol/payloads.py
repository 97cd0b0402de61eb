"""What REST under /api/v1 answers, as types; the tensors among them are in tensor_payloads.py.

Tables travel by column: a list for each field, all of one length, so that 50,000 nodes are a dozen arrays and not
50,000 objects. Text that repeats (types, files, dtypes, shapes) is sent once and named by its number. Whole tensors
never travel as JSON: `TensorHeader` and `ComparisonHeader` stand in front of raw little-endian bytes.

    GET  /api/v1/runs?newest=                              RunList
    POST /api/v1/labels                                    LabelEdit → list[RunBrief]
    POST /api/v1/removals                                  Removal → Removed
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
    …/records, the flight records of a run                 protocol/crash.py

Dumps, checkpoints and comparisons are in things.py.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from misstep.core.graph import NodeKind, Phase
from misstep.protocol.tensor_payloads import ComparisonHeader, TensorHeader, Unavailable
from misstep.protocol.views import (
    HitView,
    Number,
    Part,
    RankView,
    RunBrief,
    SourceView,
    StatsView,
    WatchpointView,
)
from misstep.sentences.text import in_both


class Failure(Part):
    """Any REST error: a code for programs, a sentence for people."""

    code: str
    text: str
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    text_zh: str = ""

    def __post_init__(self) -> None:
        in_both(self)


class RunList(Part):
    runs: tuple[RunBrief, ...]
    total: int
    directory: str


class LabelEdit(Part):
    """What is said of runs: tags given and taken, a note, a pin; None leaves a thing as it is."""

    runs: tuple[str, ...]
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    note: str | None = None
    pinned: bool | None = None


class Removal(Part):
    """Runs to delete for good."""

    runs: tuple[str, ...]


class Refusal(Part):
    """A run that was left as it is, and why."""

    run: str
    text: str
    text_zh: str = ""

    def __post_init__(self) -> None:
        in_both(self)


class Removed(Part):
    runs: tuple[str, ...]
    refused: tuple[Refusal, ...] = ()


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
    time: tuple[float, ...] = ()
    """Seconds from the beginning of the run to the end of each of these steps, when asked for."""


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
    RunList, LabelEdit, Removal, Removed, RunDetail, GraphColumns, ScalarSeries, StatsHistory, StepTable, HitList,
    WatchList, DryRun, NodeInfo, SearchResult, SourceList, TensorHeader, ComparisonHeader, Unavailable,
    ConditionView, Failure,
)  # fmt: skip
