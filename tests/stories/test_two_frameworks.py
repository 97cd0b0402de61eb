"""The same network in PyTorch and MindSpore, the same weights through a converted checkpoint: where do they part?"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from story import RunCommand, Write

pytestmark = [pytest.mark.story, pytest.mark.slow, pytest.mark.mindspore]

DATA = """
import numpy as np
random = np.random.default_rng(0)
X = random.standard_normal((8, 16)).astype(np.float32)
Y = random.standard_normal((8, 4)).astype(np.float32)
"""
TORCH = """
import torch
from data import X, Y

torch.manual_seed(0)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(16, 32)
        self.norm = torch.nn.LayerNorm(32, eps=1e-5)
        self.act = torch.nn.Tanh()
        self.fc2 = torch.nn.Linear(32, 4)

    def forward(self, x):
        return self.fc2(self.act(self.norm(self.fc1(x))))

net = Net()
torch.save(net.state_dict(), "net.pth")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.from_numpy(X), torch.from_numpy(Y)
for _ in range(2):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
"""
MINDSPORE = """
import sys
import mindspore as ms
from mindspore import nn
from data import X, Y

ms.set_context(mode=ms.PYNATIVE_MODE)

class Net(nn.Cell):
    def __init__(self, epsilon):
        super().__init__()
        self.fc1 = nn.Dense(16, 32)
        self.norm = nn.LayerNorm((32,), epsilon=epsilon)
        self.act = nn.Tanh()
        self.fc2 = nn.Dense(32, 4)

    def construct(self, x):
        return self.fc2(self.act(self.norm(self.fc1(x))))

net = Net(float(sys.argv[1]))
left_over, _ = ms.load_param_into_net(net, ms.load_checkpoint("net.ckpt"))
assert not left_over, left_over
optimizer = nn.SGD(net.trainable_params(), learning_rate=0.1)
loss_of = nn.MSELoss()
gradients_of = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
for _ in range(2):
    loss, gradients = gradients_of(ms.Tensor(X), ms.Tensor(Y))
    optimizer(gradients)
"""
CONVERT = """
from misstep.store.checkpoint import read_checkpoint, write_mindspore_ckpt

held = read_checkpoint("net.pth")
renamed = {"norm.weight": "norm.gamma", "norm.bias": "norm.beta"}
write_mindspore_ckpt("net.ckpt", {renamed.get(name, name): held[name] for name in held})
"""


@pytest.fixture
def recorded(write: Write, misstep_command: RunCommand, folder: Path) -> Path:
    """One run in PyTorch, two in MindSpore: one with the same epsilon, one with another."""
    import subprocess

    for name, text in (
        ("data.py", DATA),
        ("train_torch.py", TORCH),
        ("train_ms.py", MINDSPORE),
        ("convert.py", CONVERT),
    ):
        write(name, text)
    for name, command in {
        "torch": ("train_torch.py",),
        "same": ("train_ms.py", "1e-5"),
        "other": ("train_ms.py", "1e-2"),
    }.items():
        done = misstep_command("run", "--no-ui", "--name", name, "--dump", "*@0:1", sys.executable, *command)
        assert done.exit == 0, done.err
        if name == "torch":
            subprocess.run([sys.executable, "convert.py"], cwd=folder, check=True, timeout=120)
    return folder / "missteps"


def test_equal_networks_are_noise_and_another_epsilon_is_named(
    recorded: Path, misstep_command: RunCommand, folder: Path
) -> None:
    assert misstep_command("diff", "net.pth", "net.ckpt").exit == 0

    equal = misstep_command("diff", "missteps/torch@1", "missteps/same@1", "--json")
    said = json.loads(equal.out)
    assert equal.exit == 0, said["summary"]
    rows = {row["name"]: row for row in said["rows"]}
    assert {"fc1:output", "norm:output", "act:output", "fc2:output", "fc1.weight:grad"} <= set(rows)
    assert {row["verdict"] for row in rows.values()} <= {"identical", "noise"}

    differs = misstep_command("diff", "missteps/torch@1", "missteps/other@1", "--json")
    said = json.loads(differs.out)
    assert differs.exit == 3
    assert said["cause"]["name"] == "norm:output"
    assert rows["fc1:output"]["verdict"] in ("identical", "noise")
    assert "its eps is 1e-05 on the left, 0.01 on the right" in said["summary"]

    told = misstep_command("diff", "missteps/torch@1", "missteps/other@1")
    assert "norm output" in told.out
