"""The same study file on a Ray cluster of this machine; its trials are read like any other."""

from __future__ import annotations

import json
import sys

import pytest
from story import RunCommand, Write

pytestmark = [pytest.mark.story, pytest.mark.slow]

STUDY = """
study: clustered
command: [sh, -c, "echo value {x}"]
parameters:
  kind: {choice: [a, b]}
  x: {low: 0.0, high: 1.0}
target: {name: value, goal: maximize, pattern: 'value ([0-9.e-]+)'}
tuner: {name: tpe, seed: 0}
trials: 4
"""


def test_a_study_runs_on_ray_and_its_best_is_the_largest(write: Write, misstep_command: RunCommand) -> None:
    write("study.yaml", STUDY)
    done = misstep_command("tune", "study.yaml", "--ray", "local", "--json")
    assert done.exit == 0, done.err
    status = json.loads(misstep_command("tune", "status", "clustered", "--json").out)
    assert [trial["state"] for trial in status["trials"]] == ["complete"] * 4
    best = json.loads(misstep_command("tune", "best", "clustered", "--json").out)[0]
    assert best["values"]["value"] == max(trial["values"]["value"] for trial in status["trials"])
    assert best["values"]["value"] == pytest.approx(best["params"]["x"])


POPULATION = """
import json, pathlib, time
import misstep
from misstep.tuning import HyperConfig

config = HyperConfig()
folder = pathlib.Path(config.checkpoint_dir)
folder.mkdir(parents=True, exist_ok=True)
saved = folder / "state.json"
state = json.loads(saved.read_text()) if saved.exists() else {"step": 0, "score": 0.0}
print("begins at", state["step"])
for step in range(state["step"] + 1, 41):
    state = {"step": step, "score": state["score"] + config.params.rate}
    draft = folder / "draft"
    draft.write_text(json.dumps(state))
    draft.rename(saved)
    misstep.report(step=step, score=state["score"])
    time.sleep(0.15)
"""


def test_a_population_goes_on_from_the_checkpoints_of_better_trials(write: Write, misstep_command: RunCommand) -> None:
    write("train.py", POPULATION)
    write(
        "study.yaml",
        f"study: population\ncommand: {sys.executable} train.py\nparameters: {{rate: {{low: 0.0, high: 1.0}}}}\n"
        "target: {name: score, goal: maximize}\npruner: {name: pbt, args: {perturbation_interval: 4}}\n"
        "trials: 2\nworkers: 2\n",
    )
    done = misstep_command("tune", "study.yaml", "--ray", "local", "--json")
    assert done.exit == 0, done.err
    begins = [path.read_text() for path in (done.folder / "missteps").glob("population-*/output.txt")]
    assert any("begins at 0" in text for text in begins)
    assert any(text and "begins at 0" not in text for text in begins), begins
