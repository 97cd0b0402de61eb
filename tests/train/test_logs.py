"""The log: levels, files and parts as the variables of the guides say."""

from __future__ import annotations

import logging
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from misstep.errors import SettingError
from misstep.train.logs import SUBMODULES, VARIABLES, configure_logs, read_log_config

LINE = re.compile(
    r"\[(?P<level>[A-Z]+)\] (?P<part>[A-Z]+)\(\d+:\d+,MainProcess\):"
    r"\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{3}\.\d{3} \[test_logs\.py:\d+\] (?P<text>.*)"
)


@pytest.fixture(autouse=True)
def plain_logging_afterwards() -> Iterator[None]:
    yield
    root = logging.getLogger("misstep")
    for handler in [handler for handler in root.handlers if getattr(handler, "of_misstep", False)]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(logging.NOTSET)
    root.propagate = True
    for name in SUBMODULES:
        logging.getLogger(f"misstep.{name.lower()}").setLevel(logging.NOTSET)


def say_everything(part: str = "train") -> None:
    log = logging.getLogger(f"misstep.{part}")
    for level in ("debug", "info", "warning", "error", "critical"):
        getattr(log, level)(f"a {level} line")


def levels(text: str) -> list[str]:
    found = [LINE.fullmatch(line) for line in text.splitlines()]
    assert all(found), text
    return [match["level"] for match in found if match]


@pytest.mark.parametrize(
    ("variable", "shown"),
    [
        ("0", ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]),
        ("1", ["INFO", "WARNING", "ERROR", "CRITICAL"]),
        ("2", ["WARNING", "ERROR", "CRITICAL"]),
        ("3", ["ERROR", "CRITICAL"]),
        ("4", ["CRITICAL"]),
    ],
)
def test_glog_v_is_the_lowest_level_shown(variable: str, shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs({"GLOG_v": variable})
    say_everything()
    assert levels(capsys.readouterr().err) == shown


def test_warnings_and_worse_are_shown_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs({})
    say_everything()
    assert levels(capsys.readouterr().err) == ["WARNING", "ERROR", "CRITICAL"]


def test_the_file_lies_below_the_rank_and_the_screen_has_its_own_threshold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs(
        {
            "GLOG_v": "1",
            "GLOG_logtostderr": "0",
            "GLOG_log_dir": str(tmp_path),
            "GLOG_stderrthreshold": "3",
            "RANK_ID": "2",
        }
    )
    say_everything()
    file = tmp_path / "rank_2" / "logs" / f"misstep.log.{os.getpid()}"
    assert levels(file.read_text(encoding="utf-8")) == ["INFO", "WARNING", "ERROR", "CRITICAL"]
    assert levels(capsys.readouterr().err) == ["ERROR", "CRITICAL"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_with_a_directory_and_the_screen_chosen_no_file_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs({"GLOG_logtostderr": "1", "GLOG_log_dir": str(tmp_path)})
    say_everything()
    assert levels(capsys.readouterr().err) == ["WARNING", "ERROR", "CRITICAL"]
    assert list(tmp_path.iterdir()) == []


def test_a_part_has_a_level_of_its_own_over_the_general_one(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs({"GLOG_v": "1", "MS_SUBMODULE_LOG_v": "{TRAIN:2, CAPTURE:0, PARSER:2,ANALYZER:2}"})
    shown = {}
    for part in ("train", "capture", "store"):
        say_everything(part)
        shown[part] = levels(capsys.readouterr().err)[0]
    assert shown == {"train": "WARNING", "capture": "DEBUG", "store": "INFO"}


def test_a_full_file_is_put_aside_and_only_so_many_are_kept(tmp_path: Path) -> None:
    configure_logs(
        {
            "GLOG_v": "1",
            "GLOG_logtostderr": "0",
            "GLOG_log_dir": str(tmp_path),
            "GLOG_stderrthreshold": "4",
            "logger_maxBytes": "400",
            "logger_backupCount": "2",
        }
    )
    for number in range(30):
        logging.getLogger("misstep.train").info("line %d", number)
    folder = tmp_path / "rank_0" / "logs"
    name = f"misstep.log.{os.getpid()}"
    assert sorted(path.name for path in folder.iterdir()) == [name, f"{name}.1", f"{name}.2"]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o640 for path in folder.iterdir())
    assert "line 29" in (folder / name).read_text(encoding="utf-8")


FORKING = """
import logging, os
from misstep.train import configure_logs

configure_logs()
log = logging.getLogger("misstep.train")
log.info("the parent begins")
children = []
for number in range(3):
    pid = os.fork()
    if pid == 0:
        for line in range(40):
            log.info("child %d line %d", number, line)
        os._exit(0)
    children.append(pid)
for line in range(40):
    log.info("parent line %d", line)
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
"""


def test_processes_that_rotate_at_once_lose_no_line(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "GLOG_v": "1",
        "GLOG_logtostderr": "0",
        "GLOG_log_dir": str(tmp_path),
        "GLOG_stderrthreshold": "4",
        "logger_maxBytes": "2000",
    }
    subprocess.run([sys.executable, "-c", FORKING], env=environment, check=True, timeout=60)
    files = list((tmp_path / "rank_0" / "logs").iterdir())
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 1 + 4 * 40
    assert len({file.name.split(".")[2] for file in files}) == 4


def test_using_misstep_train_sets_the_log_up_from_the_environment(tmp_path: Path) -> None:
    script = "from misstep.train import Accuracy; import logging; logging.getLogger('misstep.train').info('hello')"
    environment = {**os.environ, "GLOG_v": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert "[INFO] TRAIN(" in done.stderr


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"GLOG_logtostderr": "0"}, "export GLOG_log_dir"),
        ({"GLOG_v": "5"}, "one of 0, 1, 2, 3, 4"),
        ({"GLOG_logtostderr": "yes"}, "one of 0, 1"),
        ({"GLOG_log_dir": "/var/log/with space"}, "letters, digits"),
        ({"GLOG_log_dir": "/var/log;rm"}, "';'"),
        ({"MS_SUBMODULE_LOG_v": "TRAIN:1"}, "write it like"),
        ({"MS_SUBMODULE_LOG_v": "{TRIAN:1}"}, "did you mean TRAIN"),
        ({"MS_SUBMODULE_LOG_v": "{TRAIN:9}"}, "one of 0, 1, 2, 3, 4"),
        ({"logger_maxBytes": "many"}, "whole number"),
    ],
)
def test_a_wrong_variable_says_what_is_right(environment: dict[str, str], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        read_log_config(environment)


def test_the_parts_are_misstep_s_folders() -> None:
    import misstep

    folders = {path.name.upper() for path in Path(misstep.__file__).parent.iterdir() if (path / "__init__.py").exists()}
    assert folders <= set(SUBMODULES)


def test_every_variable_is_explained() -> None:
    assert all(variable.help.endswith(".") for variable in VARIABLES)
