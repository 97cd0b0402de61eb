"""`mindspore_config.json` and MS_RDR_*: the recorder and memory reuse, switched as MindSpore's guides say, for either
framework.

    {"rdr": {"enable": true, "mode": 1, "path": "/home/me/rdr"}, "sys": {"mem_reuse": true}}
    MS_RDR_ENABLE=1 MS_RDR_MODE=2 MS_RDR_PATH=/home/me/rdr

What the file says comes before the environment, word by word: a file that only says `enable` leaves mode and path to
the environment. The file is the one given to `set_context(env_config_path=…)`, else MISSTEP_ENV_CONFIG, else
./mindspore_config.json. MindSpore itself no longer reads any of them: its recorder is gone, so misstep's takes over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from misstep.errors import SettingError, nearest

RecordMode: TypeAlias = Literal[1, 2]
"""1: when training ends with an exception. 2: also when it ends well."""

CONFIG_VARIABLE = "MISSTEP_ENV_CONFIG"
CONFIG_FILE = "mindspore_config.json"
_SECTIONS = ("rdr", "sys", "dump")
_USED = {"rdr": ("enable", "mode", "path"), "sys": ("mem_reuse",)}
_VARIABLES = {"enable": "MS_RDR_ENABLE", "mode": "MS_RDR_MODE", "path": "MS_RDR_PATH"}
_SWITCHES = {"1": True, "0": False}


@dataclass(frozen=True, slots=True)
class RecorderConfig:
    """The `rdr` section: whether to record, when to export, and below which directory."""

    enable: bool = False
    mode: RecordMode = 1
    path: Path | None = None
    told: frozenset[str] = field(default=frozenset(), compare=False)
    """Which of these the file or the environment gave; the others are defaults."""

    def directory(self, rank: int = 0) -> Path | None:
        """Where the records of a rank go: path/rank_0/rdr; None when no path was given."""
        return None if self.path is None else self.path / f"rank_{rank}" / "rdr"


@dataclass(frozen=True, slots=True)
class EnvConfig:
    """What the configuration file and the environment say together."""

    rdr: RecorderConfig = field(default_factory=RecorderConfig)
    mem_reuse: bool = True
    file: Path | None = None


def env_config(named: str = "", *, environment: Mapping[str, str] | None = None) -> EnvConfig:
    """The configuration in force; `named` is a file the program itself named elsewhere.

    >>> env_config().rdr.directory(rank=0)
    PosixPath('/home/me/rdr/rank_0/rdr')
    """
    variables = os.environ if environment is None else environment
    file = named or variables.get(CONFIG_VARIABLE, "") or (CONFIG_FILE if Path(CONFIG_FILE).is_file() else "")
    # A file that merely lies here may have been written for others too: what we do not know in it is theirs.
    return read_env_config(file or None, environment=variables, strict=False)


def use_env_config(path: str | os.PathLike[str]) -> EnvConfig:
    """Take the configuration from this file from now on; it is read and checked at once."""
    config = read_env_config(path)
    os.environ[CONFIG_VARIABLE] = str(Path(path).resolve())  # for the recorder, in this process and in its children
    return config


def read_env_config(
    path: str | os.PathLike[str] | None, *, environment: Mapping[str, str] | None = None, strict: bool = True
) -> EnvConfig:
    """What a file says, and the environment where it does not; SettingError for what cannot be followed.

    `strict` also refuses names nobody knows.
    """
    file = None if path is None else Path(path)
    table = {} if file is None else _table(file)
    for name in table if strict else ():
        if name not in _SECTIONS:
            raise SettingError(f"{file} has an unknown section {name!r}{nearest(name, _SECTIONS)}")
    sections = {section: _section(file, table, section, strict=strict) for section in _USED}
    reuse = sections["sys"].get("mem_reuse", True)
    if not isinstance(reuse, bool):
        raise SettingError(f"{file}: sys.mem_reuse is {reuse!r}; write true or false, without quotes")
    given = {f"{file}: rdr.{key}": value for key, value in sections["rdr"].items()}
    return EnvConfig(_recorder(given, os.environ if environment is None else environment), reuse, file)


def _table(file: Path) -> dict[str, Any]:
    try:
        table = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"cannot read env_config_path {str(file)!r}: {error.strerror or error}") from None
    except ValueError as error:
        raise SettingError(f"env_config_path {str(file)!r} is no JSON: {error}") from None
    if not isinstance(table, dict):
        raise SettingError(f"{file} holds a {type(table).__name__}; write an object with 'rdr' or 'sys' in it")
    return table


def _section(file: Path | None, table: Mapping[str, Any], name: str, *, strict: bool) -> dict[str, Any]:
    section = table.get(name, {})
    if not isinstance(section, dict):
        raise SettingError(f"{file}: {name!r} must be an object, got {section!r}")
    for key in section if strict else ():
        if key not in _USED[name]:
            raise SettingError(f"{file}: {name!r} has no {key!r}{nearest(key, _USED[name])}")
    return {key: value for key, value in section.items() if key in _USED[name]}


def _recorder(of_file: Mapping[str, Any], environment: Mapping[str, str]) -> RecorderConfig:
    """`of_file` by 'file: rdr.key', so that an error names the place."""
    given: dict[str, tuple[str, Any]] = {}
    for key, variable in _VARIABLES.items():
        if environment.get(variable):
            given[key] = (variable, _read_variable(key, environment[variable]))
    given.update((where.rpartition(".")[2], (where, value)) for where, value in of_file.items())
    found = RecorderConfig(told=frozenset(given))
    enable_at, enable = given.get("enable", ("", found.enable))
    if not isinstance(enable, bool):
        how = "it is 1 or 0" if enable_at in environment else "write true or false, without quotes"
        raise SettingError(f"{enable_at} is {enable!r}; {how}")
    mode_at, mode = given.get("mode", ("", found.mode))
    if isinstance(mode, bool) or mode not in (1, 2):
        raise SettingError(f"{mode_at} is {mode!r}; it is 1 (on an exception) or 2 (at the end as well)")
    path_at, path = given.get("path", ("", None))
    if path is not None and not Path(str(path)).is_absolute():
        raise SettingError(f"{path_at} is {path!r}; it must be absolute, as processes have several directories")
    return RecorderConfig(enable, mode, None if path is None else Path(str(path)), found.told)


def _read_variable(key: str, text: str) -> Any:
    if key == "enable":
        return _SWITCHES.get(text, text)
    return int(text) if key == "mode" and text.isdecimal() else text
