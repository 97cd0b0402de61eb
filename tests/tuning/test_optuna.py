"""Our studies are Optuna's: its dashboard reads ours, and any of its studies opens here."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import optuna
import pytest

from misstep.tuning import Result, Tuner

PATIENCE = 120.0


def answer(url: str, server: subprocess.Popen[bytes]) -> Any:
    """What a server that is just starting answers."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as response:
                return json.load(response)
        except (urllib.error.URLError, ConnectionError):
            assert server.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)


@pytest.mark.story
def test_optunas_dashboard_reads_our_journal(tmp_path: Path) -> None:
    space = {"x": {"low": 0.0, "high": 1.0}, "kind": {"choice": ["a", "b"]}}
    with Tuner("ours", space, goal="maximize", seed=0, base=str(tmp_path)) as tuner:
        for trial in tuner.trials(4):
            trial.report(1, 0.5)
            trial.tell(trial.params["x"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = str(Path(sys.executable).with_name("optuna-dashboard"))
    journal = str(tmp_path / "studies" / "ours.journal")
    server = subprocess.Popen([program, journal, "--port", str(port)], stderr=subprocess.DEVNULL)
    try:
        (study,) = answer(f"http://127.0.0.1:{port}/api/studies", server)["study_summaries"]
        assert (study["study_name"], study["directions"]) == ("ours", ["maximize"])
        told = answer(f"http://127.0.0.1:{port}/api/studies/{study['study_id']}", server)
        assert [trial["state"] for trial in told["trials"]] == ["Complete"] * 4
    finally:
        server.terminate()
        server.wait()


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_any_study_of_optuna_opens(kind: str, tmp_path: Path) -> None:
    if kind == "sqlite":
        address = f"sqlite:///{tmp_path / 'theirs.db'}"
        storage: Any = address
    else:
        address = str(tmp_path / "theirs.log")
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(address))
    study = optuna.create_study(study_name="theirs", storage=storage, direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + trial.suggest_int("n", 1, 3), n_trials=6)
    result = Result.open(f"{address}#theirs")
    assert result.best.params == study.best_params
    assert result.best.values == [study.best_value]
    assert set(result.importances()) == {"x", "n"}
    assert [trial.state for trial in result.trials] == ["complete"] * 6
