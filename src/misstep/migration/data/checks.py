"""What is wrong with a data pipeline, found by reading all of it once, and its beginning twice.

>>> check_data(DataLoader(dataset, shuffle=True)).findings
"""

from __future__ import annotations

import hashlib
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Any, Literal

import numpy as np

from misstep.migration.data.reading import Sample, promised_length, samples
from misstep.migration.frameworks.base import Array

What = Literal[
    "empty", "length", "columns", "dtype", "not_finite", "constant", "negative_label", "unbalanced", "missing_class",
    "not_normalised", "duplicates", "same_order", "slow", "other_length", "other_columns", "other_values",
    "other_order", "other_dtype",
]  # fmt: skip
UNBALANCED = 10.0
"""The largest class against the smallest: above, accuracy says little about the small one."""
SLOW = 10.0
SLOW_SECONDS = 0.005
"""A sample is slow when it takes so many times the median, and long enough to matter."""
MOST_CLASSES = 1000
TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class DataFinding:
    """One thing to look at."""

    what: What
    column: str = ""
    left: str = ""
    right: str = ""
    samples: tuple[int, ...] = ()
    """Where, counted from 0; the first few."""
    count: int = 0


@dataclass(slots=True)
class Column:
    """What one column held, over all samples."""

    name: str
    dtypes: Counter[str] = field(default_factory=Counter)
    shapes: Counter[tuple[int, ...]] = field(default_factory=Counter)
    low: float = float("inf")
    high: float = float("-inf")
    total: float = 0.0
    squares: float = 0.0
    count: int = 0
    bad: list[int] = field(default_factory=list)
    classes: Counter[int] = field(default_factory=Counter)

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    @property
    def std(self) -> float:
        return max(0.0, self.squares / self.count - self.mean**2) ** 0.5 if self.count else 0.0

    def take(self, at: int, value: Array) -> None:
        self.dtypes[str(value.dtype)] += 1
        self.shapes[value.shape] += 1
        if value.dtype.kind not in "fiub" or not value.size:
            return
        wide = value.astype(np.float64)
        finite = np.isfinite(wide)
        if not finite.all():
            self.bad.append(at)
            wide = wide[finite]
        if wide.size:
            self.low, self.high = min(self.low, float(wide.min())), max(self.high, float(wide.max()))
            self.total += float(wide.sum())
            self.squares += float((wide**2).sum())
            self.count += wide.size
        if value.dtype.kind in "iu" and value.ndim <= 1 and len(self.classes) <= MOST_CLASSES:
            self.classes.update(int(one) for one in value.reshape(-1))


@dataclass(slots=True)
class DataReport:
    """What a pipeline delivered."""

    promised: int | None
    delivered: int = 0
    columns: dict[str, Column] = field(default_factory=dict)
    findings: list[DataFinding] = field(default_factory=list)
    slowest: list[tuple[int, float]] = field(default_factory=list)
    seconds: float = 0.0

    def __bool__(self) -> bool:
        return not self.findings


def check_data(pipeline: Any, *, again: bool = True) -> DataReport:
    """Read a whole pipeline and say what is strange about it; `again` reads its beginning twice, to see it shuffle."""
    report = DataReport(promised_length(pipeline))
    seen: dict[str, int] = {}
    twins: list[tuple[int, int]] = []
    widths: dict[tuple[str, ...], list[int]] = defaultdict(list)
    times: list[float] = []
    first: list[str] = []
    for at, sample in enumerate(samples(pipeline)):
        report.delivered += 1
        times.append(sample.seconds)
        widths[tuple(sample.columns)].append(at)
        for name, value in sample.columns.items():
            report.columns.setdefault(name, Column(name)).take(at, value)
        mark = digest(sample)
        if mark in seen:
            twins.append((seen[mark], at))
        seen.setdefault(mark, at)
        if len(first) < 64:
            first.append(mark)
    report.seconds = sum(times)
    report.findings += _of_length(report)
    report.findings += _of_columns(widths)
    for column in report.columns.values():
        report.findings += _of_column(column, report.delivered)
    if twins:
        where = tuple(at for pair in twins[:3] for at in pair)
        report.findings.append(DataFinding("duplicates", samples=where, count=len(twins)))
    report.findings += _of_times(times, report)
    if again and len(first) > 1 and _shuffles(pipeline):
        second = [digest(sample) for sample in islice(samples(pipeline), len(first))]
        if first == second and len(set(first)) > 1:
            report.findings.append(DataFinding("same_order", count=len(first)))
    return report


def compare_data(left: Any, right: Any) -> list[DataFinding]:
    """Two pipelines element by element; the same elements in another order are told as such."""
    found: list[DataFinding] = []
    ours, theirs = Counter[str](), Counter[str]()
    total = different = 0
    for at, (one, other) in enumerate(zip_longest(samples(left), samples(right))):
        total += 1
        if one is not None:
            ours[digest(one)] += 1
        if other is not None:
            theirs[digest(other)] += 1
        if one is None or other is None:
            continue
        mine, yours = list(one.columns.values()), list(other.columns.values())
        if len(mine) != len(yours):
            return [DataFinding("other_columns", left=str(len(mine)), right=str(len(yours)), samples=(at,))]
        wrong = [
            (name, a, b) for name, a, b in zip(one.columns, mine, yours) if not _same(a, b)
        ]  # fmt: skip
        for name, a, b in zip(one.columns, mine, yours):
            if a.dtype != b.dtype and not any(f.what == "other_dtype" and f.column == name for f in found):
                found.append(DataFinding("other_dtype", name, str(a.dtype), str(b.dtype), (at,)))
        if wrong:
            different += 1
            if different <= 1:
                name, a, b = wrong[0]
                found.append(DataFinding("other_values", name, _shown(a), _shown(b), (at,)))
    if sum(ours.values()) != sum(theirs.values()):
        found.insert(0, DataFinding("other_length", left=str(sum(ours.values())), right=str(sum(theirs.values()))))
    elif different and ours == theirs:
        found = [one for one in found if one.what != "other_values"]
        found.append(DataFinding("other_order", count=different))
    return [
        DataFinding(one.what, one.column, one.left, one.right, one.samples, different)
        if one.what == "other_values"
        else one
        for one in found
    ]


