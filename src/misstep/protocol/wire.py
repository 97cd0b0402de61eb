"""What a trainee and its hub say to each other, and how it lies on the socket.

    u32 bytes behind this · u32 header bytes · header (msgpack, a tagged struct) · raw data (tensors only)

The hub's commands are validated structs before they leave it, and again when they arrive. The token is the first
thing a trainee sends and the only secret. Everything here is plain data: sockets are in `capture/live/link.py` and
`hub/live/trainees.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from misstep.core.run import HUB_FILE as HUB_FILE
from misstep.errors import MisstepError
from misstep.protocol.messages import Command, WatchEdit
from misstep.protocol.views import (
    ControlPhase,
    Granularity,
    HitView,
    Number,
    PlaceView,
    QueuedView,
    Reason,
    WatchpointView,
)
from misstep.sentences.text import in_both, only_english

LINK_PROTOCOL = 2
LARGEST_HEADER = 16 << 20
LARGEST_DATA = 256 << 20

_LENGTHS = struct.Struct("<II")


class Words(msgspec.Struct, tag_field="t", omit_defaults=True):
    """One header on the socket."""


# ── from a trainee ──


class Standing(msgspec.Struct, omit_defaults=True):
    """Where one rank is."""

    phase: ControlPhase
    rev: int
    step: int
    place: PlaceView | None = None
    reason: Reason | None = None
    goal: str = ""
    granularity: Granularity = "module"
    queued: tuple[QueuedView, ...] = ()
    memory_bytes: int = 0
    memory_limit: int = 0
    compiled: bool = False


class Introduce(Words, tag="introduce"):
    proto: int
    run: str
    directory: str
    rank: int
    world_size: int
    host: str
    pid: int
    standing: Standing
    command: tuple[str, ...] = ()
    started: float = 0.0
    watchpoints: tuple[WatchpointView, ...] = ()


class Stand(Words, tag="stand"):
    standing: Standing
    watchpoints: tuple[WatchpointView, ...] = ()
    """At a pause: with their counts and notes of now."""


class Digest(msgspec.Struct, omit_defaults=True):
    """A step of one rank in a few bytes, for conditions across ranks: hashes of statistics, never tensors."""

    weights: tuple[int, ...] = ()
    gradients: tuple[int, ...] = ()
    names: int = 0
    """A hash of the tensors' names: only ranks with the same ones are compared."""
    batch: int = 0


class StepDone(Words, tag="step"):
    step: int
    loss: Number | None = None
    seconds: float = 0.0
    learning_rate: Number | None = None
    gradient_norm: Number | None = None
    epoch: int | None = None
    digest: Digest | None = None


class Hits(Words, tag="hits"):
    """Kept and sent again until the hub has said Seen."""

    serial: int
    hits: tuple[HitView, ...]


class WatchChanged(Words, tag="watch"):
    op: Literal["add", "update", "remove"]
    watchpoint: WatchpointView


class GraphGrew(Words, tag="graph"):
    nodes: int
    edges: int


class Wish(Words, tag="wish"):
    """This rank wants all ranks to pause; it waits to hear at which step."""

    step: int
    reason: Reason


class Earliest(Words, tag="earliest"):
    """The earliest boundary this rank can stop at; it holds there."""

    meeting: int
    step: int


class Answer(Words, tag="answer"):
    """To an Order or an Ask; `code` is empty when all went well."""

    id: str
    code: str = ""
    text: str = ""
    result: Any = None
    text_zh: str = ""

    def __post_init__(self) -> None:
        in_both(self)


class Beat(Words, tag="beat"):
    step: int
    dropped: dict[str, int] = msgspec.field(default_factory=dict)


class Note(Words, tag="note"):
    level: Literal["debug", "info", "warning", "error"]
    text: str
    text_zh: str = ""

    def __post_init__(self) -> None:
        in_both(self)


class Bye(Words, tag="bye"):
    reason: str
    exit_code: int | None = None


FromTrainee = (
    Introduce | Stand | StepDone | Hits | WatchChanged | GraphGrew | Wish | Earliest | Answer | Beat | Note | Bye
)


# ── from the hub ──


class Accepted(Words, tag="accepted"):
    coordinated: bool = False
    """Whether this rank must agree with others before it pauses."""


class Refused(Words, tag="refused"):
    text: str


class Order(Words, tag="order"):
    id: str
    command: Command


class Edit(Words, tag="edit"):
    id: str
    edit: WatchEdit


class AskTensor(Words, tag="ask_tensor"):
    """Answered with a TensorHeader as `result` and the bytes as data. `previous`: as it was one look before."""

    id: str
    address: str
    slice: str = ""
    want: tuple[str, ...] = ()
    previous: bool = False


class Gather(Words, tag="gather"):
    """Tell the earliest boundary you can stop at, and hold there."""

    meeting: int


class Meet(Words, tag="meet"):
    meeting: int
    step: int
    reason: Reason


class Seen(Words, tag="seen"):
    serial: int


class Record(Words, tag="record"):
    """A hit the hub found across ranks, for this rank's journal: the run directory is the truth."""

    hit: HitView


class HubBeat(Words, tag="hub_beat"):
    pass


FromHub = Accepted | Refused | Order | Edit | AskTensor | Gather | Meet | Seen | Record | HubBeat


# ── on the socket ──


class WireError(MisstepError):
    """The other side sent something that is not this protocol."""


_ENCODER = msgspec.msgpack.Encoder(enc_hook=only_english)
_FROM_TRAINEE: msgspec.msgpack.Decoder[FromTrainee] = msgspec.msgpack.Decoder(FromTrainee)
_FROM_HUB: msgspec.msgpack.Decoder[FromHub] = msgspec.msgpack.Decoder(FromHub)


def frame(words: Words, data: bytes | memoryview = b"") -> bytes:
    """A message and its data as they travel."""
    header = _ENCODER.encode(words)
    return b"".join((_LENGTHS.pack(4 + len(header) + len(data), len(header)), header, data))


def sizes(prefix: bytes) -> tuple[int, int]:
    """(header bytes, data bytes) from the first eight bytes; WireError when they make no sense."""
    total, header = _LENGTHS.unpack(prefix)
    if not 0 < header <= LARGEST_HEADER or not 0 <= total - 4 - header <= LARGEST_DATA:
        raise WireError("not a frame of this protocol, or one that is too large")
    return header, total - 4 - header


class Frames:
    """Bytes in, (header, data) out, however they were cut on the way."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        self._buffer += data
        while len(self._buffer) >= _LENGTHS.size:
            header, rest = sizes(bytes(self._buffer[: _LENGTHS.size]))
            end = _LENGTHS.size + header + rest
            if len(self._buffer) < end:
                return
            start = _LENGTHS.size
            yield bytes(self._buffer[start : start + header]), bytes(self._buffer[start + header : end])
            del self._buffer[:end]


def read_from_trainee(header: bytes) -> FromTrainee:
    try:
        return _FROM_TRAINEE.decode(header)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise WireError(f"cannot read a trainee's message: {error}") from None


def read_from_hub(header: bytes) -> FromHub:
    try:
        return _FROM_HUB.decode(header)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise WireError(f"cannot read the hub's message: {error}") from None
