"""`misstep graph` says what was compiled, where it broke and why it was compiled again, for both frameworks."""

from __future__ import annotations

import json

import pytest
from story import RunCommand, RunStory

pytestmark = pytest.mark.story

BREAKS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x):
        x = self.first(x)
        if x.sum() > -1e6:
            x = x * 2
        return self.last(x)

model = Net()
net = torch.compile(model, backend="aot_eager", dynamic=False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for number, size in enumerate((4, 4, 5, 5, 5, 5)):
    if number == 4:
        model.first.register_forward_hook(lambda module, given, result: None)
    net(torch.randn(size, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""

GRAPHS = """
import mindspore as ms
import numpy as np
from mindspore import nn

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.last = nn.Dense(4, 1)

    def construct(self, x):
        return self.last(x)

net = Net()
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.01))
for size in (4, 4, 6, 6):
    step(ms.Tensor(np.ones((size, 4), np.float32)), ms.Tensor(np.zeros((size, 1), np.float32)))
"""


def test_breaks_and_hooks_are_reported_with_their_lines(run_story: RunStory, misstep_command: RunCommand) -> None:
    ran = run_story(BREAKS, "--level", "guard")
    assert ran.exit == 0, ran.err
    shown = misstep_command("graph", ran.run.name)
    assert shown.exit == 3, shown.err
    assert "1 hook is not called: registered after compilation" in shown.out
    assert "in forward: generic_jump" in shown.out
    assert "torch.where" in shown.out
    assert "expected 4, actual 5" in shown.out
    facts = json.loads(misstep_command("graph", ran.run.name, "--json").out)
    (broken,) = facts["breaks"]
    assert BREAKS.splitlines()[broken["line"] - 1].strip() == "if x.sum() > -1e6:"
    (function,) = facts["functions"]
    assert function["steps"] == [1, 3]
    assert facts["steady_step"] < facts["first_step"]


@pytest.mark.mindspore
def test_a_graph_of_mindspore_that_was_compiled_again_is_reported_with_the_shapes(
    run_story: RunStory, misstep_command: RunCommand
) -> None:
    ran = run_story(GRAPHS, "--level", "guard")
    assert ran.exit == 0, ran.err
    shown = misstep_command("graph", ran.run.name)
    assert (shown.exit, shown.err) == (0, "")
    assert "2 graphs of 1 function, 0 breaks" in shown.out
    assert "TrainOneStepCell(Net)" in shown.out
    assert "float32[4, 4] → float32[6, 4]" in shown.out


def test_a_run_that_compiles_nothing_says_so(run_story: RunStory, misstep_command: RunCommand) -> None:
    ran = run_story(
        BREAKS.replace('torch.compile(model, backend="aot_eager", dynamic=False)', "model"), "--level", "guard"
    )
    shown = misstep_command("graph", ran.run.name)
    assert (shown.exit, shown.out.strip()) == (
        0,
        f"{ran.run.name}: nothing was compiled while misstep watched (6 steps)",
    )
