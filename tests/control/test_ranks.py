"""Conditions across ranks, from digests alone."""

from __future__ import annotations

from misstep.control.ranks import AcrossRanks
from misstep.protocol.wire import Digest


def told(across: AcrossRanks, step: int, *ranks: tuple[float, Digest]) -> list[tuple[str, int]]:
    found = []
    for rank, (loss, digest) in enumerate(ranks):
        found += across.report(rank, step, loss, digest)
    return [(finding.condition, finding.rank) for finding in found]


def digest(weights: tuple[int, ...] = (1, 2), gradients: tuple[int, ...] = (3, 4), batch: int = 0) -> Digest:
    return Digest(weights, gradients, 9, batch)


def test_replicas_in_step_are_fine():
    across = AcrossRanks(2)
    assert [told(across, step, (1.0, digest(batch=step)), (1.1, digest(batch=-step))) for step in range(1, 9)] == [
        []
    ] * 8


def test_weights_that_part_are_told_once_and_again_after_they_met():
    across = AcrossRanks(2)
    same, other = digest(), digest(weights=(1, 7))
    second = (same, other, other, same, other)
    order = [told(across, step, (1.0, same), (1.0, which)) for step, which in enumerate(second, 1)]
    assert order == [[], [("weights_out_of_sync", 1)], [], [], [("weights_out_of_sync", 1)]]


def test_gradients_that_differ_while_weights_were_equal_are_not_averaged():
    across = AcrossRanks(2)
    assert told(across, 1, (1.0, digest()), (1.0, digest())) == []
    parted = told(across, 2, (1.0, digest()), (1.0, digest(weights=(5, 6), gradients=(8, 8))))
    assert parted == [("gradients_not_averaged", 1), ("weights_out_of_sync", 1)]


def test_ranks_with_other_tensors_are_not_compared():
    across = AcrossRanks(2)
    shard = Digest((7,), (8,), 1234)
    assert told(across, 1, (1.0, digest()), (1.0, shard)) == []


def test_the_same_batch_three_times_is_no_accident():
    across = AcrossRanks(2)
    order = [told(across, step, (1.0, digest(batch=step)), (1.0, digest(batch=step))) for step in range(1, 6)]
    assert order == [[], [], [("same_batch", 1)], [], []]


def test_a_loss_that_is_not_finite_on_one_rank_is_told_at_once():
    across = AcrossRanks(3)
    fine = digest()
    assert told(across, 1, (1.0, fine), (float("nan"), fine), (1.2, fine)) == [("loss_apart", 1)]


def test_a_loss_far_from_the_others_is_told_after_three_steps():
    across = AcrossRanks(3)
    fine = digest()
    order = [told(across, step, (1.0, fine), (500.0, fine), (1.2, fine)) for step in range(1, 5)]
    assert order == [[], [], [("loss_apart", 1)], []]


def test_a_step_is_judged_only_when_every_rank_has_reported_it():
    across = AcrossRanks(2)
    assert across.report(1, 1, 1.0, digest(weights=(9, 9))) == []
    assert len(across.report(0, 1, 1.0, digest())) == 1
