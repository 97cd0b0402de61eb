"""`misstep compare-modes` catches the compiler's own bugs, and says of right code that it is right."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from story import RunCommand, Write, environment_of_a_user

pytestmark = [pytest.mark.story, pytest.mark.slow]

TRAIN = """
import sys
import torch
from torch import nn

if "bug" in sys.argv:
    torch._inductor.config.cpp.inject_log1p_bug_TESTING_ONLY = "accuracy"

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.last(torch.log1p(torch.relu(self.first(x))))

torch.manual_seed(0)
net = torch.compile(Net())
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(3):
    net(torch.randn(16, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_bug_of_inductor_is_named_with_operator_line_and_a_script_that_shows_it(
    write: Write, misstep_command: RunCommand
) -> None:
    path = write("train.py", TRAIN)
    found = misstep_command("compare-modes", "--step", "2", sys.executable, "train.py", "bug")
    assert found.exit == 3, found.err
    line = next(number for number, text in enumerate(TRAIN.splitlines(), 1) if "log1p(torch" in text)
    assert found.out.startswith("miscompiled: log1p in graph 0, relative error ")
    assert f"train.py:{line}" in found.out.splitlines()[0]
    (script,) = path.parent.glob("missteps/*/miscompiled-0-0.py")
    # Without the planted bug the graph alone computes the same twice: the script runs, and compares.
    alone = subprocess.run(
        [sys.executable, script.name],
        cwd=script.parent,
        env=environment_of_a_user(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert alone.returncode == 0, alone.stderr
    assert "largest difference" in alone.stdout


def test_right_code_is_said_to_be_right_and_nothing_compiled_is_not_called_the_same(
    write: Write, misstep_command: RunCommand
) -> None:
    write("train.py", TRAIN.replace("torch.compile(Net())", 'torch.compile(Net(), backend="aot_eager")'))
    found = misstep_command("compare-modes", sys.executable, "train.py", "--json")
    assert found.exit == 0, found.err
    assert "all within rounding" in found.out
    write("train.py", TRAIN.replace("torch.compile(Net())", "Net()"))
    found = misstep_command("compare-modes", "--json", sys.executable, "train.py")
    assert (found.exit, json.loads(found.out)["graphs"]) == (1, [])
    assert "nothing was compared" in misstep_command("compare-modes", sys.executable, "train.py").out
