"""A slow loader is named, the step with more workers predicted, and measured on the user's own command."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from story import RunCommand, RunStory, Write

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


DDP = """
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
net = nn.parallel.DistributedDataParallel(nn.Sequential(*[nn.Linear(64, 64) for _ in range(4)]))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(30):
    net(torch.randn(8, 64)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""


@pytest.mark.story
@pytest.mark.slow
def test_gradients_of_several_ranks_are_measured_and_cut(write: Write, misstep_command: RunCommand) -> None:
    write("train.py", DDP)
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    recorded = misstep_command("run", "--level", "off", *launcher, "train.py")
    assert recorded.exit == 0, recorded.err
    done = misstep_command("advise", "last", "--buckets", "--json", "--pairs", "1", "--steps", "20")
    assert done.exit == 0, done.err
    facts = json.loads(done.out)["buckets"]
    assert (facts["ranks"], facts["gradients"], facts["bytes"]) == (2, 8, 4 * (64 * 64 + 64) * 4)
    assert facts["best"]["end"] <= facts["default"]["end"] * 1.01
    assert facts["wire"]["latency"] > 0
