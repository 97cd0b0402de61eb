"""A slow loader is named, the step with more workers predicted, and measured on the user's own command."""

from __future__ import annotations

import json
from typing import Any

import pytest
from story import RunCommand, RunStory

SLOW_LOADER = """
import time
import torch
from torch.utils.data import DataLoader, Dataset

class RandomCrop:
    def __call__(self, x):
        time.sleep(0.002)
        return x

class Numbers(Dataset):
    crop = RandomCrop()
    def __len__(self):
        return 320
    def __getitem__(self, index):
        return self.crop(torch.randn(8)), torch.randn(1)

net = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for x, y in DataLoader(Numbers(), batch_size=8, num_workers=0):
    loss = (net(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
open("finished", "w").write("x")
"""


@pytest.mark.story
def test_a_slow_loader_is_predicted_applied_measured_and_kept(run_story: RunStory, misstep_command: RunCommand) -> None:
    recorded = run_story(SLOW_LOADER, "--level", "off")
    assert recorded.exit == 0, recorded.err
    (recorded.folder / "finished").unlink()
    told = misstep_command("advise", "last", "--apply", "--steps", "30", "--pairs", "1", "--json")
    assert told.exit == 0, told.err
    facts: dict[str, Any] = json.loads(told.out)
    assert facts["verdict"]["bound"] == "input"
    assert facts["advice"][0]["rule"] == "workers"
    stages = {one["name"]: one["share"] for one in facts["pipeline"]["stages"]}
    assert stages["RandomCrop"] > 0.5
    (trial,) = facts["trials"]
    assert trial["kept"]
    assert trial["after"] < trial["before"]
    assert "num_workers=" in trial["line"]
    assert not (recorded.folder / "finished").exists(), "a trial ends after its steps"
    assert recorded.run.last_step is not None, "trials lie below the run and are no runs of the folder"
    text = misstep_command("advise", "last", "--lang", "zh")
    assert "受数据处理限制" in text.out


@pytest.mark.story
def test_a_change_that_kills_the_process_is_survived_and_said(run_story: RunStory, misstep_command: RunCommand) -> None:
    script = """
import os, signal, torch
if os.environ.get("FORBIDDEN"):
    os.kill(os.getpid(), signal.SIGILL)
net = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(30):
    net(torch.randn(4, 8)).sum().backward()
    optimizer.step()
"""
    assert run_story(script, "--level", "off").exit == 0
    told = misstep_command("advise", "last", "--try", "FORBIDDEN=1", "--steps", "20", "--pairs", "1")
    assert told.exit == 0, told.err
    assert "SIGILL" in told.out
