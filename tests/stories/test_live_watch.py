"""Watchpoints while training runs: added, tried out, changed, asked again, and honest about what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from livestory import FOREVER, NETWORK, Live

from misstep.errors import ControlError
from misstep.store.reader import open_run

pytestmark = pytest.mark.story


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    started = Live(tmp_path)
    yield started
    started.end()


def test_a_watchpoint_added_while_training_runs_hits_and_pauses(live: Live):
    run = live.train(FOREVER)
    debug = live.debugger()
    debug.wait_step(2)
    watch = debug.watch("abs_mean >= 0", on="decoder.weight:grad", then="pause")
    (hit, *_) = debug.wait_hit()
    state = debug.wait("paused")
    assert (hit.watchpoint, hit.address) == (watch.id, f"decoder.weight:grad@{state.step}#0")
    assert state.reason is not None
    assert (state.reason.kind, state.reason.watchpoint) == ("watchpoint", watch.id)
    assert hit.readings[0].parameter == "abs_mean >="
    assert [stored.id for stored in open_run(run).hits() if stored.watchpoint == watch.id] == [hit.id]


def test_recheck_asks_the_present_tensors_again_after_an_edit(live: Live):
    live.train(FOREVER, pause_at_start=1)
    debug = live.debugger()
    debug.wait("paused")
    debug.step(2)
    debug.wait("paused")
    watch = debug.watch("abs_mean > 1e9", on="*:grad")
    assert debug.recheck()["hits"] == 0
    debug.change(watch.id, "abs_mean >= 0", on="*:grad")
    assert debug.recheck()["hits"] == 4
    hits = debug.wait_hit(4)
    assert {hit.step for hit in hits} == {2}
    debug.change(watch.id, "abs_mean > 1", on="*:grad")
    assert all(hit.outdated for hit in debug.hit_list(watchpoint=watch.id).hits if hit.id in {h.id for h in hits})


def test_a_dry_run_says_what_would_hit_and_adds_nothing(live: Live):
    live.train(FOREVER, pause_at_start=1)
    debug = live.debugger()
    debug.wait("paused")
    debug.step()
    debug.wait("paused")
    before = debug.watchpoints()
    trial = debug.dry_run("abs_mean >= 0", on="encoder.*:grad")
    assert (trial.hits, trial.tensors) == (2, 2)
    assert debug.watchpoints() == before


def test_watchpoints_are_muted_scoped_and_recommended(live: Live):
    live.train(FOREVER, pause_at_start=1, recommended=0)
    debug = live.debugger()
    debug.wait("paused")
    debug.step()
    debug.wait("paused")
    watch = debug.watch("abs_mean >= 0", on="*:grad", then="note")
    assert watch.tensors == 4
    narrowed = debug.watch_scope(watch.id, "encoder", watched=False)
    assert narrowed["tensors"] == 2
    debug.enable(watch.id, False)
    assert debug.recheck()["hits"] == 0
    debug.enable(watch.id)
    assert debug.recheck()["hits"] == 2
    assert len(debug.recommend()["added"]) >= 5
    with pytest.raises(ControlError, match="no watchpoint 99"):
        debug.unwatch(99)


def test_a_condition_that_cannot_be_read_is_refused_and_training_stays(live: Live):
    live.train(FOREVER, pause_at_start=1)
    debug = live.debugger()
    debug.wait("paused")
    with pytest.raises(ControlError, match="nothing is called 'meen'"):
        debug.watch("meen > 3", on="*:grad")
    assert debug.state.phase == "paused"


def test_a_nan_pauses_training_where_it_was_born(live: Live):
    script = NETWORK + (
        "\nfor number in range(1, 200):\n    x = torch.randn(4, 8)\n"
        "    if number == 7:\n        x[0, 0] = float('nan')\n    step(x)\n"
    )
    live.train(script, on_nan="pause", pause_at_start=1)
    debug = live.debugger()
    debug.wait("paused")
    debug.go()
    state = debug.wait("paused")
    assert state.step == 7
    header = debug.look("encoder.0.weight:param", want=("find:next:-1", "stats"))
    assert header.found is not None
    assert header.found.value == "NaN"
    assert debug.hit_list(step=7).total > 0


LARGE = """
import resource
import torch

model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(20)])  # 80 MiB
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
while True:
    loss = model(torch.randn(4, 1024)).pow(2).mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
    with open("peak", "w") as file:
        file.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""
BUDGET_MB = 16
UNRELATED_MB = 16
"""What a hub's connection, the statistics and the allocator may add in a few steps, whatever the budget."""


def test_watchpoints_that_want_more_memory_than_the_budget_are_degraded_or_refused(live: Live):
    live.train(LARGE, pause_at_start=1, memory_mb=BUDGET_MB, recommended=0)
    debug = live.debugger()
    debug.wait("paused")
    debug.step(3)
    debug.wait("paused")
    before = peak_mb(live)

    with pytest.raises(
        ControlError, match=r"needs 80 MiB for 40 previous values; 8 MiB are free \(memory_mb\)"
    ) as told:
        debug.watch("weight_not_changed", on="*:param", then="note")
    assert told.value.code == "denied"
    trial = debug.dry_run("weight_not_changed", on="1?.*:param")
    assert trial.note == "previous values need 40 MiB and 8 MiB are free: only some are kept"

    some = debug.watch("weight_not_changed", on="1?.*:param", then="note")
    same = debug.watch("weight_change_too_large", on="1?.*:param", then="note")
    for number in range(6):
        debug.look(f"{number}:output")
        debug.step(1)
        debug.wait("paused")
    (rank,) = debug.state.ranks
    assert rank.memory_limit == BUDGET_MB << 20
    assert 0 < rank.memory_bytes <= rank.memory_limit
    notes = {view.id: view.note for view in debug.watchpoints()}
    assert "no memory for the previous value of" in notes[some.id]
    assert "no memory for the previous value of" in notes[same.id]
    assert peak_mb(live) - before <= BUDGET_MB + UNRELATED_MB


def peak_mb(live: Live) -> float:
    return int((live.folder / "peak").read_text()) / 1024
