"""What a story is made of: a small training to begin with, a user's environment, and what a command left behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import misstep
from misstep.store.reading.reader import Run, open_run
from misstep.store.runs import list_runs

SOURCE = Path(misstep.__file__).parents[1]
MISSTEP = (sys.executable, "-m", "misstep")
SECONDS = 240

TRAINING = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def train(steps=3, spoil_at=None):
    for step in range(1, steps + 1):
        x = torch.randn(16, 4)
        y = model(x)
        if step == spoil_at:
            y = torch.log(y - 100)
        loss = y.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
"""The smallest training there is; stories add what makes them different."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a command left behind."""

    exit: int
    out: str
    err: str
    folder: Path
    """Where it ran; runs are in `missteps` below it."""

    @property
    def run(self) -> Run:
        """The one run it recorded."""
        (only,) = list_runs(self.folder / "missteps")
        return open_run(only.path)

    @property
    def trained(self) -> bool:
        return bool(list_runs(self.folder / "missteps"))


class RunStory(Protocol):
    def __call__(self, script: str, *run_args: str, python: Sequence[str] = (), args: Sequence[str] = ()) -> Result:
        """Write the script to train.py and run `misstep run <run_args> python <python> train.py <args>`."""


class RunCommand(Protocol):
    def __call__(self, *command: str, environment: dict[str, str] | None = None) -> Result:
        """Run `misstep <command>` in the story's folder."""


class Write(Protocol):
    def __call__(self, name: str, text: str) -> Path:
        """Put a file into the story's folder: write("train.py", text)."""


def environment_of_a_user(**more: str) -> dict[str, str]:
    """Without what this test run may have set for itself."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MISSTEP_")}
    # Errors of misstep's own must fail a story, not be swallowed by it. One thread: the machine may have few cores.
    return {
        **kept,
        "PYTHONPATH": str(SOURCE),
        "MISSTEP_STRICT": "1",
        "OMP_NUM_THREADS": "1",
        "LC_ALL": "C.UTF-8",
        **more,
    }


def updates(run: Run, rank: int | None = None) -> list[int]:
    """The numbers of the finished optimizer updates; step 0, the state before training, is none."""
    return [step.number for step in run.steps(rank) if step.number > 0]
