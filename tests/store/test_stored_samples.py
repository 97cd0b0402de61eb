"""Runs of every format there was, stored: today's readers still tell the same of them, and a later one is refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from misstep.core.run import FORMAT_VERSION
from misstep.errors import RunTooNew
from misstep.store.reading.reader import open_run

SAMPLES = sorted((Path(__file__).parent / "samples").glob("format-*.zip"))


def unpacked(sample: Path, folder: Path) -> Path:
    with zipfile.ZipFile(sample) as archive:
        archive.extractall(folder / "run")
    return folder / "run"


def test_every_format_there_was_has_a_sample() -> None:
    assert [sample.stem for sample in SAMPLES] == [f"format-{number}" for number in range(1, FORMAT_VERSION + 1)]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.stem)
def test_a_run_of_an_earlier_format_reads_as_it_did(sample: Path, tmp_path: Path) -> None:
    run = open_run(unpacked(sample, tmp_path))
    assert run.state == "failed"
    assert run.verify() == []
    assert [step.number for step in run.steps()] == [1, 2, 3, 4, 5]
    assert len(run.hits()) == 5
    assert (run.verdicts[0].step, run.verdicts[0].node) == (3, "encoder.fc")
    assert list(run.history("encoder.fc")["mean"]) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert run.tensor("encoder.fc@4").tolist() == [[4.0] * 3] * 2


def test_a_run_of_a_later_format_is_refused_with_the_way_out(tmp_path: Path) -> None:
    run = unpacked(SAMPLES[-1], tmp_path)
    plain = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**plain, "format": FORMAT_VERSION + 1}))
    with pytest.raises(RunTooNew, match="pip install -U misstep"):
        open_run(run)