def digest(sample: Sample) -> str:
    """The same for samples with the same values; whole numbers count by value, not by width."""
    marks = hashlib.blake2b(digest_size=16)
    for value in sample.columns.values():
        plain = value.astype(np.int64) if value.dtype.kind in "iub" else value
        marks.update(str(plain.shape).encode() + np.ascontiguousarray(plain).tobytes())
    return marks.hexdigest()


def _of_length(report: DataReport) -> list[DataFinding]:
    if not report.delivered:
        return [DataFinding("empty")]
    if report.promised is not None and report.promised != report.delivered:
        return [DataFinding("length", left=str(report.promised), right=str(report.delivered))]
    return []


def _of_columns(widths: Mapping[tuple[str, ...], list[int]]) -> list[DataFinding]:
    if len(widths) <= 1:
        return []
    usual = max(widths, key=lambda names: len(widths[names]))
    odd = next(names for names in widths if names != usual)
    where = tuple(widths[odd][:3])
    return [DataFinding("columns", left=str(len(usual)), right=str(len(odd)), samples=where, count=len(widths[odd]))]


def _of_column(column: Column, delivered: int) -> list[DataFinding]:
    found = []
    if len(column.dtypes) > 1:
        (usual, _), (odd, _) = column.dtypes.most_common(2)
        found.append(DataFinding("dtype", column.name, usual, odd))
    if column.bad:
        found.append(DataFinding("not_finite", column.name, samples=tuple(column.bad[:5]), count=len(column.bad)))
    if delivered > 1 and column.count > 1 and column.low == column.high:
        found.append(DataFinding("constant", column.name, f"{column.low:g}"))
    if column.classes and len(column.shapes) == 1 and len(column.classes) > 1:
        found += _of_labels(column)
    elif column.count > 64 and not column.classes and column.low != column.high and _raw(column):
        found.append(DataFinding("not_normalised", column.name, f"{column.low:g}", f"{column.high:g}"))
    return found


def _of_labels(column: Column) -> list[DataFinding]:
    found = []
    if min(column.classes) < 0:
        bad = min(column.classes)
        found.append(DataFinding("negative_label", column.name, str(bad), count=column.classes[bad]))
    if max(column.classes) > MOST_CLASSES or len(column.classes) > MOST_CLASSES:
        return found
    missing = set(range(max(column.classes) + 1)) - set(column.classes)
    few = len(missing) <= len(column.classes)
    if missing and few:
        found.append(DataFinding("missing_class", column.name, ", ".join(map(str, sorted(missing)[:8]))))
    most, least = max(column.classes.values()), min(column.classes.values())
    if most > UNBALANCED * least:
        common = column.classes.most_common()
        found.append(DataFinding("unbalanced", column.name, f"{common[0][0]} ({most})", f"{common[-1][0]} ({least})"))
    return found


def _raw(column: Column) -> bool:
    """Values as a file stores them, never scaled: pixels up to 255, or a mean many deviations from zero."""
    return (column.high > 50 and abs(column.mean) > 3) or (column.std > 0 and abs(column.mean) > 10 * column.std)


def _of_times(times: list[float], report: DataReport) -> list[DataFinding]:
    if len(times) < 8:
        return []
    usual = statistics.median(times)
    slow = [(at, one) for at, one in enumerate(times) if one > max(SLOW * usual, SLOW_SECONDS) and at > 0]
    report.slowest = sorted(slow, key=lambda pair: -pair[1])[:5]
    if not slow:
        return []
    worst = report.slowest[0]
    return [
        DataFinding(
            "slow",
            left=f"{worst[1] * 1000:.3g}",
            right=f"{usual * 1000:.2g}",
            samples=tuple(at for at, _ in report.slowest),
            count=len(slow),
        )
    ]


def _shuffles(pipeline: Any) -> bool:
    """Whether it was asked to shuffle: a sampler that draws, or MindSpore's shuffle in the chain."""
    sampler = getattr(pipeline, "sampler", None)
    if sampler is not None and "Random" in type(sampler).__name__:
        return True
    return type(pipeline).__name__ == "ShuffleDataset" or any(
        _shuffles(child) for child in getattr(pipeline, "children", ()) or ()
    )


def _same(one: Array, other: Array) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype.kind in "fiub" and other.dtype.kind in "fiub":
        return bool(np.allclose(one.astype(np.float64), other.astype(np.float64), TOLERANCE, TOLERANCE, equal_nan=True))
    return bool(np.array_equal(one, other))


def _shown(value: Array) -> str:
    if value.size == 1:
        return str(value.reshape(-1)[0])
    head = ", ".join(f"{one:.4g}" if value.dtype.kind == "f" else str(one) for one in value.reshape(-1)[:3])
    return f"{'×'.join(map(str, value.shape))} [{head}, …]"
