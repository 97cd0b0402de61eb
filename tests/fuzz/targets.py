"""What is fuzzed: every reader of files, every grammar a user types, every message that arrives on a socket.

A target is a seed or more, the mutators that know its structure, and a call that must end in nothing or in an error
misstep can explain. Files are written below `/dev/shm` where there is one: the disk is not what is tested.
"""

from __future__ import annotations

import random
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from tests.fuzz import mutate
from tests.fuzz.mutate import Mutator

from misstep.core.address import Address, Pattern
from misstep.core.graph import Graph, Node
from misstep.core.search import search
from misstep.core.slices import parse_slice
from misstep.core.steps import parse_steps
from misstep.core.watching.expressions import parse_expression
from misstep.core.watching.watchtext import parse_watch
from misstep.errors import MisstepError
from misstep.protocol import messages, wire
from misstep.store.bundle.batch import BatchFile, read_batch
from misstep.store.bundle.open import open_bundle
from misstep.store.bundle.ring import Ring, read_ring
from misstep.store.bundle.write import write_bundle
from misstep.store.checkpoint import read_checkpoint, write_mindspore_ckpt, write_npz, write_safetensors
from misstep.store.foreign import protobuf as pb
from misstep.store.foreign.eventfile import masked
from misstep.store.foreign.mindspore.graph import read_execution_order, read_ir, read_pb
from misstep.store.foreign.mindspore.ir import read_wiring
from misstep.store.foreign.mindspore.summary import read_summary
from misstep.store.foreign.npyfile import read_npy, write_npy
from misstep.store.foreign.sniff import source_of
from misstep.store.layout import rank_paths
from misstep.store.pack import PackReader
from misstep.store.reading.rank import Rank
from misstep.store.reading.reader import open_run
from misstep.store.statsfile import StatsReader
from misstep.store.tracefile import read_trace
from misstep.tuning.studyfile.expression import Expression
from misstep.tuning.studyfile.read import parse_study

HERE = Path(__file__).parent
EVERYTHING = Pattern.parse("*")
EXPLAINED: tuple[type[Exception], ...] = (MisstepError,)


class Bench:
    """One process's folder of things to damage, and the sound bytes of each."""

    def __init__(self) -> None:
        shm = Path("/dev/shm")
        self._folder = tempfile.TemporaryDirectory(prefix="misstep-fuzz-", dir=shm if shm.is_dir() else None)
        self.folder = Path(self._folder.name)

    def close(self) -> None:
        self._folder.cleanup()

    def file(self, name: str, data: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(data)
        return path

    @cached_property
    def run(self) -> Path:
        """A small run with everything a run directory can hold."""
        import sys

        sys.path.insert(0, str(HERE.parent / "store"))
        import small_run

        directory = self.folder / "run"
        writer = small_run.begin(directory)
        small_run.train(writer, 1, 4)
        writer.close()
        paths = rank_paths(directory, 0)
        ring = Ring(paths.ring, slots=4, slot_bytes=512)
        ring.put(b'{"step":1,"loss":0.5}')
        ring.note({"files": ["train.py"]})
        ring.log(b"epoch 1\n")
        BatchFile(paths.batch, limit_bytes=1 << 16).put(1, [("float32", np.ones((2, 3), np.float32), (2, 3))])
        return directory

    def rank_with(self, name: str, data: bytes) -> Rank:
        (self.run / "rank-0" / name).write_bytes(data)
        rank = Rank(self.run, 0)
        rank.refresh()
        return rank

    def run_with(self, name: str, data: bytes) -> Any:
        (self.run / name).write_bytes(data)
        return open_run(self.run)


@dataclass(frozen=True)
class Target:
    """Something that reads what strangers wrote."""

    name: str
    seeds: Callable[[Bench], list[bytes]]
    mutators: tuple[Mutator, ...]
    read: Callable[[Bench, bytes], object]
    explained: tuple[type[Exception], ...] = EXPLAINED

    def case(self, seeds: list[bytes], number: int) -> bytes:
        """The damage of that number; the sound seed for the first ones."""
        if number < len(seeds):
            return seeds[number]
        chance = random.Random(f"{self.name} {number}")
        return chance.choice(self.mutators)(chance, chance.choice(seeds))


def _written(write: Callable[[Path], object], name: str = "seed") -> Callable[[Bench], list[bytes]]:
    def seeds(bench: Bench) -> list[bytes]:
        path = bench.folder / name
        write(path)
        return [path.read_bytes()]

    return seeds


def _stored(*names: str) -> Callable[[Bench], list[bytes]]:
    return lambda bench: [(HERE / "seeds" / name).read_bytes() for name in names]


def _texts(*texts: str) -> Callable[[Bench], list[bytes]]:
    return lambda bench: [text.encode() for text in texts]


def _of_run(name: str) -> Callable[[Bench], list[bytes]]:
    return lambda bench: [(bench.run / name).read_bytes()]


def _arrays(bench: Bench, data: bytes, name: str) -> None:
    checkpoint = read_checkpoint(bench.file(name, data))
    for held in checkpoint.tensors.values():
        if held.count * 16 < 1 << 24:
            checkpoint[held.name]


def _read_rows(bench: Bench, data: bytes) -> None:
    reader = StatsReader(bench.file("stats.bin", data))
    reader.refresh()
    reader.of_tensors([0, 1, 2]), reader.kept_steps(), reader.of_step(2), reader.verify(), reader.damage(alive=False)


def _read_journal(bench: Bench, data: bytes) -> None:
    rank = bench.rank_with("journal.jsonl", data)
    rank.steps, rank.hits, rank.verdicts, rank.findings, rank.state, rank.damage()


def _read_graph(bench: Bench, data: bytes) -> None:
    rank = bench.rank_with("graph.jsonl", data)
    rank.addresses(EVERYTHING), rank.graph.edges, rank.damage()


def _read_pack(bench: Bench, data: bytes) -> None:
    reader = PackReader(bench.run / "rank-0/tensors.pack", bench.file("tensors.idx", data))
    reader.refresh()
    for stored in reader.stored.values():
        try:
            reader.array(stored)
        except MisstepError:
            continue
    reader.damage(alive=False)


def _read_record(bench: Bench, data: bytes) -> None:
    with open_bundle(bench.file("record.zip", data)) as bundle:
        bundle.kind, bundle.note, bundle.left_out, bundle.run.steps(), bundle.run.damage


def _read_dump(bench: Bench, data: bytes) -> None:
    folder = bench.folder / "dump" / "step0" / "rank0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dump.json").write_bytes(data)
    source = source_of(bench.folder / "dump")
    for entry in source.entries():
        str(entry.address), source.stats(entry)  # type: ignore[attr-defined]


