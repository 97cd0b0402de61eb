"""The recorder configured as MindSpore's RDR was: file before environment, our own settings before both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from misstep.capture.crash.config import Recording, recording
from misstep.capture.crash.envconfig import env_config
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
    [
        ({"enable": True, "path": "relative/path"}, "rdr.path is 'relative/path'; it must be absolute"),
        ({"enable": True, "mode": 9}, "rdr.mode is 9"),
        ({"enable": "yes"}, "rdr.enable is 'yes'; write true or false"),
    ],
)
def test_what_cannot_be_followed_is_said(tmp_path: Path, rdr: dict[str, object], words: str) -> None:
    config = write(tmp_path / "c.json", **rdr)
    assert words in recording(Settings(), rank=0, config=config, environment={}).problem


def test_what_the_file_leaves_open_the_environment_says(tmp_path: Path) -> None:
    config = write(tmp_path / "c.json", enable=True)
    assert recording(Settings(), rank=0, config=config, environment=ENVIRONMENT) == Recording(
        True, 2, "/from/environment/rank_3/rdr"
    )
    switched_off = write(tmp_path / "off.json", enable=False)
    assert recording(Settings(), rank=0, config=switched_off, environment=ENVIRONMENT) == Recording(False, 1, "")


def test_the_recorder_and_set_context_read_the_same_words(tmp_path: Path) -> None:
    write(tmp_path / "mindspore_config.json", enable=True, path="/from/here")
    named = write(tmp_path / "named.json", enable=True, path="/from/named")
    by_variable = {"MISSTEP_ENV_CONFIG": named}
    for environment, root in (({}, "/from/here"), (by_variable, "/from/named")):
        assert env_config(environment=environment).rdr.directory(0) == Path(root, "rank_0", "rdr")
        assert recording(Settings(), rank=0, environment=environment).export == f"{root}/rank_0/rdr"


def test_a_switch_that_is_no_switch_is_said_and_records_are_made_all_the_same() -> None:
    told = recording(Settings(), rank=0, environment={"MS_RDR_ENABLE": "yes"})
    assert (told.enabled, told.problem) == (True, "MS_RDR_ENABLE is 'yes'; it is 1 or 0")


def test_a_file_that_is_not_there_is_named() -> None:
    assert "nowhere.json" in recording(Settings(), rank=0, config="nowhere.json", environment={}).problem
