"""A learning-rate range test before the search: short runs show where the rate is likely to lie."""

from __future__ import annotations

import json
import sys

import pytest
from story import RunCommand, Write

pytestmark = pytest.mark.story

SCRIPT = """
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
options = parser.parse_args()
torch.manual_seed(0)
x = torch.randn(64, 8)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
for step in range(1, 61):
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_probes_are_short_runs_that_do_not_count_and_the_first_proposals_lie_around_the_best(
    write: Write, misstep_command: RunCommand
) -> None:
    write("train.py", SCRIPT)
    write(
        "study.yaml",
        f"study: rates\ncommand: {sys.executable} train.py --lr {{lr}}\n"
        "parameters: {lr: {low: 1e-6, high: 10.0, log: true, prior: range_test}}\n"
        "target: loss\ntuner: {name: tpe, seed: 0}\ntrials: 3\n",
    )
    done = misstep_command("tune", "study.yaml", "--json")
    assert done.exit == 0, done.err
    trials = json.loads(misstep_command("tune", "status", "rates", "--json").out)["trials"]
    probes = [trial for trial in trials if "probe" in trial]
    results = [trial for trial in trials if "probe" not in trial]
    assert len(probes) == 7
    well = {trial["params"]["lr"]: trial["probe_loss"] for trial in probes if trial["ended"] == "probe"}
    assert {trial["steps"] for trial in probes if trial["ended"] == "probe"} == {30}
    assert [trial["ended"] for trial in probes][-1] in ("nan", "divergence"), "a rate of 10 does not survive"
    likely = min(well, key=lambda rate: well[rate])
    assert len(results) == 3
    assert all(likely / 300 < trial["params"]["lr"] < likely * 300 for trial in results), (likely, results)
    assert json.loads(misstep_command("tune", "best", "rates", "--json").out)[0] in results
