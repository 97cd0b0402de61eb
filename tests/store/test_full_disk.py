"""A disk that cannot be written: one warning, training goes on, losses are counted, and later it is tried again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from small_run import begin, child_environment, rows, train

from misstep.core.address import Address
from misstep.core.run import Step
from misstep.store.reading.reader import open_run
from misstep.store.writing import append

FULL_DISK = """
import json, pathlib, resource, sys
import numpy as np
import small_run as r
from misstep.core.address import Address
from misstep.core.run import Step

said = []
writer = r.begin(pathlib.Path(sys.argv[1]), on_problem=said.append)
r.train(writer, 1, 5)
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))   # no file may grow beyond: a full disk
for step in range(6, 206):
    writer.tensor(Address("encoder.fc", step=step), np.zeros(1000, np.float32), "float32", (1000,))
    r.train(writer, step, step)
full = dict(writer.lost)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
r.train(writer, 206, 400)
writer.end("finished", 0)
print(json.dumps({"said": said, "full": full, "lost": writer.lost}))
"""


@pytest.mark.parametrize("limit", [1500, 2000, 3000, 3001, 3333, 5000, 20000])
def test_a_full_disk_is_told_once_and_training_goes_on(tmp_path: Path, limit: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "try"), str(limit)],
        env=child_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
    assert len(told["said"]) == 1
    assert "File too large. Training goes on; records that cannot be kept are counted" in told["said"][0]
    assert told["full"]["tensor"] > 0
    run = open_run(tmp_path / "try")
    assert (run.state, run.verify(), run.lost) == ("finished", [], told["lost"])
    steps = [step.number for step in run.steps()]
    assert steps[:5] == [1, 2, 3, 4, 5]
    assert steps[-90:] == list(range(311, 401))
    assert len(steps) + told["lost"].get("step", 0) == 400
    assert len(run.hits()) == 400, "hits wait in memory until there is room again"
    assert [stored.address.step for stored in run.tensors()][-90:] == list(range(311, 401))
    assert (
        sum(len(run.history(node)) for node in ("encoder.fc", "encoder.norm", "decoder.fc"))
        + told["lost"].get("row", 0)
        == 3 * 400
    )


def test_a_directory_that_cannot_be_made_is_told_once_and_tried_again(tmp_path: Path) -> None:
    (tmp_path / "missteps").write_text("a file where a directory should be")
    said: list[str] = []
    writer = begin(tmp_path / "missteps" / "try", on_problem=said.append)
    train(writer, 1, 3)
    assert len(said) == 1
    assert "Not a directory. Training goes on" in said[0]
    assert writer.lost == {"tensor": 3, "row": 9, "step": 3}
    (tmp_path / "missteps").unlink()
    train(writer, 4, append.RETRY_STEPS + 5)
    writer.end("finished", 0)
    run = open_run(tmp_path / "missteps/try")
    assert (run.state, run.last_step.number if run.last_step else 0) == ("finished", append.RETRY_STEPS + 5)
    assert run.lost == writer.lost
    assert run.hits()[0].address == Address("encoder.fc", step=1, rank=0)
    assert run.graph().nodes[2].name == "decoder.fc"
    assert run.verify() == []


def test_a_directory_that_can_never_be_made_costs_only_the_records(tmp_path: Path) -> None:
    (tmp_path / "missteps").write_text("")
    said: list[str] = []
    writer = begin(tmp_path / "missteps" / "try", on_problem=said.append)
    train(writer, 1, 250)
    writer.event("note", text="still here")
    writer.end("finished", 0)
    assert len(said) == 1
    assert writer.lost["step"] == 250
    assert (tmp_path / "missteps").read_text() == ""


def test_a_callable_that_fails_does_not_stop_training(tmp_path: Path) -> None:
    (tmp_path / "missteps").write_text("")

    def fail(message: str) -> None:
        raise RuntimeError(message)

    writer = begin(tmp_path / "missteps" / "try", on_problem=fail)
    writer.step(Step(1), *rows(1))
    assert writer.lost == {"row": 3, "step": 1}


def test_what_waits_for_the_disk_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "missteps").write_text("")
    writer = begin(tmp_path / "missteps" / "try", on_problem=lambda message: None)
    for step in range(1, 60):
        writer.event("finding", text="x" * 1_000_000)
        writer.step(Step(step), *rows(step))
    assert writer.lost["finding"] >= 40


def test_a_closed_writer_is_silent(tmp_path: Path) -> None:
    writer = begin(tmp_path / "try")
    writer.end("finished", 0)
    train(writer, 1, 2)
    writer.close()
    assert open_run(tmp_path / "try").steps() == []
