"""misstep's log, switched by the variables MindSpore users know; Python's logging underneath.

GLOG_v=1 GLOG_logtostderr=0 GLOG_log_dir=/var/log/train python train.py
/var/log/train/rank_0/logs/misstep.log.4711        one file for each process, so that none rotates another's

[INFO] TRAIN(4711:140…,MainProcess):2026-11-15-18:04:05.151.972 [misstep/train/model.py:150] …
"""

from __future__ import annotations

import logging
import logging.handlers
import os
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from misstep.errors import SettingError, nearest

LEVELS: tuple[int, ...] = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
"""By the numbers of GLOG_v."""


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    default: str
    help: str


VARIABLES: tuple[Variable, ...] = (
    Variable("GLOG_v", "2", "0 debug, 1 info, 2 warning, 3 error, 4 critical: this and above is logged."),
    Variable("GLOG_logtostderr", "1", "1: to the screen. 0: to a file in GLOG_log_dir."),
    Variable("GLOG_log_dir", "", "The file's directory; rank_N/logs is added. Letters, digits and - _ . / only."),
    Variable("GLOG_stderrthreshold", "2", "While logging to a file, this and above is shown on the screen as well."),
    Variable("MS_SUBMODULE_LOG_v", "", "Levels of parts of misstep, over GLOG_v: {TRAIN:1,CAPTURE:0}."),
    Variable("logger_maxBytes", "52428800", "Size after which a file is put aside and a new one begun."),
    Variable("logger_backupCount", "30", "How many files put aside are kept."),
)
DEFAULTS: dict[str, str] = {variable.name: variable.default for variable in VARIABLES}

SUBMODULES: tuple[str, ...] = tuple(
    sorted(folder.parent.name.upper() for folder in Path(__file__).parents[1].glob("*/__init__.py"))
)
"""misstep's own, by folder: TRAIN is the logger misstep.train."""
_OF_MINDSPORE = re.compile(
    "ANALYZER|API|COMMON|DEBUG|DEVICE|DISTRIBUTED|EXPRESS|GE_ADPT|GRAPH_KERNEL|HCCL_ADPT|KERNEL|LITE|MD|ME|OPTIMIZER"
    "|PARALLEL|PARSER|PIPELINE|PRE_ACT|PROFILER|PYNATIVE|RUNTIME_FRAMEWORK|SESSION|SYMBOLIC_SHAPE|UTILS|VM"
)
"""The variable is MindSpore's as well; what it says to MindSpore is not ours to judge. CORE is in both."""

FILE_MODE = 0o640
_ALLOWED = re.compile(r"[A-Za-z0-9_\-./]+")


@dataclass(frozen=True, slots=True)
class LogConfig:
    """What the variables say together."""

    level: int
    to_screen: bool
    directory: Path | None
    """With rank_N/logs."""
    screen_level: int
    submodules: tuple[tuple[str, int], ...]
    max_bytes: int
    backups: int


def configure_logs(environment: Mapping[str, str] | None = None) -> LogConfig:
    """Set misstep's log up as the variables say; safe to call again, in a forked process too.

    >>> configure_logs({"GLOG_v": "1"})
    """
    config = read_log_config(os.environ if environment is None else environment)
    root = logging.getLogger("misstep")
    for handler in [handler for handler in root.handlers if getattr(handler, "of_misstep", False)]:
        root.removeHandler(handler)
        handler.close()
    for handler in _handlers(config):
        handler.setFormatter(_Lines())
        handler.of_misstep = True  # type: ignore[attr-defined]
        root.addHandler(handler)
    root.setLevel(config.level)
    root.propagate = False  # once to the screen is enough, whatever the program's own root logger does
    chosen = dict(config.submodules)
    for name in SUBMODULES:
        logging.getLogger(f"misstep.{name.lower()}").setLevel(chosen.get(name, logging.NOTSET))
    return config


def wanted(environment: Mapping[str, str] | None = None) -> bool:
    """Whether somebody set any of the variables."""
    return any(name in (os.environ if environment is None else environment) for name in DEFAULTS)


def read_log_config(environment: Mapping[str, str]) -> LogConfig:
    """The variables, checked."""
    given = {name: environment.get(name, default) for name, default in DEFAULTS.items()}
    to_screen = _choice("GLOG_logtostderr", given["GLOG_logtostderr"], ("0", "1")) == "1"
    directory = None
    if given["GLOG_log_dir"]:
        directory = _directory(given["GLOG_log_dir"], environment)
    elif not to_screen:
        raise SettingError("GLOG_logtostderr is 0, so the log goes to a file; say where:  export GLOG_log_dir=/var/log")
    return LogConfig(
        level=_level("GLOG_v", given["GLOG_v"]),
        to_screen=to_screen,
        directory=directory,
        screen_level=_level("GLOG_stderrthreshold", given["GLOG_stderrthreshold"]),
        submodules=tuple(_submodules(given["MS_SUBMODULE_LOG_v"]).items()),
        max_bytes=_count("logger_maxBytes", given["logger_maxBytes"]),
        backups=_count("logger_backupCount", given["logger_backupCount"]),
    )