def _read_folder(bench: Bench, data: bytes) -> None:
    folder = bench.folder / "arrays"
    if not folder.exists():
        folder.mkdir()
        write_npy(folder / "fc.npy", np.ones((2, 2), np.float32))
    (folder / "index.json").write_bytes(data)
    source = source_of(folder)
    for entry in source.entries():
        source.array(entry)


def _event_file(bench: Bench) -> list[bytes]:
    value = pb.encode_bytes(1, b"loss") + pb.encode_varint(3 << 3 | pb.FIXED32) + b"\0\0\x80?"
    tensor = pb.encode_number(1, 2) + pb.encode_number(2, 11) + pb.encode_bytes(8, bytes(8))
    bucket = pb.encode_bytes(1, pb.encode_varint(1 << 3 | pb.FIXED64) + bytes(8) + pb.encode_number(3, 4))
    values = [
        value,
        pb.encode_bytes(1, b"w") + pb.encode_bytes(8, tensor),
        pb.encode_bytes(1, b"h") + pb.encode_bytes(9, bucket),
    ]
    made = b""
    for body in (pb.encode_number(2, 1) + pb.encode_bytes(5, pb.encode_bytes(1, each)) for each in values):
        head = struct.pack("<Q", len(body))
        check = [struct.pack("<I", masked(part)) for part in (head, body)]
        made += head + check[0] + body + check[1]
    return [made]


def _graph_pb(bench: Bench) -> list[bytes]:
    node = pb.encode_bytes(1, pb.encode_bytes(1, b"x")) + pb.encode_bytes(2, b"1") + pb.encode_bytes(3, b"MatMul")
    graph = pb.encode_bytes(1, node + pb.encode_bytes(8, b"Default/fc-op1")) + pb.encode_bytes(
        3, pb.encode_bytes(1, b"x")
    )
    return [pb.encode_bytes(4, graph)]


_IR = """%para1_x: <Tensor[Float32], (2, 3)>  :  <null>, IsWeight: false
  %0(CNode_1) = MatMul(%para1_x, %para2_fc.weight) primitive_attrs: {a: b}
      : (<Tensor[Float32], (2, 3)>, <Tensor[Float32], (3, 4)>) -> (<Tensor[Float32], (2, 4)>)
      # Fullname with scope: (Default/fc-Dense/MatMul-op0)
      # In file train.py:12, 8~20/        return self.fc(x)/
"""
_STUDY = """command: python train.py --lr {lr}
parameters:
  lr: {low: 1e-5, high: 1e-1, log: true}
  width: {choice: [64, 128]}
target: {name: loss, goal: minimize}
constraints: ["lr * width < 10"]
trials: 20
"""
_GRAPH = Graph()
for _index, _name in enumerate(("encoder.fc", "encoder.norm", "head")):
    _GRAPH.add_node(Node(_index, _name, "module", "Linear"))


