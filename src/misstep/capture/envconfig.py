"""`mindspore_config.json`: the recorder and memory reuse, switched as MindSpore's guides say, for either framework.

    {"rdr": {"enable": true, "mode": 1, "path": "/home/me/rdr"}, "sys": {"mem_reuse": true}}

The file named by `set_context(env_config_path=…)` wins over MS_RDR_ENABLE, MS_RDR_MODE and MS_RDR_PATH. MindSpore
itself no longer reads either: its recorder is gone, so misstep's takes the same settings.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from misstep.capture.rdr import CONFIG_VARIABLE
from misstep.errors import SettingError, nearest

RecordMode: TypeAlias = Literal[1, 2]
"""1: when training ends with an exception. 2: also when it ends well."""

_SECTIONS = ("rdr", "sys", "dump")
_USED = {"rdr": ("enable", "mode", "path"), "sys": ("mem_reuse",)}


@dataclass(frozen=True, slots=True)
class RecorderConfig:
    """The `rdr` section: whether to record, when to export, and below which directory."""

    enable: bool = False
    mode: RecordMode = 1
    path: Path | None = None

    def directory(self, rank: int = 0) -> Path | None:
        """Where the records of a rank go: path/rank_0/rdr; None when no path was given."""
        return None if self.path is None else self.path / f"rank_{rank}" / "rdr"


@dataclass(frozen=True, slots=True)
class EnvConfig:
    """What the configuration file and the environment say together."""

    rdr: RecorderConfig = field(default_factory=RecorderConfig)
    mem_reuse: bool = True
    file: Path | None = None


def env_config() -> EnvConfig:
    """The configuration in force: of the file given to `set_context(env_config_path=…)`, else of the environment.

    >>> env_config().rdr.directory(rank=0)
    PosixPath('/home/me/rdr/rank_0/rdr')
    """
    if _file:
        return read_env_config(_file[0])
    return EnvConfig(rdr=_recorder_of_environment(os.environ))


def use_env_config(path: str | os.PathLike[str]) -> EnvConfig:
    """Take the configuration from this file from now on; it is read and checked at once."""
    config = read_env_config(path)
    _file[:] = [Path(path).resolve()]
    os.environ[CONFIG_VARIABLE] = str(_file[0])  # where the recorder looks, in this process and in its children
    return config


def read_env_config(path: str | os.PathLike[str]) -> EnvConfig:
    """The configuration of one file; what it does not say of the recorder, the environment does."""
    file = Path(path)
    try:
        table = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"cannot read env_config_path {str(file)!r}: {error.strerror or error}") from None
    except ValueError as error:
        raise SettingError(f"env_config_path {str(file)!r} is no JSON: {error}") from None
    if not isinstance(table, dict):
        raise SettingError(f"{file} holds a {type(table).__name__}; write an object with 'rdr' or 'sys' in it")
    for name in table:
        if name not in _SECTIONS:
            raise SettingError(f"{file} has an unknown section {name!r}{nearest(name, _SECTIONS)}")
    given = {section: _section(file, table, section) for section in _USED}
    recorder = _recorder(str(file), given["rdr"]) if "rdr" in table else _recorder_of_environment(os.environ)
    reuse = _boolean(f"{file}: sys.mem_reuse", given["sys"].get("mem_reuse", True))
    return EnvConfig(rdr=recorder, mem_reuse=reuse, file=file)


_file: list[Path] = []


def _section(file: Path, table: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = table.get(name, {})
    if not isinstance(section, dict):
        raise SettingError(f"{file}: {name!r} must be an object, got {section!r}")
    for key in section:
        if key not in _USED[name]:
            raise SettingError(f"{file}: {name!r} has no {key!r}{nearest(key, _USED[name])}")
    return section


def _recorder(where: str, given: Mapping[str, Any]) -> RecorderConfig:
    enable = _boolean(f"{where}: rdr.enable", given.get("enable", False))
    mode = given.get("mode", 1)
    if isinstance(mode, bool) or mode not in (1, 2):
        raise SettingError(f"{where}: rdr.mode is {mode!r}; it is 1 (on an exception) or 2 (at the end as well)")
    path = given.get("path")
    if path is not None and not Path(str(path)).is_absolute():
        raise SettingError(f"{where}: rdr.path is {path!r}; it must be absolute, as processes have several directories")
    return RecorderConfig(enable, mode, None if path is None else Path(str(path)))


def _recorder_of_environment(environment: Mapping[str, str]) -> RecorderConfig:
    given: dict[str, Any] = {"enable": environment.get("MS_RDR_ENABLE", "0") == "1"}
    if mode := environment.get("MS_RDR_MODE"):
        given["mode"] = int(mode) if mode.isdigit() else mode
    if path := environment.get("MS_RDR_PATH"):
        given["path"] = path
    return _recorder("the environment (MS_RDR_*)", given)


def _boolean(what: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise SettingError(f"{what} is {value!r}; write true or false, without quotes")
    return value