class ProcessFile(logging.handlers.RotatingFileHandler):
    """misstep.log.<pid>, readable by owner and group only; opened when there is something to write.

    A forked child goes on in a file of its own: two processes that rotate one file lose each other's lines.
    """

    def __init__(self, directory: Path, *, max_bytes: int, backups: int) -> None:
        self._folder = directory
        self._pid = os.getpid()
        super().__init__(
            directory / f"misstep.log.{self._pid}",
            maxBytes=max_bytes,
            backupCount=backups,
            encoding="utf-8",
            delay=True,
        )

    def emit(self, record: logging.LogRecord) -> None:
        if os.getpid() != self._pid:
            self._pid = os.getpid()
            self.stream = None  # the parent's; closing it would flush its buffer twice
            self.baseFilename = str(self._folder / f"misstep.log.{self._pid}")
        super().emit(record)

    def _open(self) -> Any:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o750)
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=_opener)


class _Lines(logging.Formatter):
    """Lines as MindSpore's own."""

    def format(self, record: logging.LogRecord) -> str:
        part = record.name.split(".")[1].upper() if "." in record.name else "MISSTEP"
        now = time.localtime(record.created)
        micro = int(record.created % 1 * 1_000_000)
        when = f"{time.strftime('%Y-%m-%d-%H:%M:%S', now)}.{micro // 1000:03d}.{micro % 1000:03d}"
        where = f"{_short(record.pathname)}:{record.lineno}"
        who = f"{record.process}:{record.thread},{record.processName}"
        text = f"[{record.levelname}] {part}({who}):{when} [{where}] {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class _Screen(logging.StreamHandler[IO[str]]):
    """Whatever sys.stderr is when a line is written: notebooks and tests replace it."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def _handlers(config: LogConfig) -> list[logging.Handler]:
    screen = _Screen()
    if config.to_screen or config.directory is None:
        return [screen]
    screen.setLevel(config.screen_level)
    return [ProcessFile(config.directory, max_bytes=config.max_bytes, backups=config.backups), screen]


def _opener(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, FILE_MODE)
    os.fchmod(descriptor, FILE_MODE)  # whatever the umask says: a log may hold paths and data
    return descriptor


def _short(path: str) -> str:
    before, found, after = path.rpartition(f"{os.sep}misstep{os.sep}")
    return f"misstep{os.sep}{after}" if found else os.path.basename(before + after)


def _directory(text: str, environment: Mapping[str, str]) -> Path:
    if not _ALLOWED.fullmatch(text):
        wrong = sorted({character for character in text if not _ALLOWED.fullmatch(character)})
        raise SettingError(f"GLOG_log_dir {text!r} has {' '.join(wrong)!r} in it; letters, digits and - _ . / only")
    rank = next((environment[name] for name in ("RANK_ID", "RANK") if environment.get(name)), "0")
    return Path(os.path.realpath(text)) / f"rank_{rank}" / "logs"


def _submodules(text: str) -> dict[str, int]:
    if not text.strip():
        return {}
    inside = re.fullmatch(r"\s*\{(.*)\}\s*", text)
    if inside is None:
        raise SettingError(f"MS_SUBMODULE_LOG_v is {text!r}; write it like {{TRAIN:1,CAPTURE:0}}")
    levels: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in inside[1].split(","))):
        name, _, level = (word.strip() for word in part.partition(":"))
        if name in SUBMODULES:
            levels[name] = _level(f"MS_SUBMODULE_LOG_v {name}", level)
        elif not _OF_MINDSPORE.fullmatch(name):
            raise SettingError(f"MS_SUBMODULE_LOG_v names {name!r}{nearest(name, SUBMODULES)}")
    return levels


def _level(name: str, text: str) -> int:
    return LEVELS[int(_choice(name, text, ("0", "1", "2", "3", "4")))]


def _choice(name: str, text: str, choices: tuple[str, ...]) -> str:
    if text.strip() not in choices:
        raise SettingError(f"{name} is {text!r}; it is one of {', '.join(choices)}")
    return text.strip()


def _count(name: str, text: str) -> int:
    if not text.strip().isdigit():
        raise SettingError(f"{name} is {text!r}; it is a whole number from 0 on")
    return int(text)
