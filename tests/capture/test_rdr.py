"""The recorder configured as MindSpore's RDR was: file before environment, our own settings before both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from misstep.capture.rdr import Recording, recording
from misstep.settings import Settings

ENVIRONMENT = {"MS_RDR_ENABLE": "1", "MS_RDR_MODE": "2", "MS_RDR_PATH": "/from/environment", "RANK_ID": "3"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(file: Path, **rdr: object) -> str:
    file.write_text(json.dumps({"rdr": rdr}))
    return str(file)


def test_without_a_word_it_records_failures_into_the_run() -> None:
    assert recording(Settings(), rank=0, environment={}) == Recording(True, 1, "")


def test_the_environment_is_followed() -> None:
    assert recording(Settings(), rank=0, environment=ENVIRONMENT) == Recording(True, 2, "/from/environment/rank_3/rdr")


def test_the_file_comes_before_the_environment(tmp_path: Path) -> None:
    config = write(tmp_path / "c.json", enable=True, mode=1, path="/from/file")
    assert recording(Settings(), rank=0, config=config, environment=ENVIRONMENT) == Recording(
        True, 1, "/from/file/rank_3/rdr"
    )


def test_a_file_in_the_working_directory_is_found_and_may_switch_it_off(tmp_path: Path) -> None:
    write(tmp_path / "mindspore_config.json", enable=False, path="/from/file")
    assert recording(Settings(), rank=1, environment={}) == Recording(False, 1, "")


def test_our_own_settings_come_before_both(tmp_path: Path) -> None:
    config = write(tmp_path / "c.json", enable=False, mode=1, path="/from/file")
    settings = Settings({"record": True, "record_mode": 2, "record_dir": "/ours"})
    assert recording(settings, rank=1, config=config, environment={}) == Recording(True, 2, "/ours/rank_1/rdr")


@pytest.mark.parametrize(
    ("rdr", "words"),
    [({"enable": True, "path": "relative/path"}, "absolute"), ({"enable": True, "mode": 9}, "1 or 2")],
)
def test_what_cannot_be_followed_is_said(tmp_path: Path, rdr: dict[str, object], words: str) -> None:
    config = write(tmp_path / "c.json", **rdr)
    assert words in recording(Settings(), rank=0, config=config, environment={}).problem


def test_a_file_that_is_not_there_is_named() -> None:
    assert "nowhere.json" in recording(Settings(), rank=0, config="nowhere.json", environment={}).problem
