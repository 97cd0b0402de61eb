"""The largest batch that fits is right to the unit, and a leak is told from memory that levels off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from misstep.performance.footprint import Footprint, largest_batch
from misstep.performance.resident import leak_in


def footprint(samples: int, peak: int) -> Footprint:
    return Footprint(peak, peak, {}, {}, (), (), samples, True)


PEAKS: dict[str, Callable[[int], int]] = {
    "a line": lambda n: 1_000_000 + 37_113 * n,
    "flat first": lambda n: max(4_000_000, 37_113 * n),
    "a knee": lambda n: 1_000_000 + 10_000 * n + 300 * n * n,
}


@pytest.mark.parametrize("shape", PEAKS)
@pytest.mark.parametrize("limit", [5_000_000, 9_999_999, 50_000_000])
def test_the_largest_batch_is_right_to_the_unit(shape: str, limit: int) -> None:
    peak = PEAKS[shape]
    tried: list[int] = []

    def again(size: int) -> Footprint:
        tried.append(size)
        return footprint(size, peak(size))

    found = largest_batch(footprint(16, peak(16)), limit, again)
    assert found is not None
    assert peak(found.samples) <= limit < peak(found.samples + 1)
    assert len(tried) <= 14


def test_where_the_data_ends_first_all_of_it_is_the_largest_batch() -> None:
    found = largest_batch(footprint(16, 1000), 10**9, lambda size: footprint(min(size, 100), 1000 + size))
    assert found is not None
    assert (found.samples, found.next_peak) == (100, None)


def test_where_not_even_one_sample_fits_there_is_no_batch() -> None:
    assert largest_batch(footprint(4, 5000), 1000, lambda size: footprint(size, 4000 + size)) is None


def looks(held: Any) -> bool:
    return leak_in(np.arange(len(held)) * 10, np.array(held, dtype=np.int64)) is not None


def test_memory_that_only_rises_is_a_leak() -> None:
    assert looks([10**8 + 10**6 * at for at in range(30)])


@pytest.mark.parametrize(
    "held",
    [
        [10**8] * 30,
        [10**8 + 10**7 * min(at, 12) for at in range(40)],
        [10**8 + (at % 5) * 10**6 for at in range(40)],
        [10**8 + 10**6 * at for at in range(6)],
    ],
    ids=["flat", "levels off", "up and down", "too few"],
)
def test_other_memory_is_none(held: list[int]) -> None:
    assert not looks(held)
