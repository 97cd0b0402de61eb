"""Runs to look at, and the real command line in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_runs import VERDICT, Misstep, Said, write_run

import misstep.sentences.language as i18n
from misstep.cli import main


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    for variable in ("MISSTEP_LANG", "MISSTEP_DIR", "MISSTEP_RUN"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    i18n.choose(None)


@pytest.fixture
def misstep(capfd: pytest.CaptureFixture[str]) -> Misstep:
    def run(*arguments: str) -> Said:
        capfd.readouterr()
        code = main(arguments)
        out, err = capfd.readouterr()
        return Said(code, out, err)

    return run


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    return write_run(tmp_path / "missteps" / "healthy")


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    return write_run(tmp_path / "missteps" / "broken", verdict=VERDICT)
