"""One training run twice with one thing changed: `misstep diff` names the step, the place and the thing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from story import RunCommand, Write

TORCH = """
import os, sys
import torch
from torch import nn

given = dict(one.split("=") for one in sys.argv[1:])
torch.set_num_threads(int(given.get("threads", 1)))
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8, eps=float(given.get("eps", 1e-5)), momentum=float(given.get("momentum", 0.1)))
        self.act = nn.LeakyReLU(float(given.get("slope", 0.01)))
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        return self.fc(self.act(self.bn(self.conv(x))).mean((2, 3)))

net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=float(given.get("lr", 1e-3)))
source = torch.Generator().manual_seed(1)
for _ in range(int(given.get("steps", 2))):
    x, y = torch.randn(16, 3, 8, 8, generator=source), torch.randint(0, 4, (16,), generator=source)
    with torch.autocast("cpu", torch.bfloat16, enabled="autocast" in given):
        loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

MINDSPORE = """
import sys
import numpy as np
import mindspore as ms
from mindspore import nn, ops

given = dict(one.split("=") for one in sys.argv[1:])
ms.set_seed(0)
np.random.seed(0)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(8, 16)
        self.norm = nn.LayerNorm((16,), epsilon=float(given.get("eps", 1e-5)))
        self.fc2 = nn.Dense(16, 4)

    def construct(self, x):
        return self.fc2(ops.relu(self.norm(self.fc1(x))))

net = Net()
optimizer = nn.SGD(net.trainable_params(), learning_rate=float(given.get("lr", 0.1)))
step = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, optimizer.parameters)
source = np.random.default_rng(1)
for _ in range(2):
    x = ms.Tensor(source.standard_normal((16, 8)).astype(np.float32))
    loss, gradients = step(x, ms.Tensor(source.integers(0, 4, 16).astype(np.int32)))
    optimizer(gradients)
"""


class Diff:
    """Two runs of one script, recorded and compared."""

    def __init__(self, command: RunCommand, write: Write, script: str) -> None:
        self._command = command
        write("train.py", script)

    def run(self, name: str, *changed: str, keep: bool = True) -> None:
        dump = ("--dump", "*@0:24") if keep else ()
        done = self._command("run", "--name", name, *dump, sys.executable, "train.py", *changed)
        assert done.exit == 0, done.err

    def __call__(self, left: str, right: str) -> tuple[int, dict[str, Any]]:
        done = self._command("diff", left, right, "--json")
        assert done.exit in (0, 3), done.err
        return done.exit, json.loads(done.out)


@pytest.fixture
def torch_diff(misstep_command: RunCommand, write: Write) -> Diff:
    return Diff(misstep_command, write, TORCH)


@pytest.fixture
def mindspore_diff(misstep_command: RunCommand, write: Write) -> Diff:
    return Diff(misstep_command, write, MINDSPORE)


def test_a_setting_of_a_module_is_named_with_the_step_and_the_place(torch_diff: Diff) -> None:
    torch_diff.run("base")
    for name, changed, place, said in (
        ("eps", "eps=1e-3", "bn:output", "its eps is 1e-05 on the left, 0.001 on the right"),
        ("slope", "slope=0.02", "act:output", "its negative_slope is 0.01 on the left, 0.02 on the right"),
    ):
        torch_diff.run(name, changed)
        exit, found = torch_diff("base", name)
        assert (exit, found["cause"]["name"], found["cause"]["step"]) == (3, place, 1)
        assert said in found["summary"]
    torch_diff.run("momentum", "momentum=0.2")
    exit, found = torch_diff("base", "momentum")
    assert exit == 3
    assert "bn momentum is 0.1 on the left, 0.2 on the right" in found["summary"]


def test_another_learning_rate_is_one_cause_the_update(torch_diff: Diff) -> None:
    torch_diff.run("base")
    torch_diff.run("lr", "lr=2e-3")
    exit, found = torch_diff("base", "lr")
    assert (exit, found["cause"]["name"], found["cause"]["step"]) == (3, "conv.weight:param", 1)
    assert "the update differs: gradients were equal, and after it 6 of 6 weights are not" in found["summary"]
    assert "the right side moves 2 times as far: the learning rate" in found["summary"]
    assert "optimizer lr is 0.001 on the left, 0.002 on the right" in found["summary"]
    assert sum(row["part"] == "cause" for row in found["rows"]) == 1


def test_other_threads_are_noise_for_24_steps_and_autocast_is_one_fact(torch_diff: Diff) -> None:
    torch_diff.run("one", "steps=24")
    torch_diff.run("two", "steps=24", "threads=2")
    exit, found = torch_diff("one", "two")
    assert exit == 0, found["summary"]
    torch_diff.run("base")
    torch_diff.run("cast", "autocast=1")
    exit, found = torch_diff("base", "cast")
    assert exit == 0, found["summary"]
    assert found["facts"] == ["the right side computes in bfloat16 where the left computes in float32 (autocast)"]


def test_default_runs_are_compared_by_their_statistics(torch_diff: Diff, folder: Path) -> None:
    torch_diff.run("base", keep=False)
    torch_diff.run("same", keep=False)
    torch_diff.run("eps", "eps=1e-3", keep=False)
    assert torch_diff("base", "same")[0] == 0
    exit, found = torch_diff("base", "eps")
    assert (exit, found["cause"]["name"]) == (3, "bn:output")
    assert "only statistics were kept, so those are compared" in found["facts"]


def test_mindspore_names_the_setting_and_the_update_too(mindspore_diff: Diff) -> None:
    mindspore_diff.run("base")
    mindspore_diff.run("eps", "eps=1e-2")
    exit, found = mindspore_diff("base", "eps")
    assert (exit, found["cause"]["name"]) == (3, "norm:output")
    assert "its eps is 1e-05 on the left, 0.01 on the right" in found["summary"]
    mindspore_diff.run("lr", "lr=0.2")
    exit, found = mindspore_diff("base", "lr")
    assert exit == 3
    assert "the right side moves 2 times as far: the learning rate" in found["summary"]
