"""The flight recorder configured as MindSpore's Running Data Recorder was: by a JSON file, or by MS_RDR_* variables.

    {"rdr": {"enable": true, "mode": 1, "path": "/path/to/rdr/dir"}}        mode 2: also at a normal end
    MS_RDR_ENABLE=1 MS_RDR_MODE=2 MS_RDR_PATH=/path/to/rdr/dir

The file comes before the environment, and misstep's own settings (record, record_mode, record_dir) come before both.
The file is the one given to `set_context(env_config_path=…)`, else MISSTEP_ENV_CONFIG, else ./mindspore_config.json.
Flight records then go to {path}/rank_{RANK_ID}/rdr/ as well.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misstep.settings import Settings

CONFIG_VARIABLE = "MISSTEP_ENV_CONFIG"
CONFIG_FILE = "mindspore_config.json"


@dataclass(frozen=True, slots=True)
class Recording:
    """Whether flight records are made, when, and where they go."""

    enabled: bool = True
    mode: int = 1
    """1: when training fails. 2: also at a normal end."""
    export: str = ""
    """A directory of records besides the run's own; empty for none."""
    problem: str = ""
    """What in the configuration could not be followed."""


def recording(
    settings: Settings, *, rank: int, config: str = "", environment: Mapping[str, str] | None = None
) -> Recording:
    """The configuration in force; `config` is the file the program itself named."""
    variables = os.environ if environment is None else environment
    table, problem = _from_file(config or variables.get(CONFIG_VARIABLE, "") or CONFIG_FILE)
    enable = _choice(table.get("enable"), variables.get("MS_RDR_ENABLE"))
    mode = _choice(table.get("mode"), variables.get("MS_RDR_MODE"))
    path = str(table.get("path") or variables.get("MS_RDR_PATH") or "")
    given = settings.given
    if path and not os.path.isabs(path):
        problem, path = problem or f"the path of the running data recorder is {path!r}; it must be absolute", ""
    on = enable not in (None, False, "0", "false", "False", "")
    enabled = settings.record if "record" in given or enable is None else on
    chosen = str(mode or "1") if on and "record_mode" not in given else str(settings.record_mode)
    if chosen not in ("1", "2"):
        problem, chosen = problem or f"the recorder's mode is {chosen!r}; it is 1 or 2", "1"
    number = variables.get("RANK_ID", "")
    own = number if number.isdecimal() else str(rank)
    root = settings.record_dir if settings.record_dir else path if on else ""
    export = str(Path(root).absolute() / f"rank_{own}" / "rdr") if root else ""
    return Recording(bool(enabled), int(chosen), export, problem)


def program_config() -> str:
    """The file the program gave to MindSpore's set_context; empty when it did not, or uses no MindSpore."""
    if "mindspore" not in sys.modules:
        return ""
    from misstep.adapters.mindspore.recording import config_path

    return config_path()


def _from_file(path: str) -> tuple[dict[str, Any], str]:
    try:
        plain = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, "" if path == CONFIG_FILE else f"there is no configuration file {path}"
    except (OSError, ValueError) as error:
        return {}, f"cannot read the configuration file {path}: {error}"
    table = plain.get("rdr", {}) if isinstance(plain, dict) else {}
    return (table, "") if isinstance(table, dict) else ({}, f"'rdr' in {path} is no object")


def _choice(first: Any, second: str | None) -> Any:
    return first if first is not None else second
