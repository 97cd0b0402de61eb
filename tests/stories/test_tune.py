"""A user tunes a script as it is: from its arguments to the best trial, across a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from story import MISSTEP, RunCommand, Write, environment_of_a_user

from misstep.store.reading.reader import open_run
from misstep.store.runs import list_runs

pytestmark = pytest.mark.story

SCRIPT = """
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--width", type=int, default=8)
parser.add_argument("--spoil", type=float, default=0.0)
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()

torch.manual_seed(options.seed)
model = torch.nn.Sequential(torch.nn.Linear(4, options.width), torch.nn.Tanh(), torch.nn.Linear(options.width, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
x = torch.randn(32, 4)
target = x.sum(1, keepdim=True)
for step in range(1, 21):
    y = model(x)
    if options.spoil > 0.5 and step == 4:
        y = torch.log(y - 100)
    loss = (y - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("accuracy", 1 / (1 + loss.item()))
"""
STUDY = f"""
study: mlp
command: {sys.executable} train.py --lr {{lr}} --spoil {{spoil}}
parameters:
  lr: {{low: 0.001, high: 0.1, log: true}}
  spoil: {{choice: [0.0, 1.0]}}
target: {{name: loss, goal: minimize}}
tuner: {{name: tpe, seed: 1}}
start: [{{lr: 0.05, spoil: 1.0}}, {{lr: 0.05, spoil: 0.0}}]
trials: 4
"""


def test_a_study_ends_bad_trials_with_their_verdict_and_its_best_opens_in_the_debugger(
    write: Write, misstep_command: RunCommand
) -> None:
    write("train.py", SCRIPT)
    write("study.yaml", STUDY)
    done = misstep_command("tune", "study.yaml", "--json")
    assert done.exit == 0, done.err
    status = json.loads(misstep_command("tune", "status", "mlp", "--json").out)
    first, second = status["trials"][:2]
    assert (first["state"], first["ended"]) == ("pruned", "nan")
    assert "log" in first["why"]
    assert "train.py:20" in first["why"]
    assert second["state"] == "complete"
    best = json.loads(misstep_command("tune", "best", "mlp", "--json").out)[0]
    losses = [trial["values"]["loss"] for trial in status["trials"] if trial["state"] == "complete"]
    assert best["values"]["loss"] == min(losses)
    shown = misstep_command("show", best["run"])
    assert shown.exit == 0
    assert len(list_runs(done.folder / "missteps")) == 4
    assert open_run(done.folder / "missteps" / first["run"]).verdict is not None
    text = misstep_command("tune", "best", "study.yaml", "--lang", "zh").out
    assert "最优：试验" in text
    assert f"train.py --lr {best['params']['lr']!r}" in text


def test_a_finding_of_severity_error_ends_a_trial_with_its_sentence(write: Write, misstep_command: RunCommand) -> None:
    """The last layer is not in the optimizer of one trial: nothing fails, and it is told all the same."""
    part = "model[: 1 if options.spoil > 0.5 else 3].parameters()"
    script = SCRIPT.replace("model.parameters()", part).replace("if options.spoil > 0.5 and step == 4:", "if False:")
    write("train.py", script.replace("range(1, 21)", "range(1, 41)"))
    write("study.yaml", STUDY)
    done = misstep_command("tune", "study.yaml", "--trials", "2", "--json")
    assert done.exit == 0, done.err
    first, second = json.loads(misstep_command("tune", "status", "mlp", "--json").out)["trials"]
    assert (first["state"], first["ended"]) == ("pruned", "error"), first
    assert "optimizer" in first["why"]
    assert second["state"] == "complete", second


def test_a_study_is_proposed_from_the_scripts_own_arguments_and_runs(write: Write, misstep_command: RunCommand) -> None:
    write("train.py", SCRIPT)
    proposed = misstep_command("tune", "proposed.yaml", "--like", f"{sys.executable} train.py --spoil 0")
    assert proposed.exit == 0, proposed.err
    text = (proposed.folder / "proposed.yaml").read_text()
    assert "lr: {low: 0.0017, high: 1.5, log: true}" in text
    assert "width: {choice: [2, 4, 8, 16, 32]}" in text
    assert "# Left as they are: seed" in text
    done = misstep_command("tune", "proposed.yaml", "--trials", "1")
    assert done.exit == 0, done.err


def test_a_killed_study_goes_on_where_it_was(write: Write, folder: Path, misstep_command: RunCommand) -> None:
    write("train.py", SCRIPT.replace("for step in range(1, 21):", "for step in range(1, 1_000_000_000):"))
    write("study.yaml", STUDY.replace("trials: 4", "trials: 1\nheartbeat: 1s\ngrace: 60s").replace("start:", "# "))
    output = folder / "tuner.txt"
    with output.open("wb") as file:
        tuner = subprocess.Popen(
            [*MISSTEP, "tune", "study.yaml"],
            cwd=folder,
            env=environment_of_a_user(),
            stderr=file,
            start_new_session=True,
        )
    while not (folder / "missteps" / "mlp-0000" / "rank-0").exists():
        assert tuner.poll() is None, output.read_text()
    os.kill(tuner.pid, signal.SIGKILL)
    tuner.wait()
    write("train.py", SCRIPT)
    done = misstep_command("tune", "study.yaml")
    assert done.exit == 0, done.err
    assert "trial 0 was stale" in done.err
    stale, again = json.loads(misstep_command("tune", "status", "mlp", "--json").out)["trials"]
    assert stale["state"] == "stale"
    assert again["state"] in ("complete", "pruned")
    assert (again["retry_of"], again["params"]) == (0, stale["params"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("target: {name: loss", "target: {name: lost"), "study.yaml:7: the target 'lost' was never recorded"),
        (("train.py --lr", "train.py --nosuch --lr"), "study.yaml:3: 5 trials failed and none was complete"),
        (("trials: 4", "trials: 4\nstorage: postgresql://nobody@localhost:1/none"), "cannot be reached"),
    ],
    ids=["target never recorded", "command fails", "storage unreachable"],
)  # fmt: skip
def test_what_cannot_work_is_told_with_its_line(
    change: tuple[str, str], words: str, write: Write, misstep_command: RunCommand
) -> None:
    write("train.py", SCRIPT)
    assert change[0] in STUDY
    write("study.yaml", STUDY.replace(*change).replace("start: [{lr: 0.05, spoil: 1.0}, ", "start: ["))
    done = misstep_command("tune", "study.yaml", "--trials", "6")
    assert done.exit == 1
    assert words in done.err, done.err