def _messages(bench: Bench) -> list[bytes]:
    return [
        b'{"t":"hello","proto":1}',
        b'{"t":"sub","id":"1","ch":["steps"],"run":"r"}',
        b'{"t":"cmd","id":"1","run":"r","op":"pause"}',
        b'{"t":"watch","id":"1","run":"r","op":"add","spec":{"condition":"overflow","on":["*"]}}',
        b'{"t":"tensor.get","id":"1","run":"r","address":"fc:output"}',
        b'{"t":"ping","id":"1"}',
    ]


def _frames(bench: Bench, data: bytes) -> None:
    frames = wire.Frames()
    for header, _ in frames.feed(data):
        for read in (wire.read_from_trainee, wire.read_from_hub):
            try:
                read(header)
            except MisstepError:
                continue


def _frame_seeds(bench: Bench) -> list[bytes]:
    return [wire.frame(wire.Beat(step=3)), wire.frame(wire.HubBeat()), wire.frame(wire.Seen(serial=1), b"data")]


def _text_of(read: Callable[[str], object]) -> Callable[[Bench, bytes], object]:
    return lambda bench, data: read(data.decode("utf-8", "replace"))


def _members(name: str) -> Mutator:
    if name.endswith(".pkl"):
        return mutate.of_pickle
    if name.endswith(".npy"):
        return mutate.of_npy
    if name.endswith(".jsonl"):
        return mutate.of_sealed_lines
    return mutate.of_json if name.endswith(".json") else mutate.of_bytes


def _legacy_summary(bench: Bench, data: bytes) -> object:
    return read_summary(bench.file("events.out.events.summary.1700000000.0.host_MS", data))


READERS = (
    Target(
        "torch", _stored("torch.pt"), (mutate.of_zip(_members), mutate.of_bytes), lambda b, d: _arrays(b, d, "m.pt")
    ),
    Target(
        "torch before 1.6",
        _stored("torch-legacy.pt"),
        (mutate.of_pickle, mutate.of_bytes),
        lambda b, d: _arrays(b, d, "l.pt"),
    ),
    Target(
        "torch distributed",
        _stored("distributed.metadata"),
        (mutate.of_pickle, mutate.of_bytes),
        lambda b, d: [(b.folder / "dcp").mkdir(exist_ok=True), _arrays_in(b, b.folder / "dcp", d)],
    ),
    Target(
        "safetensors",
        _written(
            lambda path: write_safetensors(
                path, {"a": np.ones((2, 2), np.float32), "b": np.zeros(3)}, metadata={"format": "pt"}
            )
        ),
        (mutate.of_header(mutate.of_json), mutate.of_bytes),
        lambda b, d: _arrays(b, d, "m.safetensors"),
    ),
    Target(
        "npz",
        _written(lambda path: write_npz(path, {"a": np.ones((2, 2), np.float32), "b": np.zeros(3)}), "seed.npz"),
        (mutate.of_zip(_members), mutate.of_bytes),
        lambda b, d: _arrays(b, d, "m.npz"),
    ),
    Target(
        "npy",
        _written(lambda path: write_npy(path, np.ones((2, 3)))),
        (mutate.of_npy, mutate.of_bytes),
        lambda b, d: read_npy(b.file("m.npy", d)),
    ),
    Target(
        "MindSpore ckpt",
        _written(
            lambda path: write_mindspore_ckpt(
                path, {"fc.weight": np.ones((2, 2), np.float32)}, extras={"epoch": 3, "s": "x"}
            )
        ),
        (mutate.of_protobuf, mutate.of_bytes),
        lambda b, d: _arrays(b, d, "m.ckpt"),
    ),
    Target(
        "index of shards",
        _texts('{"metadata":{"total":8},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}}'),
        (mutate.of_json,),
        lambda b, d: read_checkpoint(b.file("m.safetensors.index.json", d)),
    ),
    Target("event file", _event_file, (mutate.of_events,), _legacy_summary),
    Target("MindSpore graph", _graph_pb, (mutate.of_protobuf,), lambda b, d: read_pb(b.file("g.pb", d))),
    Target(
        "MindSpore IR",
        _texts(_IR),
        (mutate.of_words, mutate.of_bytes),
        lambda b, d: (read_ir(path := b.file("g.ir", d)), read_wiring(path), read_execution_order(path)),
    ),
    Target(
        "msprobe",
        _texts(
            '{"task":"tensor","level":"L0","data":{"Module.fc1.Linear.forward.0":{"input_args":[{"type":"torch.Tensor","dtype":'
            '"torch.float32","shape":[2,3],"Max":1.0,"Min":0.0,"Mean":0.5,"Norm":2.0,"data_name":"Module.fc1.input.0.npy"}],'
            '"output":[{"dtype":"torch.float32","shape":[2],"Max":"nan"}]},"Functional.relu.0.backward":{"input":[null]}}}'
        ),
        (mutate.of_json,),
        _read_dump,
    ),
    Target(
        "index of arrays",
        _texts('{"files":{"fc.npy":{"name":"fc","role":"output","order":0,"dtype":"float32","shape":[2,2],"step":1}}}'),
        (mutate.of_json,),
        _read_folder,
    ),
    Target(
        "flight record",
        lambda bench: [write_bundle(bench.run, kind="asked", environment={}).read_bytes()],
        (mutate.of_zip(_members),),
        _read_record,
    ),
    Target("run.json", _of_run("run.json"), (mutate.of_json,), lambda b, d: b.run_with("run.json", d).info),
    Target("journal", _of_run("rank-0/journal.jsonl"), (mutate.of_sealed_lines,), _read_journal),
    Target("graph of a run", _of_run("rank-0/graph.jsonl"), (mutate.of_sealed_lines,), _read_graph),
    Target("statistics", _of_run("rank-0/stats.bin"), (mutate.of_bytes,), _read_rows),
    Target("index of tensors", _of_run("rank-0/tensors.idx"), (mutate.of_bytes,), _read_pack),
    Target(
        "ring",
        _of_run("rank-0/recorder.ring"),
        (mutate.of_places(0, 600, 4096, 135168, 266240),),
        lambda b, d: read_ring(b.file("r.ring", d)),
    ),
    Target(
        "batch",
        _of_run("rank-0/recorder.batch"),
        (mutate.of_places(0, 64, 20544),),
        lambda b, d: read_batch(b.file("r.batch", d)),
    ),
    Target(
        "trace",
        lambda bench: [bytes([1]) + bytes(63) + bytes([2]) + bytes(63) + bytes([3]) + bytes(63)],
        (mutate.of_bytes,),
        lambda b, d: read_trace(b.file("trace.bin", d)),
    ),
)

