"""Through one seam: disks that fill up, cut writes short, fail now and then."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from faulty_disk import NervousDisk, SmallDisk
from small_run import begin, rows, train

from misstep.core.address import Address
from misstep.core.finding import Verdict
from misstep.core.run import Step
from misstep.store.bundle.open import open_bundle
from misstep.store.bundle.write import write_bundle
from misstep.store.reading.reader import open_run
from misstep.store.reading.seen import seen_in
from misstep.store.writing import append

VERDICT = Verdict(3000, 0, "forward", "nan", "encoder.fc")


@pytest.mark.parametrize("room", [400_000, 600_000, 1_000_000])
def test_on_a_full_disk_the_verdict_survives_and_nothing_is_called_clean(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SmallDisk(room)
    monkeypatch.setattr(append, "DISK", disk)
    writer = begin(tmp_path / "run", on_problem=lambda _: None)
    train(writer, 1, 3)
    # A dump takes all there is; then steps go on until not one more of them fits.
    while writer.tensor(Address("encoder.fc", step=4), np.zeros(2_000, np.float32), "float32", (2_000,)):
        pass
    for number in range(4, 3001):
        writer.step(Step(number, loss=1.0, time=float(number)), *rows(number))
    writer.verdict(VERDICT)
    writer.end("failed", 1)
    run = open_run(tmp_path / "run")
    assert [verdict.node for verdict in run.verdicts] == ["encoder.fc"]
    assert run.state == "failed"
    assert run.lost["row"] > 0
    assert not seen_in(run).clean
    assert run.damage == []


def test_lost_records_are_told_at_once_and_not_only_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append, "DISK", SmallDisk(400_000))
    writer = begin(tmp_path / "run", on_problem=lambda _: None)
    train(writer, 1, 3)
    while writer.tensor(Address("encoder.fc", step=4), np.zeros(2_000, np.float32), "float32", (2_000,)):
        pass
    writer.step(Step(4, loss=1.0), *rows(4))  # and the process is killed here
    assert not seen_in(open_run(tmp_path / "run")).clean
    assert open_run(tmp_path / "run").lost


@pytest.mark.parametrize("seed", range(12))
def test_whatever_a_nervous_disk_does_what_is_read_back_is_true(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = NervousDisk(seed)
    monkeypatch.setattr(append, "DISK", disk)
    writer = begin(tmp_path / "run", on_problem=lambda _: None)
    train(writer, 1, 250)
    disk.calm = True
    writer.verdict(VERDICT)
    writer.end("finished", 0)
    run = open_run(tmp_path / "run")
    assert run.damage == []
    assert run.verify() == []
    steps = [step.number for step in run.steps()]
    assert len(steps) + run.lost.get("step", 0) == 250
    assert all(run.step(number).loss == pytest.approx(1 / number) for number in steps)
    assert run.verdict is not None
    assert bool(run.lost) != seen_in(run).clean or run.hits()


def test_a_run_whose_last_word_is_missing_is_not_called_clean(tmp_path: Path) -> None:
    writer = begin(tmp_path / "run")
    writer.step(Step(1, loss=1.0), *rows(1))
    writer.end("finished", 0)
    assert seen_in(open_run(tmp_path / "run")).clean
    journal = tmp_path / "run" / "rank-0" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(
        b"".join(line for line in lines if b'"end"' not in line).replace(b'"pid":', b'"pid":2147483000')
    )
    seen = seen_in(open_run(tmp_path / "run"))
    assert not seen.clean


def test_a_clock_before_1980_costs_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = begin(tmp_path / "run")
    train(writer, 1, 2)
    writer.end("failed", 1)
    real = time.localtime
    monkeypatch.setattr(time, "localtime", lambda at=None: real(3600.0))
    made = write_bundle(tmp_path / "run", kind="crash", environment={})
    with open_bundle(made) as bundle:
        assert bundle.run.last_step is not None
