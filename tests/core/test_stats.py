"""The statistics record and its readable form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.tensors import summary_of
from misstep.core.stats import DTYPE_CODES, DTYPE_NAMES, HEAD, ITEM_BYTES, ROW, SUMMARY, TensorStats


def test_a_row_is_a_head_and_a_summary_of_128_bytes_without_gaps() -> None:
    assert ROW.names == (*(HEAD.names or ()), *(SUMMARY.names or ()))
    assert (HEAD.itemsize, SUMMARY.itemsize, ROW.itemsize) == (24, 104, 128)
    assert [ROW.fields[name][1] for name in ("tensor", "check", "count", "std")] == [0, 20, 24, 120]  # type: ignore[index]


def test_every_dtype_has_a_code_and_a_size() -> None:
    assert len(ITEM_BYTES) == len(DTYPE_NAMES) == len(DTYPE_CODES)
    known = {name: np.dtype(name).itemsize for name in DTYPE_NAMES if name in np.sctypeDict}
    assert {name: ITEM_BYTES[DTYPE_CODES[name]] for name in known} == known


def test_stats_are_read_from_a_summary_and_from_a_row() -> None:
    record = summary_of([1.0, -2.0, 0.0, math.nan])[0]
    row = np.zeros(1, dtype=ROW)
    for name in SUMMARY.names or ():
        row[name] = record[name]

    stats = TensorStats.of(record, dtype="float32", shape=(2, 2))

    assert stats == TensorStats.of(row[0], dtype="float32", shape=(2, 2))
    assert (stats.count, stats.nan, stats.zeros, stats.negatives, stats.positives) == (4, 1, 1, 1, 1)
    assert isinstance(stats.count, int)
    assert isinstance(stats.mean, float)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0, 3.0], "1 … 3, mean 2"),
        ([math.nan] * 1204 + [-3.1, 4.2], "1,204 NaN of 1,206; the rest -3.1 … 4.2"),
        ([math.inf, -math.inf, 0.0], "1 +Inf, 1 -Inf of 3; the rest 0 … 0"),
        ([math.nan], "1 NaN of 1"),
        ([], "empty"),
    ],
)
def test_statistics_are_described_in_a_line(values: list[float], text: str) -> None:
    assert TensorStats.of(summary_of(values)[0]).describe() == text


def test_finite_and_zero_percentage() -> None:
    bad, half = TensorStats.of(summary_of([math.nan, math.inf])[0]), TensorStats.of(summary_of([0.0, 1.0])[0])

    assert (bad.finite, bad.nonfinite) == (False, 2)
    assert (half.finite, half.zero_percentage) == (True, 50.0)
    assert TensorStats.of(summary_of([])[0]).zero_percentage == 0.0
