"""What SummaryCollector and SummaryRecord wrote, read without MindSpore.

    summary_dir/events.out.events.summary.{time}.{rank}.{host}_MS         scalars, histograms, images, tensors, graph
    summary_dir/events.out.events.summary.{time}.{rank}.{host}_lineage    how it was trained, on which data

`read_summary` gives all of it as values. `summary_run` gives it as a run like any other: losses become steps,
histograms rows of statistics, tensors whole tensors, so that `misstep show`, `diff` and the page need no second way.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.core.graph import Graph
from misstep.errors import FormatError
from misstep.store.boundary import reading
from misstep.store.foreign import protobuf as pb
from misstep.store.foreign.elements import dtype_named
from misstep.store.foreign.eventfile import records
from misstep.store.foreign.mindspore.graph import graph_from
from misstep.store.foreign.scalars import OWN, TENSORBOARD, read_own_summary, read_tensorboard_event

FILE = re.compile(r".*events\.summary\.(?P<time>\d+)(?:\.(?P<rank>\d+))?\.(?P<host>.+)_(?P<kind>MS|lineage)")
_TOGETHER = 5.0
"""Seconds between the two files one training begins."""
_TYPES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
    10: "float16", 11: "float32", 12: "float64", 43: "complex64", 44: "complex128", 46: "bfloat16",
}  # fmt: skip
"""anf_ir.DataType."""

_TRAIN = {
    1: {1: "optimizer", 2: "learning_rate", 3: "loss_function", 4: "epoch", 5: "parallel_mode", 6: "device_num",
        8: "batch_size"},
    2: {1: "train_dataset_path", 2: "train_dataset_size"},
    3: {1: "network", 2: "loss"},
    4: {3: "model_path", 4: "model_size"},
}  # fmt: skip
_EVALUATION = {3: {1: "valid_dataset_path", 2: "valid_dataset_size"}}
_FLOATS = frozenset({"learning_rate", "loss"})


@dataclass(frozen=True, slots=True)
class Point:
    """One number of a curve."""

    step: int
    value: float
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class Histogram:
    """A distribution at one step."""

    step: int
    buckets: tuple[tuple[float, float, int], ...]
    """(left edge, width, count)."""
    count: int = 0
    nan: int = 0
    pos_inf: int = 0
    neg_inf: int = 0
    min: float = 0.0
    max: float = 0.0
    sum: float = 0.0
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class Image:
    """A picture at one step, as it was encoded (PNG)."""

    step: int
    height: int
    width: int
    data: bytes


@dataclass(slots=True)
class Summary:
    """Everything below one summary folder, by tag."""

    path: Path
    scalars: dict[str, list[Point]] = field(default_factory=dict)
    histograms: dict[str, list[Histogram]] = field(default_factory=dict)
    images: dict[str, list[Image]] = field(default_factory=dict)
    tensors: dict[str, list[tuple[int, NDArray[Any]]]] = field(default_factory=dict)
    graph: Graph | None = None
    lineage: dict[str, Any] = field(default_factory=dict)
    """optimizer, learning_rate, loss_function, epoch, batch_size, network, train_dataset_size, metric, user …"""
    dataset_graph: dict[str, Any] = field(default_factory=dict)
    started: float = 0.0
    host: str = ""
    writer: str = "mindspore"
    """Who wrote it: mindspore, tensorboard, or misstep itself."""
    damage: list[str] = field(default_factory=list)


def looks_like_summary(path: Path) -> bool:
    """True for a folder with event files of MindSpore or TensorBoard, for such a file, and for our own summaries."""
    if path.is_file():
        return _known(path.name) is not None or path.name == OWN
    return path.is_dir() and any(file.name == OWN or (_known(file.name) and file.is_file()) for file in path.iterdir())


def summary_files(path: Path) -> list[list[Path]]:
    """The event files of each training that wrote into a folder, the oldest training first.

    MindSpore begins a file a training, with its lineage beside it; TensorBoard's convention is a folder a training.
    """
    if path.is_file():
        return [[path]]
    files = sorted((file for file in path.iterdir() if _known(file.name)), key=_began)
    trainings: list[list[Path]] = []
    lineage: list[Path] = []
    for file in files:
        said = FILE.fullmatch(file.name)
        if said is None and trainings:
            trainings[-1].append(file)
        elif said is not None and said["kind"] == "lineage" and not (trainings and _near(trainings[-1][0], file)):
            lineage.append(file)
        elif said is not None and said["kind"] == "lineage":
            trainings[-1].append(file)
        else:
            trainings.append([*lineage, file])
            lineage = []
    if lineage:
        trainings.append(lineage)
    return trainings


def read_summary(path: str | Path) -> Summary:
    """What a folder or an event file holds; of several trainings in one folder the newest.

    >>> read_summary("summary_dir").scalars["loss/auto"][-1].value
    """
    where = Path(path)
    if not looks_like_summary(where):
        raise FormatError(
            f"{where} holds no event file of MindSpore or TensorBoard; give the summary_dir or log_dir of the training",
            path=str(where),
        )
    summary = Summary(where)
    folder = where.parent if where.name == OWN else where
    if (folder / OWN).is_file() and (where.is_dir() or where.name == OWN):
        summary.writer = "misstep"
        read_own_summary(summary, folder)
        return summary
    trainings = summary_files(where)
    if len(trainings) > 1:
        others = ", ".join(files[-1].name for files in trainings[:-1][-3:])
        summary.damage.append(
            f"{where.name} holds {len(trainings)} trainings; this is the newest, name a file for another: {others}"
        )
    for file in trainings[-1]:
        _read_file(summary, file)
    return summary


def _read_file(summary: Summary, file: Path) -> None:
    said = _known(file.name)
    assert said is not None
    summary.started = min(summary.started or float(said["time"]), float(said["time"]))
    summary.host = said["host"]
    read = _read_lineage if file.name.endswith("_lineage") else _read_event
    if said.re is TENSORBOARD:
        read, summary.writer = read_tensorboard_event, "tensorboard"
    try:
        with reading(file, "event file"):
            for record in records(file):
                read(summary, record)
    except FormatError as wrong:
        summary.damage.append(str(wrong))


def _known(name: str) -> re.Match[str] | None:
    return FILE.fullmatch(name) or TENSORBOARD.fullmatch(name)


def _began(file: Path) -> tuple[float, str]:
    said = _known(file.name)
    return (float(said["time"]) if said else 0.0), file.name


def _near(training: Path, lineage: Path) -> bool:
    """Whether a lineage file was begun with a training: within a few seconds."""
    return abs(_began(training)[0] - _began(lineage)[0]) <= _TOGETHER


def _read_event(summary: Summary, data: bytes) -> None:
    time, step = 0.0, 0
    for part in pb.fields(data):
        if part.number == 1 and part.kind == pb.FIXED64:
            time = _double(part.value)
        elif part.number == 2 and part.kind == pb.VARINT:
            step = pb.signed(part.value)
        elif part.number == 4 and part.kind == pb.BYTES:
            summary.graph = graph_from(data, part)
        elif part.number == 5 and part.kind == pb.BYTES:
            for value in pb.fields(data, part.value, part.end):
                _read_value(summary, data, value, step, time)


def _read_value(summary: Summary, data: bytes, value: pb.Field, step: int, time: float) -> None:
    tag = ""
    for part in pb.fields(data, value.value, value.end):
        if part.number == 1:
            tag = pb.text(data, part)
        elif part.number == 3:
            summary.scalars.setdefault(tag, []).append(Point(step, _float(part.value), time))
        elif part.number == 4:
            inside = {one.number: one for one in pb.fields(data, part.value, part.end)}
            picture = bytes(data[inside[4].value : inside[4].end]) if 4 in inside else b""
            height, width = (inside[number].value if number in inside else 0 for number in (1, 2))
            summary.images.setdefault(tag, []).append(Image(step, height, width, picture))
        elif part.number == 8:
            summary.tensors.setdefault(tag, []).append((step, _tensor(data, part)))
        elif part.number == 9:
            summary.histograms.setdefault(tag, []).append(_histogram(data, part, step, time))


def _histogram(data: bytes, message: pb.Field, step: int, time: float) -> Histogram:
    buckets, numbers = [], dict.fromkeys(range(2, 9), 0)
    for part in pb.fields(data, message.value, message.end):
        if part.number == 1:
            inside = {one.number: one.value for one in pb.fields(data, part.value, part.end)}
            buckets.append((_double(inside.get(1, 0)), _double(inside.get(2, 0)), inside.get(3, 0)))
        else:
            numbers[part.number] = part.value
    return Histogram(
        step,
        tuple(buckets),
        count=numbers[8],
        nan=numbers[2],
        pos_inf=numbers[3],
        neg_inf=numbers[4],
        max=_double(numbers[5]),
        min=_double(numbers[6]),
        sum=_double(numbers[7]),
        time=time,
    )


def _tensor(data: bytes, message: pb.Field) -> NDArray[Any]:
    dims: list[int] = []
    kind, raw = 11, b""
    lists: list[NDArray[Any]] = []
    packed = {3: "<f4", 6: "<f8"}
    for part in pb.fields(data, message.value, message.end):
        if part.number == 1:
            dims += pb.varints(data, part.value, part.end) if part.kind == pb.BYTES else [part.value]
        elif part.number == 2:
            kind = part.value
        elif part.number == 8:
            raw = bytes(data[part.value : part.end])
        elif part.number in packed and part.kind == pb.BYTES:
            lists.append(np.frombuffer(data[part.value : part.end], packed[part.number]))
        elif part.number in packed:
            lists.append(np.array([_float(part.value) if part.number == 3 else _double(part.value)]))
        elif part.kind == pb.BYTES:
            lists.append(np.array([pb.signed(one) for one in pb.varints(data, part.value, part.end)]))
        else:
            lists.append(np.array([pb.signed(part.value)]))
    dtype = dtype_named(_TYPES.get(kind, "float32"))
    if dtype is None:
        raise pb.Malformed(f"a tensor of type {kind}")
    flat = np.frombuffer(raw, dtype) if raw else np.concatenate(lists or [np.zeros(0)]).astype(dtype)
    return flat.reshape(dims) if math.prod(dims) == flat.size else flat


def _read_lineage(summary: Summary, data: bytes) -> None:
    for part in pb.fields(data):
        if part.number == 6:
            for group in pb.fields(data, part.value, part.end):
                summary.lineage.update(_named(data, group, _TRAIN.get(group.number, {})))
        elif part.number == 7:
            for group in pb.fields(data, part.value, part.end):
                if group.number == 2:
                    summary.lineage["metric"] = pb.text(data, group)
                else:
                    summary.lineage.update(_named(data, group, _EVALUATION.get(group.number, {})))
        elif part.number == 9:
            summary.dataset_graph = _dataset(data, part)
        elif part.number == 10:
            summary.lineage.setdefault("user", {}).update(_user(data, part))


def _named(data: bytes, message: pb.Field, names: dict[int, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in pb.fields(data, message.value, message.end):
        name = names.get(part.number)
        if name is not None:
            found[name] = _plain(data, part, floats=name in _FLOATS)
    return found


def _user(data: bytes, message: pb.Field) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in pb.fields(data, message.value, message.end):
        if part.number == 1:
            found.update(_user(data, part))
        elif part.number in (3, 4, 5):
            found.update(_entry(data, part))
        elif part.number == 2:
            inside = {one.number: one for one in pb.fields(data, part.value, part.end)}
            if 1 in inside and 2 in inside:
                found[pb.text(data, inside[1])] = _user(data, inside[2])
    return found


def _dataset(data: bytes, message: pb.Field) -> dict[str, Any]:
    """A tree of {"children": […], parameters …}: how the data set was put together."""
    node: dict[str, Any] = {}
    for part in pb.fields(data, message.value, message.end):
        if part.number == 1:
            node.setdefault("children", []).append(_dataset(data, part))
        elif part.number == 2:
            node.update(_parameters(data, part))
        elif part.number == 3:
            for inner in pb.fields(data, part.value, part.end):
                if inner.number == 1:
                    node.setdefault("operations", []).append(_parameters(data, inner))
        elif part.number == 4:
            node["sampler"] = _dataset(data, part)
    return node


def _parameters(data: bytes, message: pb.Field) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in pb.fields(data, message.value, message.end):
        if part.number != 2:
            found.update(_entry(data, part))
            continue
        inside = {one.number: one for one in pb.fields(data, part.value, part.end)}
        if 1 in inside:
            listed = pb.fields(data, inside[2].value, inside[2].end) if 2 in inside else ()
            found[pb.text(data, inside[1])] = [pb.text(data, one) for one in listed]
    return found


def _entry(data: bytes, message: pb.Field) -> dict[str, Any]:
    inside = {one.number: one for one in pb.fields(data, message.value, message.end)}
    if 1 not in inside:
        return {}
    return {pb.text(data, inside[1]): _plain(data, inside[2]) if 2 in inside else 0}


def _plain(data: bytes, part: pb.Field, *, floats: bool = False) -> Any:
    if part.kind == pb.BYTES:
        return pb.text(data, part)
    if part.kind == pb.FIXED32:
        return _float(part.value)
    if part.kind == pb.FIXED64:
        return _double(part.value)
    return float(part.value) if floats else pb.signed(part.value)


def _float(bits: int) -> float:
    return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])


def _double(bits: int) -> float:
    return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])
