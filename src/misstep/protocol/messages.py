"""Every message a browser, a terminal or a notebook exchanges with the hub, as types; the one source of truth.

    client ──Hello, Subscribe, Command, WatchEdit, TensorGet──► hub    WebSocket /api/v1/live, subprotocol misstep.v1
    client ◄──Welcome, State, StepNews, HitNews, Ack, Lag …──── hub    text frames: JSON, the type in the field `t`
    client ◄──TensorHeader + data────────────────────────────── hub    binary: u32 header length, JSON, raw bytes

The hub writes every field; a client may leave out those with a default. What REST answers is in `protocol/payloads.py`,
with `schema()`, from which the TypeScript types are made; the shapes both share are in `protocol/views.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from misstep.core.graph import Phase
from misstep.core.watching.watch import Action, Severity
from misstep.protocol.views import (
    ControlPhase,
    Granularity,
    HitView,
    Number,
    Part,
    PlaceView,
    QueuedView,
    RankView,
    Reason,
    RunBrief,
    WatchpointView,
)
from misstep.sentences.text import in_both, only_english

PROTOCOL = 1
SUBPROTOCOL = "misstep.v1"
LARGEST_MESSAGE = 1 << 20
"""Bytes a client may send in one message; far more than any command needs."""

Operation = Literal[
    "continue", "pause", "step", "until", "next", "run_to", "terminate", "detach", "recheck", "reset", "granularity",
    "pynative"
]  # fmt: skip
WatchOperation = Literal[
    "add", "update", "remove", "enable", "disable", "dry_run", "recommend", "watch_scope", "unwatch_scope", "dump"
]
CHANNELS = ("runs", "state", "steps", "scalars", "hits", "watchpoints", "graph", "log")


# ── from the hub ───────────────────────────────────────────────────────────────────────────────────────────────────


class Message(msgspec.Struct, tag_field="t"):
    """One message; its type is in the field `t`."""


class Welcome(Message, tag="welcome"):
    """The answer to Hello. After a resume the missed events follow; else a State of every live run."""

    session: str
    seq: int
    server: str
    proto: int = PROTOCOL
    caps: tuple[str, ...] = ()
    resumed: bool = False
    runs: tuple[RunBrief, ...] = ()


class State(Message, tag="state"):
    """Where a run is. Never dropped. `rev` grows with every change that could make somebody's command wrong."""

    run: str
    rev: int
    phase: ControlPhase
    step: int
    seq: int = 0
    epoch: int | None = None
    place: PlaceView | None = None
    reason: Reason | None = None
    ranks: tuple[RankView, ...] = ()
    granularity: Granularity = "module"
    queued: tuple[QueuedView, ...] = ()
    goal: str = ""
    """What the run is on its way to: 'step 40', 'loss > 10', 'decoder.2'."""
    compiled: bool = False
    """Its steps are compiled MindSpore code, which `pynative` runs line by line."""


class StepNews(Message, tag="step"):
    """A step ended. Superseded by the next; a slow client misses some and is told."""

    run: str
    rank: int
    step: int
    seq: int = 0
    loss: Number | None = None
    seconds: float = 0.0
    epoch: int | None = None


class Scalars(Message, tag="scalars"):
    """Points of a curve, batched."""

    run: str
    rank: int
    tag: str
    x: tuple[int, ...]
    y: tuple[Number | None, ...]
    seq: int = 0


class HitNews(Message, tag="hit"):
    """A watchpoint tripped. Never dropped."""

    run: str
    hit: HitView
    seq: int = 0


class WatchNews(Message, tag="wp"):
    """A watchpoint was added, changed or removed. Never dropped."""

    run: str
    op: Literal["add", "update", "remove"]
    watchpoint: WatchpointView
    seq: int = 0


class GraphNews(Message, tag="graph"):
    """The graph grew: fetch it again, with the ETag of the old one."""

    run: str
    rank: int
    rev: int
    nodes: int
    edges: int
    seq: int = 0


class LogLine(Message, tag="log"):
    run: str
    rank: int
    level: Literal["debug", "info", "warning", "error"]
    text: str
    seq: int = 0
    text_zh: str = ""

    def __post_init__(self) -> None:
        in_both(self)


class Alert(Message, tag="alert"):
    """Something a person should see now; `code` and `params` are for the reader's language, `text` is English."""

    code: str
    text: str
    run: str = ""
    severity: Severity = "warning"
    params: dict[str, Any] = {}
    seq: int = 0


class RunNews(Message, tag="run"):
    """A run appeared or its line in the list changed."""

    run: RunBrief
    seq: int = 0


class CrashNews(Message, tag="crash"):
    run: str
    id: str
    text: str = ""
    seq: int = 0


class Ack(Message, tag="ack"):
    id: str
    rev: int = 0
    result: Any = None


class Nack(Message, tag="nack"):
    """Refused: stale_state, not_paused, not_running, unsupported, denied, bad_request, not_found, timeout."""

    id: str
    code: str
    text: str = ""
    params: dict[str, Any] = {}
    text_zh: str = ""

    def __post_init__(self) -> None:
        in_both(self)


class Lag(Message, tag="lag"):
    """The client was too slow: so many superseded updates were left out, by kind. Never hits, states or watchpoints."""

    dropped: dict[str, int]
    seq: int = 0


