"""A few chosen steps under the framework's profiler: operators with shapes, module and line, in both frameworks."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from story import RunCommand, Write

TORCH = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(100):
    loss = net(torch.randn(8, 16)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step + 1, file=open("steps", "a"))
"""
MINDSPORE = """
import numpy as np
import mindspore as ms
from mindspore import nn
net = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 1))
optimizer = nn.SGD(net.trainable_params(), 0.01)
loss = nn.MSELoss()
step = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)
x, y = ms.Tensor(np.ones((4, 8), np.float32)), ms.Tensor(np.ones((4, 1), np.float32))
for _ in range(20):
    value, gradients = step(x, y)
    optimizer(gradients)
"""


@pytest.mark.story
def test_operators_of_chosen_steps_have_module_and_line(write: Write, misstep_command: RunCommand) -> None:
    write("train.py", TORCH)
    done = misstep_command("profile", "--steps", "4:6", "--json", sys.executable, "train.py")
    assert done.exit == 0, done.err
    found: dict[str, Any] = json.loads(done.out[done.out.index("{") :])
    assert found["steps"] == 2
    assert (done.folder / "steps").read_text().split()[-1] == "4", "it ends in step 5, before the script goes on"
    rows = {(one["name"], one["module"]): one for one in found["operators"]}
    assert rows["aten::addmm", "0"]["line"] == "train.py:6"
    assert rows["aten::addmm", "0"]["shapes"] == [[32], [8, 16], [16, 32]]
    assert {"forward", "backward", "optimizer"} <= {one["phase"] for one in found["operators"]}
    again = misstep_command("profile", "--export", "trace.json", "last")
    assert again.exit == 0, again.err
    assert json.loads((done.folder / "trace.json").read_text())["traceEvents"]


@pytest.mark.story
@pytest.mark.mindspore
def test_operators_of_mindspore_have_their_shapes(write: Write, misstep_command: RunCommand) -> None:
    write("train.py", MINDSPORE)
    done = misstep_command("profile", "--steps", "4:6", "--json", sys.executable, "train.py")
    assert done.exit == 0, done.err
    found: dict[str, Any] = json.loads(done.out[done.out.index("{\n") :])
    names = {one["name"] for one in found["operators"]}
    assert any("MatMul" in name or "Dense" in name for name in names), names
    assert any(one["shapes"] for one in found["operators"])
