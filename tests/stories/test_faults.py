"""Four planted faults, each named by operator, line and step at op level, and by module at module level."""

from __future__ import annotations

import json

import pytest
from story import RunCommand, RunStory, Write

pytestmark = pytest.mark.story

TRAIN = """
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 8)

        def forward(self, x, wrong):
            y = self.fc(x)
            if wrong:
                {fault}
            return y

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(3))
            self.head = nn.Linear(8, 2)

        def forward(self, x, wrong=False):
            for number, block in enumerate(self.blocks):
                x = block(x, wrong and number == 1)
            return self.head(x)

    class Careless(torch.optim.SGD):
        wrong = False

        @torch.no_grad()
        def step(self, closure=None):
            super().step(closure)
            if self.wrong:
                weight = self.param_groups[0]["params"][2]
                weight.copy_((weight - weight) / (weight - weight))  # planted

    torch.manual_seed(0)
    net = Net()
    optimizer = Careless(net.parameters(), lr=0.1)
    for number in range(1, 6):
        optimizer.wrong = {careless} and number == 4
        x = torch.randn(16, 8)
        loss = net(x, {in_network} and number == 4).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

FAULTS = {
    "log of a negative": ("y = torch.log(y)  # planted", "forward", "aten.log", "blocks.1", "nan"),
    "sqrt of zero, bad only in backward": (
        "y = y + torch.sqrt(y - y)  # planted",
        "backward",
        "",
        "blocks.1",
        "nan",
    ),
    "exp overflow hidden by tanh": (
        "y = torch.tanh(torch.exp(y * 1e4))  # planted",
        "forward",
        "aten.exp",
        "blocks.1",
        "inf",
    ),
}


def verdict_of(misstep_command: RunCommand) -> dict:
    shown = misstep_command("show", "last", "--json")
    assert shown.exit == 0, shown.err
    return json.loads(shown.out)["verdict"]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_by_operator_line_and_step(
    name: str, run_story: RunStory, misstep_command: RunCommand
) -> None:
    line, phase, op, scope, kind = FAULTS[name]
    result = run_story(TRAIN.format(fault=line, careless=False, in_network=True), "--level", "op")
    assert result.exit == 0, result.err
    verdict = verdict_of(misstep_command)
    assert (verdict["step"], verdict["phase"], verdict["precision"]) == (4, phase, "operator")
    assert verdict["node"].startswith(f"{scope}/")
    assert not op or (verdict["op"], verdict["kind"]) == (op, kind)
    assert verdict["source"]["file"] == "train.py"
    assert verdict["source"]["code"].endswith("# planted")
    assert "step 4" in result.err


@pytest.mark.parametrize("name", FAULTS)
def test_without_a_replay_a_fault_is_named_by_module_and_step(
    name: str, run_story: RunStory, misstep_command: RunCommand, write: Write
) -> None:
    line, phase, _, scope, _ = FAULTS[name]
    write("misstep.toml", "replay = false")
    run_story(TRAIN.format(fault=line, careless=False, in_network=True), "--level", "module")
    verdict = verdict_of(misstep_command)
    # What tanh hides from every module's output shows first in the gradients.
    phase = "backward" if "hidden" in name else phase
    assert (verdict["step"], verdict["phase"], verdict["node"], verdict["precision"]) == (4, phase, scope, "module")


@pytest.mark.parametrize("level", ["module", "op"])
def test_an_optimizer_that_writes_nan_is_blamed(level: str, run_story: RunStory, misstep_command: RunCommand) -> None:
    run_story(TRAIN.format(fault="pass", careless=True, in_network=False), "--level", level)
    verdict = verdict_of(misstep_command)
    assert (verdict["step"], verdict["phase"], verdict["kind"]) == (4, "optimizer", "nan")
    # At module level the update is run again, from what it left behind.
    assert (verdict["op"], verdict["precision"]) == ("aten.div", "operator")
    assert verdict["source"]["code"].endswith("# planted")


def test_a_healthy_run_has_no_error_hits(run_story: RunStory, misstep_command: RunCommand) -> None:
    for level in ("module", "op"):
        run_story(TRAIN.format(fault="pass", careless=False, in_network=False), "--level", level)
        shown = json.loads(misstep_command("show", "last", "--json").out)
        assert shown["verdict"] is None
        assert [hit for hit in shown["hits"] if hit["severity"] == "error"] == []
