"""A quiet step costs a line of the journal and nothing else; a bad one among thousands is found all the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from misstep.adapters.replaying import python_random
from misstep.store.reading.reader import Run, open_run

SCRIPT = """
import os, sys
import torch
from torch import nn
from misstep.capture.session import Session
from misstep.adapters.pytorch.adapter import PyTorchAdapter
from misstep.settings import Settings

torch.manual_seed(0)
torch.set_num_threads(1)
session = Session(Settings({"level": "guard", "dir": sys.argv[1], **eval(sys.argv[2])}))
session.use(PyTorchAdapter())
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
bad_at, steps, killed = (int(one) for one in sys.argv[3:6])
for step in range(1, steps + 1):
    batch = torch.randn(16, 4)
    optimizer.zero_grad()
    out = model(batch)
    if step == bad_at:
        out = out * (torch.zeros(1) / 0)
    loss = out.square().mean() + 1.0
    loss.backward()
    optimizer.step()
if killed:
    os.kill(os.getpid(), 9)
session.end()
"""


def trained(tmp_path: Path, *, bad_at: int = 0, steps: int, killed: bool = False, **settings: object) -> Run:
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT), encoding="utf-8")
    runs = tmp_path / "runs"
    given = [str(runs), repr(settings), str(bad_at), str(steps), str(int(killed))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MISSTEP_STRICT": "1"}
    done = subprocess.run([sys.executable, str(script), *given], env=environment, capture_output=True, text=True)
    assert done.returncode == (-signal.SIGKILL if killed else 0), done.stderr
    (found,) = [path for path in runs.iterdir() if (path / "run.json").exists()]
    return open_run(found)


def loss_rows(run: Run) -> list[int]:
    return [int(step) for step in run.history("loss:loss")["step"]]


@pytest.mark.slow
def test_a_nan_after_hundreds_of_quiet_steps_is_traced_to_its_line(tmp_path: Path) -> None:
    run = trained(tmp_path, bad_at=301, steps=303)
    verdict = run.verdicts[0]
    assert verdict.step == 301
    assert "div" in verdict.op
    assert verdict.source is not None
    line = textwrap.dedent(SCRIPT).splitlines()[verdict.source.line - 1]
    assert line.strip() == "out = out * (torch.zeros(1) / 0)"


@pytest.mark.slow
def test_every_finished_step_is_in_the_journal_of_a_killed_run(tmp_path: Path) -> None:
    run = trained(tmp_path, steps=333, killed=True)
    steps = list(run.steps())
    assert [step.number for step in steps] == list(range(1, 334))
    assert all(step.loss is not None and step.loss >= 1.0 for step in steps)
    late = [step for step in loss_rows(run) if step > 256]
    assert late == [272, 288, 304, 320]


@pytest.mark.slow
def test_a_watchpoint_on_the_loss_is_asked_at_every_step(tmp_path: Path) -> None:
    run = trained(tmp_path, steps=262, watch="max > 0 on loss:loss")
    assert {hit.address.step for hit in run.hits()} >= {257, 258, 259, 261}


def test_pythons_random_numbers_are_held_as_they_are() -> None:
    random.seed(3)
    random.gauss(0, 1)
    held, told = python_random.held_now(), random.getstate()
    drawn = [random.random(), random.gauss(0, 1)]
    assert held.state() == told
    random.setstate(held.state())
    assert [random.random(), random.gauss(0, 1)] == drawn
