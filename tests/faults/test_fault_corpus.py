"""The corpus of broken and healthy programs, in processes of its own, one for each framework.

Its programs do as strangers' do: they set global modes, types and seeds, and leave them so. What is tested after them
in the same process would meet another torch.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("which", ["not mindspore", pytest.param("mindspore", marks=pytest.mark.mindspore)])
def test_broken_programs_are_diagnosed_with_their_cause_and_healthy_ones_with_nothing(which: str) -> None:
    file = Path(__file__).with_name("alone_fault_corpus.py")
    command = [sys.executable, "-m", "pytest", str(file), "-q", "-n", "0", "-p", "no:cacheprovider", "-m", which]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
