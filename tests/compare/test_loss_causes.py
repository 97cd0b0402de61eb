"""Why two loss curves part: twelve divergences, each planted in the records of one side."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from misstep.compare.loss_causes import Side, causes
from misstep.compare.losses import compare_losses
from misstep.core.run import Step

SETTINGS = {"lr": "0.1", "momentum": "0.9", "weight_decay": "0.0", "eps": "1e-08"}


def steps(**changes: Any) -> list[Step]:
    """Six healthy steps; `changes` are fields of all of them."""
    plain = [
        Step(number, 1 / number, learning_rate=0.1, loss_scale=1.0, gradient_norm=3.0 - 0.1 * number, optimizer="SGD")
        for number in range(1, 7)
    ]
    return [replace(one, **changes) for one in plain]


def parted(at: int, changed: list[Step]) -> list[Step]:
    """The same losses up to a step, others from there on."""
    return [replace(one, loss=(one.loss or 0) * (1.0 if one.number < at else 1.1)) for one in changed]


def with_norms(factor: Any) -> list[Step]:
    return [replace(one, gradient_norm=factor(one.gradient_norm)) for one in steps()]


def from_step(at: int, **changes: Any) -> list[Step]:
    return [replace(one, **changes) if one.number >= at else one for one in steps()]


PLANTED: dict[str, tuple[int, list[Step], dict[str, str], str]] = {
    "first step off": (1, steps(), SETTINGS, "forward"),
    "learning rate": (2, steps(learning_rate=0.2), SETTINGS, "learning_rate"),
    "schedule from step 3": (4, from_step(3, learning_rate=0.05), SETTINGS, "learning_rate"),
    "weight decay": (2, steps(), {**SETTINGS, "weight_decay": "0.01"}, "setting"),
    "momentum": (3, steps(), {**SETTINGS, "momentum": "0.0"}, "setting"),
    "epsilon": (3, steps(), {**SETTINGS, "eps": "1e-06"}, "setting"),
    "another optimizer": (2, steps(optimizer="Adam"), SETTINGS, "optimizer"),
    "loss scale": (3, from_step(2, loss_scale=1024.0), SETTINGS, "loss_scale"),
    "a skipped update": (4, [replace(one, overflow=one.number == 3) for one in steps()], SETTINGS, "skipped"),
    "clipping": (4, with_norms(lambda norm: min(norm, 1.0)), SETTINGS, "clipping"),
    "sum instead of mean": (2, with_norms(lambda norm: norm * 32), SETTINGS, "scaled"),
    "a wrong backward": (2, with_norms(lambda norm: norm * 1.07), SETTINGS, "gradient"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_divergence_is_named(name: str) -> None:
    at, changed, settings, kind = PLANTED[name]
    ours, theirs = steps(), parted(at, changed)
    curves = [{one.number: one.loss or 0.0 for one in side} for side in (ours, theirs)]
    found = compare_losses(curves[0], curves[1])
    assert found.first_step == at
    named = causes(Side(ours, SETTINGS), Side(theirs, settings), found)
    assert [one.kind for one in named] == [kind]


def test_an_update_that_differs_without_a_trace_is_said_to() -> None:
    ours, theirs = steps(), parted(3, steps())
    found = compare_losses(
        {one.number: one.loss or 0.0 for one in ours}, {one.number: one.loss or 0.0 for one in theirs}
    )
    assert [one.kind for one in causes(Side(ours, SETTINGS), Side(theirs, SETTINGS), found)] == ["update"]


def test_equal_curves_have_no_cause() -> None:
    curve = {one.number: one.loss or 0.0 for one in steps()}
    assert causes(Side(steps(), SETTINGS), Side(steps(learning_rate=9.0), SETTINGS), compare_losses(curve, curve)) == []


SCRIPT = """\
import sys
import torch
from torch import nn
torch.manual_seed(1)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, weight_decay=float(sys.argv[1]))
for _ in range(6):
    optimizer.zero_grad()
    loss = (net(torch.ones(8, 4)) - 3).square().mean()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.story
def test_two_runs_tell_the_setting_they_differ_in(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT, encoding="utf-8")
    misstep = [sys.executable, "-m", "misstep"]
    for name, decay in (("a", "0"), ("b", "0.5")):
        command = [*misstep, "run", "--name", name, sys.executable, str(script), decay]
        subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=200, check=True)
    command = [*misstep, "diff", "missteps/a", "missteps/b", "--losses"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 3
    assert "weight_decay is 0" in done.stdout, done.stdout + done.stderr
