"""The lockstep's own tests, in a process of their own.

MindSpore 2.10 keeps state between trainings of one process: after others have run there, the gradient of its LayerNorm
may fail inside MindSpore ("the index 7 is out of range of input num 7"). `misstep migrate check` has its process to
itself, and so have these.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.mindspore


@pytest.mark.parametrize("name", ["alone_lockstep.py", "alone_lockstep_rules.py"])
def test_the_lockstep_names_what_differs_and_nothing_else(name: str) -> None:
    file = Path(__file__).with_name(name)
    command = [sys.executable, "-m", "pytest", str(file), "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
