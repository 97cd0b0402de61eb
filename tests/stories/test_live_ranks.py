"""Two ranks of one training: they pause together, and what is wrong between them is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from livestory import Live

from misstep.protocol.views import RankView
from ports import free_port

pytestmark = [pytest.mark.story, pytest.mark.slow]

TWO_RANKS = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
wrapped = {wrapped}
optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01)
torch.manual_seed({seed})
number = 0
while True:
    number += 1
    x = torch.randn(4, 8)
    {spoil}
    loss = wrapped(x).pow(2).mean() * {scale}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {after}
    dist.barrier()
"""


def script(
    *,
    spoil: str = "pass",
    after: str = "pass",
    wrapped: str = "DistributedDataParallel(model)",
    seed: str = "rank",
    scale: str = "1",
) -> str:
    return TWO_RANKS.format(spoil=spoil, after=after, wrapped=wrapped, seed=seed, scale=scale)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    started = Live(tmp_path)
    yield started
    started.end()


def start(live: Live, text: str, **settings: object) -> None:
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port()))
    live.train(text, launcher=launcher, pause_at_start=1, **settings)


def steps(ranks: tuple[RankView, ...]) -> list[tuple[int, str, int]]:
    return [(rank.rank, rank.phase, rank.step) for rank in ranks]


def test_both_ranks_pause_step_and_go_to_a_node_together(live: Live):
    start(live, script())
    debug = live.debugger(ranks=2)
    assert steps(debug.wait("paused").ranks) == [(0, "paused", 0), (1, "paused", 0)]
    debug.step(3)
    assert steps(debug.wait("paused").ranks) == [(0, "paused", 3), (1, "paused", 3)]
    debug.run_to("module.2")
    places = [rank.place.node if rank.place else "" for rank in debug.wait("paused").ranks]
    assert places == ["module.2", "module.2"]
    debug.go()
    debug.wait_step(8)
    debug.pause()
    (zero, one) = debug.wait("paused").ranks
    assert zero.step == one.step
    debug.stop()
    debug.wait("ended")


def test_a_nan_on_rank_1_pauses_rank_0_at_the_same_step(live: Live):
    start(live, script(spoil="if rank == 1 and number == 9: x[0, 0] = float('nan')"), on_nan="pause")
    debug = live.debugger(ranks=2)
    debug.wait("paused")
    debug.go()
    state = debug.wait("paused")
    (zero, one) = state.ranks
    assert zero.step == one.step
    assert zero.step in (9, 10)
    hits = debug.wait_hit()
    first = min(hits, key=lambda hit: hit.step)
    assert first.step == 9
    debug.stop()
    debug.wait("ended")


def test_weights_that_drift_apart_between_ranks_are_found(live: Live):
    drift = "if rank == 1 and number == 6: model[0].weight.data[0, 0] += 1"
    start(live, script(after=drift))
    debug = live.debugger(ranks=2)
    debug.wait("paused")
    debug.watch("weights_out_of_sync", then="pause")
    debug.go()
    state = debug.wait("paused")
    assert state.reason is not None
    assert (state.reason.kind, state.reason.rank) == ("across_ranks", 1)
    found = next(hit for hit in debug.hits if hit.condition == "weights_out_of_sync")
    assert (found.step, found.rank) == (7, 1)
    assert "1 of 4 weights of rank 1 differ from rank 0; they were equal before" in found.reason
    debug.stop()
    debug.wait("ended")


def test_gradients_that_nobody_averages_are_found(live: Live):
    start(live, script(wrapped="model"))
    debug = live.debugger(ranks=2)
    debug.wait("paused")
    debug.go()
    debug.wait_hit()
    assert debug.hits[0].condition == "gradients_not_averaged"
    debug.stop()
    debug.wait("ended")


def test_the_same_batch_on_two_ranks_is_found(live: Live):
    start(live, script(seed="7"))
    debug = live.debugger(ranks=2)
    debug.wait("paused")
    debug.go()
    debug.wait_hit()
    assert (debug.hits[0].condition, debug.hits[0].rank) == ("same_batch", 1)
    debug.stop()
    debug.wait("ended")


def test_a_loss_far_from_the_other_ranks_is_found(live: Live):
    still = "optimizer.param_groups[0]['lr'] = 0.0"
    start(live, script(spoil=still, scale="(1000 if rank == 1 else 1)"))
    debug = live.debugger(ranks=2)
    debug.wait("paused")
    debug.step(3)
    debug.wait("paused")
    debug.wait_hit()
    assert [(hit.condition, hit.rank, hit.step) for hit in debug.hits] == [("loss_apart", 1, 3)]
    assert debug.hits[0].reason.startswith("the loss of rank 1 is ")
    assert debug.hits[0].reason.endswith(", 3 steps in a row")
    debug.stop()
    debug.wait("ended")
