"""`misstep.fix_randomness()`: two runs of one script draw the same, in both frameworks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from story import Write, environment_of_a_user

pytestmark = [pytest.mark.story, pytest.mark.mindspore]

SCRIPT = """
import random
import numpy, torch, mindspore
import misstep
{fix}
network = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
cell = mindspore.nn.Dense(4, 4)
print(random.random(), numpy.random.rand(), network(torch.ones(2, 4)).tolist(), cell.weight.asnumpy().tolist())
print(mindspore.ops.randn(3).asnumpy().tolist())
"""


def said(script: Path) -> str:
    done = subprocess.run(
        [sys.executable, script], env=environment_of_a_user(), capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_runs_draw_the_same_once_randomness_is_fixed(write: Write) -> None:
    fixed = write("fixed.py", SCRIPT.replace("{fix}", "misstep.fix_randomness()"))
    assert said(fixed) == said(fixed)


def test_without_it_they_do_not(write: Write) -> None:
    loose = write("loose.py", SCRIPT.replace("{fix}", ""))
    assert said(loose) != said(loose)
