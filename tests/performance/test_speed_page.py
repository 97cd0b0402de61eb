"""What the page shows of a run's speed is what `misstep advise` says, in the reader's language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from traces import batches, load, steps

from misstep.errors import PerformanceError
from misstep.hub.speed import BARS, speed_view
from misstep.store.journal import seal
from misstep.store.reading.reader import Run


def run_with(folder: Path, count: int) -> Run:
    rank = folder / "slow" / "rank-0"
    rank.mkdir(parents=True)
    records = steps(count, data=11, forward=2, backward=3, queue=0)
    (rank / "trace.bin").write_bytes(records.tobytes() + batches(make=16).tobytes() + load().tobytes())
    facts = {
        "kind": "loader",
        "time": 1.0,
        "loader": 0,
        "framework": "pytorch",
        "dataset": "Numbers",
        "num_workers": 1,
        "batch_size": 8,
        "source": {"file": "train.py", "line": 7, "code": ""},
    }
    (rank / "journal.jsonl").write_bytes(seal(facts))
    return Run(folder / "slow")


def test_the_page_has_bars_a_verdict_and_advice(tmp_path: Path) -> None:
    view = speed_view(run_with(tmp_path, 1000), "zh")
    assert len(view.steps) == BARS
    assert view.step == pytest.approx(16)
    assert (view.bound, view.verdict) == ("input", "受数据处理限制")
    assert view.advice[0].rule == "workers"
    assert view.advice[0].where == "train.py:7"
    assert view.spent[view.segments.index("data")][0] == pytest.approx(11)


def test_a_trial_stands_beside_its_advice(tmp_path: Path) -> None:
    run = run_with(tmp_path, 60)
    (run.path / "trials").mkdir()
    result = {
        "name": "num_workers 1 → 4", "predicted": 5.1, "before": 16.0, "after": 5.3, "kept": True,
        "outcome": {"id": "speed.advice.kept", "arguments": {"before": 16.0, "after": 5.3, "gain": 0.67},
                    "text": "x"},
    }  # fmt: skip
    (run.path / "trials" / "results.jsonl").write_text(json.dumps(result) + "\n")
    view = speed_view(run, "zh")
    assert view.trials[0].outcome == "测得 16.00 → 5.30 ms（减少 67%）"
    assert view.trials[0].name == view.advice[0].what


def test_a_run_without_a_trace_has_no_speed(tmp_path: Path) -> None:
    (tmp_path / "empty" / "rank-0").mkdir(parents=True)
    with pytest.raises(PerformanceError):
        speed_view(Run(tmp_path / "empty"), "en")