GRAMMARS = (
    Target(
        "address", _texts("encoder.0.attn~2:output.1@120#3", "fc:grad"), (mutate.of_words,), _text_of(Address.parse)
    ),
    Target("pattern", _texts("encoder.*:grad@100:200#1", "*"), (mutate.of_words,), _text_of(Pattern.parse)),
    Target(
        "expression",
        _texts("abs_mean > 1e3 and nan == 0", "not (zeros / count < 0.99) or step > 100"),
        (mutate.of_words,),
        _text_of(parse_expression),
    ),
    Target(
        "watchpoint",
        _texts("overflow on encoder.* then pause", "abs_mean > 3 on *:grad"),
        (mutate.of_words,),
        _text_of(parse_watch),
    ),
    Target(
        "slice",
        _texts("[0, :, 2:8]", "..., ::2"),
        (mutate.of_words,),
        _text_of(lambda text: parse_slice(text, (4, 5, 6))),
    ),
    Target("steps", _texts("5,10:12", "100:"), (mutate.of_words,), _text_of(parse_steps)),
    Target(
        "search",
        _texts("type:Linear name:enc* -head", "/fc$/ shape:[2,3]"),
        (mutate.of_words,),
        _text_of(lambda text: search(_GRAPH, text)),
    ),
    Target("study file", _texts(_STUDY), (mutate.of_words,), _text_of(parse_study)),
    Target(
        "expression of a study",
        _texts("lr * width < 10 and depth != 3"),
        (mutate.of_words,),
        _text_of(Expression),
        (ValueError,),
    ),
    Target(
        "messages of pages", _messages, (mutate.of_json,), lambda b, d: messages.read_client(d), (msgspec.MsgspecError,)
    ),
    Target("messages of trainees", _frame_seeds, (mutate.of_bytes,), _frames),
)


def _arrays_in(bench: Bench, folder: Path, data: bytes) -> None:
    (folder / ".metadata").write_bytes(data)
    checkpoint = read_checkpoint(folder)
    for held in checkpoint.tensors.values():
        try:
            if held.count * 16 < 1 << 24:
                checkpoint[held.name]
        except MisstepError:
            continue


TARGETS = {target.name: target for target in (*READERS, *GRAMMARS)}