class Reset(Message, tag="reset"):
    """Events were left out: fetch the snapshot and the hits after `since`, then go on from `seq`.

    No hit is lost by this: `runs/RUN/hits?since=SINCE` has them all; one that also arrives as an event has the same id.
    """

    snapshot_url: str
    seq: int
    session: str = ""
    since: int = 0
    """The last event that was sent before the gap; 0 when that was another hub's."""


class Pong(Message, tag="pong"):
    id: str = ""


ServerMessage = (
    Welcome | State | StepNews | Scalars | HitNews | WatchNews | GraphNews | LogLine | Alert | RunNews | CrashNews
    | Ack | Nack | Lag | Reset | Pong
)  # fmt: skip
Event = State | StepNews | Scalars | HitNews | WatchNews | GraphNews | LogLine | Alert | RunNews | CrashNews
"""What carries a sequence number and can be resumed."""


# ── from a client ──────────────────────────────────────────────────────────────────────────────────────────────────


class Resume(Part):
    session: str
    seq: int


class Hello(Message, tag="hello"):
    proto: int
    lang: str = ""
    resume: Resume | None = None


class Subscribe(Message, tag="sub"):
    """Which events to send; `scalars:loss*` narrows by tag. An empty run means every run."""

    id: str
    ch: tuple[str, ...]
    run: str = ""
    max_hz: float = 4.0


class Unsubscribe(Message, tag="unsub"):
    id: str


class Command(Message, tag="cmd"):
    """Move a run. `rev` is the revision the sender saw; a stale one is refused; None for a sender that did not look.

    step: count. until: condition ('loss > 10', 'step >= 40', 'time > 60'). run_to: node, phase, when, call.
    reset: count = the step to show (a finished or replayed run). granularity: granularity. rank: None for all.
    pynative: run steps of compiled MindSpore code in PyNative too: `steps` ('3:5'), or walk through the next one.
    """

    id: str
    op: Operation
    run: str
    rev: int | None = None
    rank: int | None = None
    count: int = 1
    condition: str = ""
    node: str = ""
    phase: Phase | None = None
    when: Literal["before", "after"] | None = None
    call: int | None = None
    granularity: Granularity | None = None
    steps: str = ""


class WatchSpec(Part):
    """A watchpoint as a client writes it: a condition's name or an expression, parameters, and where.

    The condition may also be a whole line: 'gradient_vanishing(abs_mean_lt=1e-9) on encoder.*:grad then pause'.
    """

    condition: str = ""
    parameters: dict[str, float | bool] = msgspec.field(default_factory=dict)
    on: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    then: Action = "pause"
    limit: int | None = None
    name: str = ""


class WatchEdit(Message, tag="watch"):
    """Change the watchpoints of a run; `watch_scope`/`unwatch_scope` add or take every node below `scope`.

    dump: keep the whole tensors that fit `spec.on`, at the steps written in `scope` ('100:110'; empty for the next).
    """

    id: str
    op: WatchOperation
    run: str
    watchpoint: int | None = None
    spec: WatchSpec | None = None
    scope: str = ""
    rank: int | None = None


class TensorGet(Message, tag="tensor.get"):
    """Ask for a tensor by address; answered by a binary frame with a TensorHeader, or a Nack saying why not.

    want: 'stats', 'hist:64', 'tile:ROW,COLUMN,ROWS,COLUMNS', 'pool:FACTOR', 'find:next:INDEX', 'find:previous:INDEX'.
    """

    id: str
    run: str
    address: str
    slice: str = ""
    want: tuple[str, ...] = ("stats", "tile:0,0,256,256")


class Ping(Message, tag="ping"):
    id: str = ""


ClientMessage = Hello | Subscribe | Unsubscribe | Command | WatchEdit | TensorGet | Ping


def encode(message: Message | Part) -> bytes:
    return _ENCODER.encode(message)


def read_client(data: bytes | str) -> ClientMessage:
    """A client's message, validated; msgspec.ValidationError or DecodeError otherwise."""
    try:
        return _CLIENT.decode(data)
    except (RecursionError, UnicodeDecodeError) as error:
        raise msgspec.DecodeError(str(error)) from None


def read_server(data: bytes | str) -> list[ServerMessage]:
    """What one text frame of the hub says: a message, or several as an array when many were waiting."""
    said = _SERVER.decode(data)
    return said if isinstance(said, list) else [said]


def in_frames(encoded: Iterable[bytes], *, most_bytes: int = 64 << 10) -> Iterator[bytes]:
    """Messages joined into frames: a burst of ten thousand hits is a hundred frames, each read in one go."""
    waiting: list[bytes] = []
    size = 0
    for one in encoded:
        if waiting and size + len(one) > most_bytes:
            yield _frame(waiting)
            waiting, size = [], 0
        waiting.append(one)
        size += len(one)
    if waiting:
        yield _frame(waiting)


def _frame(messages: list[bytes]) -> bytes:
    return messages[0] if len(messages) == 1 else b"[" + b",".join(messages) + b"]"


_ENCODER = msgspec.json.Encoder(enc_hook=only_english)
_CLIENT: msgspec.json.Decoder[ClientMessage] = msgspec.json.Decoder(ClientMessage)
_SERVER: msgspec.json.Decoder[ServerMessage | list[ServerMessage]] = msgspec.json.Decoder(
    ServerMessage | list[ServerMessage]
)
