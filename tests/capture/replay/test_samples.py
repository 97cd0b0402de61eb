"""Who in the batch is guilty: halves are run again until single samples are left."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from misstep.capture.replay.samples import find_guilty


def batch(*guilty: int):  # type: ignore[no-untyped-def]
    def bad_with(samples: Sequence[int], healthy: Sequence[int]) -> bool:
        return any(one in guilty for one in samples)

    return bad_with


@pytest.mark.parametrize("one", [0, 17, 63])
def test_one_guilty_sample_of_64_is_found_and_proven_in_a_few_runs(one: int):
    found = find_guilty(64, batch(one))
    assert (found.samples, found.proven, found.complete) == ((one,), True, True)
    assert found.runs <= 2 * 6 + 4


def test_two_guilty_samples_are_both_named():
    assert find_guilty(16, batch(3, 12)).samples == (3, 12)


def test_a_batch_that_is_healthy_when_run_again_blames_nobody():
    found = find_guilty(8, lambda samples, healthy: False)
    assert (found.samples, found.proven, found.runs) == ((), False, 1)


def test_what_is_bad_only_together_is_proven_of_nobody():
    found = find_guilty(8, lambda samples, healthy: len(samples) > 5)
    assert not found.proven or not found.samples
