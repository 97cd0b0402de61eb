"""Moving a network from PyTorch to MindSpore, as typed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from story import RunCommand, Write

pytestmark = [pytest.mark.story, pytest.mark.mindspore]

TORCH = """
import torch
from torch import nn

def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.LeakyReLU(), nn.Linear(8, 2))
"""
MINDSPORE = """
from mindspore import nn

def build():
    return nn.SequentialCell(nn.Dense(4, 8), nn.LayerNorm((8,)), nn.LeakyReLU(), nn.Dense(8, 2))
"""
CHECK = ("migrate", "check", "--torch", "a.py:build", "--mindspore", "b.py:build", "--data", "batch.npz")


@pytest.fixture
def batch(folder: Path) -> None:
    np.savez(folder / "batch.npz", x=np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32))


@pytest.mark.usefixtures("batch")
def test_the_check_names_the_defaults_that_differ_and_passes_once_they_are_fixed(
    misstep_command: RunCommand, write: Write
) -> None:
    write("a.py", TORCH)
    write("b.py", MINDSPORE)
    done = misstep_command(*CHECK, "--lang", "en")
    assert done.exit == 3
    assert "1: LayerNorm epsilon is 1e-07 here by default, 1e-05 there" in done.out
    assert "2: LeakyReLU alpha is 0.2 here by default, 0.01 there" in done.out
    assert "inference" not in done.out
    write("b.py", MINDSPORE.replace("(8,)", "(8,), epsilon=1e-5").replace("LeakyReLU()", "LeakyReLU(0.01)"))
    done = misstep_command(*CHECK, "--lang", "en")
    assert done.exit == 0, done.out + done.err
    assert "the two networks are the same" in done.out


@pytest.mark.usefixtures("batch")
def test_what_is_missing_is_named_with_the_next_thing_to_do(misstep_command: RunCommand, write: Write) -> None:
    write("a.py", TORCH)
    write("b.py", TORCH)
    done = misstep_command(*CHECK, "--lang", "en")
    assert done.exit == 1
    assert "b.py:build returned a network of torch; pass it as --torch b.py:build" in done.err
    write("b.py", MINDSPORE)
    done = misstep_command(*CHECK[:-1], "none.npz", "--lang", "en")
    assert "no such file: none.npz; write a batch with numpy.savez" in done.err
