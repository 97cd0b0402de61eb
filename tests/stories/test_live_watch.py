"""Watchpoints while training runs: added, tried out, changed, asked again, and honest about what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from livestory import FOREVER, NETWORK, Live

from misstep.errors import ControlError
from misstep.store.reading.reader import open_run

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


WRONG = (
    NETWORK.replace("return self.decoder(self.encoder(x))", "return self.decoder(self.squash(self.encoder(x)))")
    .replace(
        "    def forward(self, x):",
        """    def squash(self, x):
        return torch.log(x) if number == 4 else x

    def forward(self, x):""",
    )
    .replace("return loss", "")
    + """
for number in range(1, 8):
    step(torch.randn(4, 8))
"""
)


def test_the_values_a_verdict_speaks_of_are_there_while_paused_and_after_death(live: Live):
    run = live.train(WRONG, level="guard", on_nan="pause")
    debug = live.debugger()
    assert debug.wait("paused").step == 4
    verdict = open_run(run).verdict
    assert verdict is not None
    assert (verdict.op, verdict.precision) == ("aten.log", "operator")
    (made,), (of,) = verdict.outputs, verdict.inputs
    values, before = debug.tensor(made.address), debug.tensor(of.address)
    assert (np.isnan(values) == (before < 0)).all()
    assert int(np.isnan(values).sum()) == made.nan > 0
    assert live.process is not None
    live.process.kill()
    live.exit()
    after = open_run(run)
    assert np.array_equal(after.tensor(made.address), values, equal_nan=True)
    assert np.array_equal(after.tensor(of.address), before)


def test_what_tripped_a_pausing_watchpoint_is_still_there_to_look_at(live: Live):
    live.train(WRONG, level="module", watch="max > -1e9 on encoder.1:output@3 then pause", on_nan="pause", replay=0)
    debug = live.debugger()
    assert debug.wait("paused").step == 3
    assert np.abs(debug.tensor("encoder.1:output")).max() < 1
    debug.go()
    debug.wait_hit(2)
    assert debug.wait("paused").step == 4
    assert np.isnan(debug.tensor("decoder:output")).all()
    assert np.isnan(debug.tensor("decoder:input")).any()
