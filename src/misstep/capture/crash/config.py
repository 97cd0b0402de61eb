"""Whether flight records are made, when, and where they go: misstep's settings, else the words of MindSpore's recorder.

    MISSTEP_RECORD, MISSTEP_RECORD_MODE, MISSTEP_RECORD_DIR       before
    {"rdr": {"enable": true, "mode": 1, "path": "/rdr"}}          before          (envconfig.py)
    MS_RDR_ENABLE=1 MS_RDR_MODE=2 MS_RDR_PATH=/rdr

With a path, records go to {path}/rank_{RANK_ID}/rdr/ as well.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from misstep.capture.crash.envconfig import EnvConfig, env_config
from misstep.errors import SettingError
from misstep.settings import Settings


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
    problem = ""
    try:
        words = env_config(config, environment=variables).rdr
    except SettingError as error:  # a record of a crash is worth more than obedience to a typing error
        words, problem = EnvConfig().rdr, str(error)
    given = settings.given
    enabled = words.enable if "enable" in words.told and "record" not in given else bool(settings.record)
    mode = words.mode if words.enable and "record_mode" not in given else int(settings.record_mode)
    number = variables.get("RANK_ID", "")
    own = number if number.isdecimal() else str(rank)
    root = settings.record_dir or (words.path if words.enable else None)
    export = str(Path(root).absolute() / f"rank_{own}" / "rdr") if root else ""
    return Recording(enabled, mode, export, problem)


def program_config() -> str:
    """The file the program gave to MindSpore's set_context; empty when it did not, or uses no MindSpore."""
    if "mindspore" not in sys.modules:
        return ""
    from misstep.adapters.mindspore.recording import config_path

    return config_path()
