"""Short lines of the journal: what is written is what is read, and a damaged one is not read at all."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from misstep.core.run import RunInfo, Step
from misstep.core.stats import HEAD, SUMMARY
from misstep.kernels import _numpy
from misstep.store.codec import decode
from misstep.store.journal import unseal
from misstep.store.reading.reader import open_run
from misstep.store.stepline import quiet_line, step_line
from misstep.store.writing.writer import RunWriter

QUIET = Step(7, 0.1, 0.000251, 0.001, captured="guard", overhead=0.031, optimizer="Adam", time=1794765845.213)


@pytest.mark.parametrize(
    ("step", "rows"),
    [
        (QUIET, 0),
        (Step(1, None, captured="off", time=1.0), 0),
        (Step(100_000, 1e-310, 12.5, 3e-05, captured="op", gradient_norm=1.5, optimizer="SGD", time=2.5), 300),
        (Step(3, -2.0, captured="module", time=3.0), 4),
    ],
)
def test_a_short_line_reads_back_as_the_step_it_was(step: Step, rows: int) -> None:
    plain = unseal((step_line(step, rows) or b"")[:-1])
    assert plain is not None
    assert (decode(Step, plain["step"]), plain["rows"], plain["kind"], plain["time"]) == (step, rows, "step", step.time)


@pytest.mark.parametrize(
    "step",
    [
        Step(1, math.nan),
        Step(1, 1.0, losses=(1.0, 2.0)),
        Step(1, 1.0, loss_scale=1024.0),
        Step(1, 1.0, epoch=2),
        Step(1, 1.0, gradient_norm=math.inf),
        Step(1, 1.0, optimizer='my "own"'),
    ],
)
def test_a_step_with_more_to_tell_has_no_short_line(step: Step) -> None:
    assert step_line(step, 0) is None


def test_every_changed_byte_of_a_short_line_is_noticed() -> None:
    line = (step_line(QUIET, 3) or b"")[:-1]
    for place in range(len(line)):
        changed = bytearray(line)
        changed[place] ^= 1
        assert unseal(bytes(changed)) is None


def test_the_twin_writes_the_same_line() -> None:
    given = (7, 1794765845.2134, 0.1, 2.51e-4, 1e-3, 0.0314, 1, "Adam", 0, None)
    line = quiet_line(7, 1794765845.2134, 0.1, 2.51e-4, 1e-3, 0.0314, "guard", "Adam")
    assert line == _numpy.step_line(*given)


def test_a_guarded_step_of_a_long_run_takes_less_than_a_hundred_bytes(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "try", 0, RunInfo("try", ("python",), 0.0))
    head, summary = np.zeros(1, HEAD), np.zeros(1, SUMMARY)
    losses = [float(np.float32(1 / number)) for number in range(1, 5001)]
    for number, loss in enumerate(losses, 1):
        step = Step(
            number, loss, 2.5e-4, 1e-3, captured="guard", overhead=0.5, optimizer="Adam", time=1794765845 + number
        )
        writer.step(step, head, summary)
    writer.end("finished", 0)
    files = (tmp_path / "try" / "rank-0").iterdir()
    assert sum(file.stat().st_size for file in files) / len(losses) < 100
    assert [step.loss for step in open_run(tmp_path / "try").steps()] == losses
