"""The list of runs tells hits and losses of finished runs, from their journals alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from misstep.core.address import Address
from misstep.core.finding import Finding, Verdict
from misstep.core.run import RunInfo, Step
from misstep.core.stats import HEAD, SUMMARY
from misstep.core.watching.watch import Hit
from misstep.hub.listing.glances import LOSSES, Glance, Glances
from misstep.store.writing.writer import RunWriter


def record(run: Path, steps: int) -> RunWriter:
    writer = RunWriter(run, 0, RunInfo(name="try", command=("python",), started=1.0))
    for step in range(1, steps + 1):
        writer.hit(Hit(step, 1, Address("fc", step=step, rank=0), reason="1 NaN"))
        loss = float("nan") if step == steps else float(step)
        writer.step(Step(step, loss=loss), np.zeros(0, HEAD), np.zeros(0, SUMMARY))
    return writer


def test_hits_are_counted_and_the_last_losses_come_in_order(tmp_path: Path) -> None:
    record(tmp_path / "try", 100).end("finished", 0)
    glance = Glances().of(tmp_path / "try", (0,))
    assert glance == Glance(100, (*(float(step) for step in range(101 - LOSSES, 100)), "NaN"))


def test_what_was_found_is_told_the_first_bad_value_before_anything_else(tmp_path: Path) -> None:
    writer = record(tmp_path / "try", 3)
    writer.finding(Finding("mindspore.compile", "MindSpore could not compile the network"))
    writer.flush()
    glances = Glances()
    assert glances.of(tmp_path / "try", (0,)).found == "MindSpore could not compile the network"
    writer.verdict(Verdict(step=2, rank=0, phase="forward", kind="nan", node="blocks.2/log"))
    writer.end("finished", 0)
    assert glances.of(tmp_path / "try", (0,)).found == "first bad value: step 2, forward, blocks.2/log"


def test_a_journal_that_grew_is_looked_at_again(tmp_path: Path) -> None:
    glances = Glances()
    writer = record(tmp_path / "try", 3)
    writer.flush()
    assert glances.of(tmp_path / "try", (0,)) == Glance(3, (1.0, 2.0, "NaN"))
    writer.step(Step(4, loss=0.5), np.zeros(0, HEAD), np.zeros(0, SUMMARY))
    writer.end("finished", 0)
    assert glances.of(tmp_path / "try", (0,)).losses[-1] == 0.5


def test_a_run_without_a_journal_shows_nothing(tmp_path: Path) -> None:
    assert Glances().of(tmp_path, (0,)) == Glance()


def test_of_several_ranks_the_one_that_failed_first_is_named(tmp_path: Path) -> None:
    later = RunWriter(tmp_path / "try", 0, RunInfo(name="try", command=("python",), started=1.0))
    first = RunWriter(tmp_path / "try", 1, RunInfo(name="try", command=("python",), started=1.0))
    first.event("exception", type="RuntimeError", text="the shard ended early")
    later.event("exception", type="RuntimeError", text="connection closed by peer")
    first.end("failed", 1)
    later.end("failed", 1)
    assert Glances().of(tmp_path / "try", (0, 1)).found == "RuntimeError: the shard ended early"
