"""Event files of TensorBoard, and the folder our own SummaryCollector writes, read as MindSpore's summaries are.

events.out.tfevents.{time}.{host}    Event{1: time, 2: step, 5: Summary{1: Value*}}
                                     Value{1: tag, 2: number, 5: histogram, 8: tensor}
scalars.jsonl, histograms.jsonl      a line for each number and each distribution; lineage.json beside them
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from misstep.store.foreign import protobuf as pb

if TYPE_CHECKING:
    from misstep.store.foreign.mindspore.summary import Summary

TENSORBOARD = re.compile(r"events\.out\.tfevents\.(?P<time>\d+)\.?(?P<host>.*)")
OWN = "scalars.jsonl"

_TYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", 19: "<f2"}
"""tensorflow.DataType."""


def read_tensorboard_event(summary: Summary, data: bytes) -> None:
    """Take one record of an event file in."""
    time, step = 0.0, 0
    for part in pb.fields(data):
        if part.number == 1 and part.kind == pb.FIXED64:
            time = _double(part.value)
        elif part.number == 2 and part.kind == pb.VARINT:
            step = pb.signed(part.value)
        elif part.number == 5 and part.kind == pb.BYTES:
            for value in pb.fields(data, part.value, part.end):
                if value.number == 1:
                    _read_value(summary, data, value, step, time)


def read_own_summary(summary: Summary, folder: Path) -> None:
    """Everything our own SummaryCollector left in a folder."""
    from misstep.store.foreign.mindspore.summary import Histogram, Point

    for line in _lines(folder / OWN):
        point = Point(int(line["step"]), float(line["value"]), float(line.get("time", 0.0)))
        summary.scalars.setdefault(str(line["tag"]), []).append(point)
        summary.started = min(summary.started or point.time, point.time)
    for line in _lines(folder / "histograms.jsonl"):
        edges, counts = line["edges"], line["counts"]
        middle = sum(count * (left + right) / 2 for left, right, count in zip(edges, edges[1:], counts))
        summary.histograms.setdefault(str(line["tag"]), []).append(
            Histogram(
                int(line["step"]),
                tuple((left, right - left, count) for left, right, count in zip(edges, edges[1:], counts)),
                count=sum(counts),
                min=edges[0],
                max=edges[-1],
                sum=middle,
            )
        )
    lineage = folder / "lineage.json"
    if lineage.is_file():
        summary.lineage.update(json.loads(lineage.read_text(encoding="utf-8")))


def _read_value(summary: Summary, data: bytes, value: pb.Field, step: int, time: float) -> None:
    from misstep.store.foreign.mindspore.summary import Point

    tag = ""
    for part in pb.fields(data, value.value, value.end):
        if part.number == 1 and part.kind == pb.BYTES:
            tag = pb.text(data, part)
        elif part.number == 2 and part.kind == pb.FIXED32:
            summary.scalars.setdefault(tag, []).append(Point(step, _float(part.value), time))
        elif part.number == 5 and part.kind == pb.BYTES:
            _read_histogram(summary, data, part, tag, step, time)
        elif part.number == 8 and part.kind == pb.BYTES:
            array = _tensor(data, part)
            if array is not None and array.size == 1:
                summary.scalars.setdefault(tag, []).append(Point(step, float(array.reshape(-1)[0]), time))
            elif array is not None and array.size:
                summary.tensors.setdefault(tag, []).append((step, array))


def _read_histogram(summary: Summary, data: bytes, message: pb.Field, tag: str, step: int, time: float) -> None:
    from misstep.store.foreign.mindspore.summary import Histogram

    numbers: dict[int, float] = {}
    rows: dict[int, list[float]] = {6: [], 7: []}
    for part in pb.fields(data, message.value, message.end):
        if part.number in rows and part.kind == pb.BYTES:
            rows[part.number] += np.frombuffer(data[part.value : part.end], "<f8").tolist()
        elif part.number in rows:
            rows[part.number].append(_double(part.value))
        elif part.kind == pb.FIXED64:
            numbers[part.number] = _double(part.value)
    limits, counts = rows[6], rows[7]
    low, high = numbers.get(1, 0.0), numbers.get(2, 0.0)
    edges = [low, *(min(limit, high) for limit in limits)]
    buckets = tuple((left, right - left, int(count)) for left, right, count in zip(edges, edges[1:], counts))
    summary.histograms.setdefault(tag, []).append(
        Histogram(step, buckets, count=int(numbers.get(3, 0)), min=low, max=high, sum=numbers.get(4, 0.0), time=time)
    )


def _tensor(data: bytes, message: pb.Field) -> NDArray[Any] | None:
    kind, raw, shape = 1, b"", []
    floats: list[float] = []
    for part in pb.fields(data, message.value, message.end):
        if part.number == 1 and part.kind == pb.VARINT:
            kind = part.value
        elif part.number == 2:
            for dim in pb.fields(data, part.value, part.end):
                sizes = [one.value for one in pb.fields(data, dim.value, dim.end) if one.number == 1]
                shape.append(sizes[0] if sizes else 1)
        elif part.number == 4 and part.kind == pb.BYTES:
            raw = bytes(data[part.value : part.end])
        elif part.number in (5, 6) and part.kind == pb.BYTES:
            floats += np.frombuffer(data[part.value : part.end], "<f4" if part.number == 5 else "<f8").tolist()
        elif part.number in (5, 6):
            floats.append(_float(part.value) if part.number == 5 else _double(part.value))
    if kind not in _TYPES:  # words and the like
        return None
    flat = np.frombuffer(raw, _TYPES[kind]) if raw else np.array(floats, _TYPES[kind])
    return flat.reshape(shape) if int(np.prod(shape)) == flat.size else flat


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):  # a last line may still be on its way
                yield json.loads(line)


def _float(bits: int) -> float:
    return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])


def _double(bits: int) -> float:
    return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])
