"""The values of hits and verdicts travel in a flight record, within its size; what does not is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from small_run import begin, rows

from misstep.compare.offline import offline
from misstep.core.address import Address
from misstep.core.finding import TensorFact, Verdict
from misstep.core.run import Step
from misstep.core.watching.watch import Hit
from misstep.store.bundle.open import open_bundle
from misstep.store.bundle.write import write_bundle
from misstep.store.foreign.sniff import source_of
from misstep.store.reading.reader import open_run

MB = 1 << 20


def recorded(directory: Path) -> Path:
    """A run that kept five tensors of 3 MB and two small ones, one of them under two names."""
    writer = begin(directory)
    large = np.arange(3 * MB // 4, dtype=np.float32)
    for step in range(1, 6):
        writer.tensor(Address("encoder.norm", step=step), large + step, "float32", large.shape)
    bad = np.array([1.0, np.nan], np.float32)
    writer.tensor(Address("encoder.fc", step=1), bad, "float32", (2,))
    place = writer.place(b"decoder.fc:input@1#0", memoryview(bytes(8)), "float32", (2,))
    assert place is not None
    writer.name_place(b"decoder.fc:output@1#0", place, "float32", (2,))
    writer.hit(Hit(1, 1, Address("encoder.norm", step=2, rank=0), reason="too large"))
    fact = TensorFact("encoder.fc:output@1", "1 NaN of 2")
    writer.verdict(Verdict(1, 0, "forward", "nan", "encoder.fc", outputs=(fact,)))
    writer.step(Step(1), *rows(1))
    writer.end("failed", 1)
    return directory


def test_values_of_verdicts_and_hits_travel_before_all_others_and_the_rest_is_named(tmp_path: Path) -> None:
    run = recorded(tmp_path / "try")
    bundle = shutil.move(write_bundle(run, kind="crash", environment={}), tmp_path / "moved.zip")
    shutil.rmtree(run)
    opened = open_run(bundle)
    kept = [str(stored.address) for stored in opened.tensors()]
    assert kept == [
        "encoder.norm:output@2#0",
        "encoder.norm:output@5#0",
        "encoder.fc:output@1#0",
        "decoder.fc:input@1#0",
        "decoder.fc:output@1#0",
    ]
    assert opened.verify() == []
    assert np.isnan(opened.tensor("encoder.fc:output@1")[1])
    assert opened.tensor("encoder.norm:output@2")[:2].tolist() == [2.0, 3.0]
    with open_bundle(bundle) as record:
        assert record.left_out == {
            "tensors": 3,
            "bytes": 9 * MB,
            "first": [f"encoder.norm:output@{step}#0" for step in (4, 3, 1)],
        }
    assert [str(entry.address) for entry in source_of(str(bundle)).entries()] == kept
    (hit,) = offline(bundle).check("mean >= 1.2")  # asked of its rows, not of the few values
    assert str(hit.address) == "decoder.fc:output@1#0"


def test_a_damaged_tensor_stays_behind_and_is_told(tmp_path: Path) -> None:
    run = recorded(tmp_path / "try")
    with open(run / "rank-0/tensors.pack", "r+b") as file:
        file.seek(2 * (3 * MB))  # in the second
        file.write(b"lost")
    with open_bundle(write_bundle(run, kind="crash", environment={})) as record:
        (problem,) = record.manifest["problems"]
        assert "encoder.norm:output@2" in problem
        assert "encoder.norm:output@5#0" in [str(stored.address) for stored in record.run.tensors()]
        assert record.run.verify() == []
