"""What happens to a trial: its values, its targets, its limits, and how often it is run again."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from misstep.errors import StudyFileError
from misstep.tuning.storage.table import Table, from_optuna
from misstep.tuning.studyfile import parse_study
from misstep.tuning.studyfile.like import study_like
from misstep.tuning.worker import News, Worker


def run(text: str, folder: Path, **given: object) -> Table:
    worker = Worker(parse_study(text, "study.yaml"), base=str(folder / "runs"), **given)  # type: ignore[arg-type]
    worker.run()
    return from_optuna(worker.shared.study)


def script(folder: Path, text: str) -> str:
    path = folder / "script.py"
    path.write_text(text)
    return f"{sys.executable} {path}"


def test_a_study_of_mindoptimizer_and_its_script_run_unchanged(tmp_path: Path) -> None:
    command = script(
        tmp_path,
        "from mindinsight.optimizer import HyperConfig\nimport misstep\nconfig = HyperConfig()\n"
        "params = config.params\nassert config.summary_dir.startswith('" + str(tmp_path / "summaries") + "')\n"
        "misstep.report(Accuracy=1 - abs(params.learning_rate - 0.0005) - params.momentum / 10)\n",
    )
    table = run(
        f"command: {command}\nsummary_base_dir: {tmp_path / 'summaries'}\ntuner:\n    name: random\n"
        "target:\n    group: metric\n    name: Accuracy\n    goal: maximize\nparameters:\n"
        "    learning_rate:\n        bounds: [0.00001, 0.001]\n        type: float\n"
        "    batch_size:\n        choice: [32, 64, 128, 256]\n        type: int\n"
        "    momentum:\n        source: user_defined\n        choice: [0.8, 0.9]\n        type: float\n",
        tmp_path,
        trials=3,
    )
    assert [trial.state for trial in table.trials] == ["complete"] * 3
    best = table.best()[0]
    assert best.values == [1 - abs(best.params["learning_rate"] - 0.0005) - best.params["momentum"] / 10]
    assert best.values == [max((trial.values or [0])[0] for trial in table.trials)]


SHELL = "command: [sh, -c, '{shell}']\nparameters: {{x: {{low: 0.0, high: 1.0}}}}\n"
VALUE = "target: {name: value, pattern: 'value ([0-9.e-]+)'}\n"


def test_a_failed_trial_is_run_again_after_a_pause_and_finds_its_checkpoints(tmp_path: Path) -> None:
    first = 'mkdir -p "$MISSTEP_CHECKPOINTS"; cd "$MISSTEP_CHECKPOINTS"; ls seen || {{ touch seen; exit 3; }}'
    shell = f"{first}; echo value {{x}}"
    text = f"command: [sh, -c, {shell!r}]\nparameters: {{x: {{low: 0.0, high: 1.0}}}}\n{VALUE}"
    table = run(text + "trial: {retries: 1, backoff: 0.2}\n", tmp_path, trials=1)
    failed, again = table.trials
    assert (failed.state, failed.attributes["exit"]) == ("failed", 3)
    assert (again.state, again.attributes["retry_of"], again.params) == ("complete", 0, failed.params)
    assert (again.started or 0) >= (failed.finished or 0)


def test_a_trial_that_takes_too_long_is_pruned_with_everything_it_started(tmp_path: Path) -> None:
    text = SHELL.format(shell="sleep 600") + VALUE + "trial: {timeout: 0.3}\n"
    (trial,) = run(text, tmp_path, trials=1).trials
    assert (trial.state, trial.attributes["ended"]) == ("pruned", "timeout")
    assert trial.attributes["said"]["id"] == "tune.too_long"


def test_a_trial_whose_processes_take_too_much_memory_is_pruned(tmp_path: Path) -> None:
    """The command is a shell; it is what the shell started that grows."""
    grow = script(tmp_path, "import time\nkept = bytearray(300 * 2**20)\ntime.sleep(600)\n")
    text = SHELL.format(shell=f"{grow}; true") + VALUE + "trial: {memory_mb: 200}\n"
    (trial,) = run(text, tmp_path, trials=1).trials
    assert (trial.state, trial.attributes["ended"]) == ("pruned", "memory")


def test_a_printed_target_is_compared_while_it_is_printed(tmp_path: Path) -> None:
    """Two good trials run to their end; the third prints what is worse and would never end."""
    shell = "for i in 1 2 3 4 5 6 7 8 9 10; do echo value {x}; done; case {x} in 0.9*) sleep 600;; esac"
    text = SHELL.format(shell=shell) + VALUE + "pruner: median\nstart: [{x: 0.1}, {x: 0.2}, {x: 0.9}]\n"
    good, also, bad = run(text, tmp_path, trials=3).trials
    assert [good.state, also.state] == ["complete", "complete"]
    assert (bad.state, bad.attributes["ended"]) == ("pruned", "pruner")


def test_values_that_break_a_constraint_are_never_run_and_do_not_count(tmp_path: Path) -> None:
    text = SHELL.format(shell="echo value {x}") + VALUE + 'constraints: ["x < 0.3"]\ntuner: {name: random, seed: 0}\n'
    table = run(text, tmp_path, trials=3)
    done = [trial for trial in table.trials if trial.state == "complete"]
    refused = [trial for trial in table.trials if trial.shown_state == "infeasible"]
    assert len(done) == 3
    assert all(trial.params["x"] < 0.3 for trial in done)
    assert all(trial.params["x"] >= 0.3 for trial in refused)
    assert refused
    assert not any("run" in trial.attributes for trial in refused)


def test_several_targets_are_read_from_the_output_and_the_process(tmp_path: Path) -> None:
    targets = (
        "targets:\n  - {name: a, pattern: 'a=([0-9.]+)', reduce: max}\n  - {name: seconds}\n  - {name: memory_mb}\n"
    )
    (trial,) = run(SHELL.format(shell="echo a=1 a=7 a=3") + targets, tmp_path, trials=1).trials
    assert trial.values is not None
    assert trial.values[0] == 7.0
    assert trial.values[1] > 0
    assert trial.values[2] > 0


def test_environment_and_workers(tmp_path: Path) -> None:
    text = SHELL.format(shell="echo value $RATE") + VALUE + "environment: {RATE: '{x}'}\nworkers: 3\n"
    table = run(text, tmp_path, trials=6)
    assert [(trial.values or [9])[0] for trial in table.trials] == [trial.params["x"] for trial in table.trials]


def test_a_running_trial_is_ended_by_hand_and_a_study_stops_when_asked(tmp_path: Path) -> None:
    text = SHELL.format(shell="sleep 600") + VALUE
    began = threading.Event()

    def hear(news: News) -> None:
        if news.kind == "began":
            began.set()

    worker = Worker(parse_study(text, "s.yaml"), base=str(tmp_path), trials=3, listen=hear)
    running = threading.Thread(target=worker.run)
    running.start()
    assert began.wait(60)
    worker.shared.study.set_user_attr("prune", [0])
    worker.shared.study.set_user_attr("stop", 1)
    running.join(60)
    assert not running.is_alive()
    (trial,) = from_optuna(worker.shared.study).trials
    assert (trial.state, trial.attributes["ended"]) == ("pruned", "asked")


def test_a_study_is_proposed_for_click_and_for_hydra(tmp_path: Path) -> None:
    command = script(
        tmp_path,
        "import click\n@click.command()\n@click.option('--lr', default=0.1)\n"
        "@click.option('--net', type=click.Choice(['a', 'b']))\n"
        "@click.option('--out-dir', default='x')\ndef main(**kwargs): raise SystemExit(9)\nmain()\n",
    )
    text = study_like(command)
    assert "--lr {lr} --net {net}" in text
    assert 'net: {choice: ["a", "b"]}' in text
    assert parse_study(text).parameters[0].log
    (tmp_path / "conf.yaml").write_text("optim:\n  lr: 0.01\nseed: 3\n")
    command = script(
        tmp_path,
        "import hydra\n@hydra.main(version_base=None, config_path='.', config_name='conf')\n"
        "def main(cfg): raise SystemExit(9)\nmain()\n",
    )
    text = study_like(command)
    assert "{overrides}" in text
    assert "optim.lr: {low: 0.00033, high: 0.3, log: true}" in text
    assert parse_study(text).parameters[0].name == "optim.lr"


def test_mutating_running_trials_needs_ray(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="--ray local"):
        run(SHELL.format(shell="true") + VALUE + "pruner: pbt\n", tmp_path)
    with pytest.raises(StudyFileError, match="median"):
        parse_study(SHELL.format(shell="true") + VALUE + "pruner: medain\n")
