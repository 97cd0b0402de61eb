"""The journal of a study survives what kills its writers."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import optuna
import pytest

from misstep.tuning.storage.journal import JournalFile
from misstep.tuning.storage.table import JournalTables, from_optuna


def study_in(path: Path) -> optuna.Study:
    storage = optuna.storages.JournalStorage(JournalFile(path))
    return optuna.create_study(study_name="s", storage=storage, load_if_exists=True, direction="maximize")


def one_trial(study: optuna.Study) -> None:
    trial = study.ask()
    x = trial.suggest_float("x", 0, 1)
    trial.suggest_categorical("kind", ["a", "b"])
    trial.suggest_int("n", 1, 9)
    trial.report(x, 1)
    trial.set_user_attr("run", f"s-{trial.number}")
    study.tell(trial, x)


def test_a_line_cut_off_by_a_kill_is_removed_by_the_next_writer(tmp_path: Path) -> None:
    path = tmp_path / "s.journal"
    one_trial(study_in(path))
    with path.open("ab") as file:
        file.write(b'{"op_code":4,"study_id":0,"datet')
    study = study_in(path)
    one_trial(study)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE"]
    assert [trial.number for trial in study_in(path).trials] == [0, 1]


def test_optunas_own_reader_opens_our_journal(tmp_path: Path) -> None:
    path = tmp_path / "s.journal"
    one_trial(study_in(path))
    backend = optuna.storages.journal.JournalFileBackend(str(path))
    loaded = optuna.load_study(study_name="s", storage=optuna.storages.JournalStorage(backend))
    assert loaded.trials == study_in(path).trials


def test_a_full_disk_leaves_the_journal_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.journal"
    study = study_in(path)
    one_trial(study)
    before = path.read_bytes()
    real = os.write

    def half(file: int, data: Any) -> int:
        real(file, bytes(data)[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half)
        with pytest.raises(OSError, match="No space left"):
            study.ask()
    assert path.read_bytes() == before
    one_trial(study)
    assert len(study_in(path).trials) == 2


def test_rows_read_from_a_journal_are_those_of_optuna(tmp_path: Path) -> None:
    path = tmp_path / "s.journal"
    study = study_in(path)
    tables = JournalTables(path)
    for count in range(1, 4):
        one_trial(study)
        study.enqueue_trial({"x": 0.5}, user_attrs={"retry_of": 1})
        assert len(tables.refresh()["s"].trials) == count + 1
    running = study.ask()
    study.tell(study.ask(), state=optuna.trial.TrialState.FAIL)
    running.report(float("nan"), 3)
    expected = from_optuna(study_in(path))
    found = tables.refresh()["s"]
    assert str(found) == str(expected)
    assert found.directions == ["maximize"]
