"""Every setting in one table: its name, default, environment variable and meaning.

The table feeds the command line, the reference in docs/, `misstep env` and misstep.toml. A value is taken from the
call, else from the environment, else from ./misstep.toml, else the default.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misstep.errors import SettingError, nearest

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    default: Value
    help: str
    choices: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """The environment variable: `budget` is MISSTEP_BUDGET."""
        return "MISSTEP_" + self.name.upper()


SETTINGS: tuple[Setting, ...] = (
    Setting("dir", "missteps", "Where runs are kept."),
    Setting("name", "", "Name of the run; empty for the time and a short word."),
    Setting("level", "module", "How closely to watch: off, guard, module or op.", ("off", "guard", "module", "op")),
    Setting("steps", "", "Steps to watch at this level, like 100:200 or 5,10,15; empty for all."),
    Setting("budget", 0.0, "Largest share of training time misstep may take, like 0.03; 0 for no limit."),
    Setting("watch", "", "Watchpoints, separated by ';', added to the recommended set."),
    Setting("recommended", True, "Whether the recommended watchpoints are on."),
    Setting(
        "then", "note", "What a --watch does on a hit: note, pause, dump or stop.", ("note", "pause", "dump", "stop")
    ),
    Setting("memory_mb", 1024, "Memory the trainee may use for previous values, rings and buffers."),
    Setting("stats_mb", 2048, "Size of the statistics file after which fewer steps are kept."),
    Setting("pack_mb", 16384, "Size of the tensor pack after which nothing more is dumped."),
    Setting("dump", "", "Whole tensors to keep, separated by ';', like encoder.*:output@100:110."),
    Setting("dump_config", "", "A dump configuration in MindSpore's schema; empty takes MINDSPORE_DUMP_CONFIG."),
    Setting("dump_async", False, "Write dumped tensors from a thread of their own, through a buffer."),
    Setting("dump_buffer_mb", 256, "Memory of that buffer; never more."),
    Setting("dump_full", "wait", "When that buffer is full: wait for the disk, or drop and count.", ("wait", "drop")),
    Setting("dump_hits", 2, "Steps of which a watchpoint with 'then dump' keeps the tensors; 0 for no limit."),
    Setting("hits_per_watchpoint", 1000, "Hits kept of one watchpoint; later ones are counted."),
    Setting("strict", False, "Raise on an error inside misstep instead of counting it. For our own tests."),
    Setting(
        "on_nan",
        "note",
        "What to do at the first non-finite value: note, pause, dump or stop.",
        ("note", "pause", "dump", "stop"),
    ),
    Setting("pause_at_start", False, "Wait for a debugger before the first step."),
    Setting("hub", "", "Address of the hub to report to; set by misstep run."),
    Setting("token", "", "Secret shared with the hub; set by misstep run."),
    Setting(
        "grace_seconds", 30.0, "How long a paused training waits for a lost hub before it goes on; 0 waits for ever."
    ),
    Setting("heartbeat_seconds", 2.0, "How often a trainee tells the hub that it is alive."),
    Setting("replay", True, "Run the guilty step again, operator by operator, when the guard trips."),
    Setting("pynative", "", "Steps of a compiled MindSpore training to run in PyNative mode first, like 3:5."),
    Setting("record", True, "Keep a flight record of the last steps, which survives a killed process."),
    Setting("record_mode", 1, "When a flight record is exported: 1 when training fails, 2 also at a normal end."),
    Setting("record_dir", "", "Also export flight records to rank_N/rdr/ in this directory."),
    Setting("samples", True, "Look for the guilty samples of the batch after a replay."),
    Setting("skipped_share", 0.2, "Share of updates a gradient scaler may skip before it is told as a finding."),
    Setting("record_steps", 64, "Steps kept in the flight recorder."),
    Setting("record_mb", 64, "Memory of the flight recorder's ring."),
    Setting("capsule_mb", 512, "Largest capsule (weights, optimizer, batch) kept for a later replay."),
    Setting("capsules", "", "Further steps whose capsule is kept, like 100:110; those that go wrong are kept anyway."),
    Setting("capsule", "", "A capsule whose step this process runs first; set by misstep replay."),
    Setting("change", "", "Changes tried in this process, as JSON; set by misstep advise --apply."),
    Setting("compare_modes", 0, "Check compiled graphs against uncompiled code from this step on; 0 for never."),
    Setting("last_step", 0, "End the training after this step; 0 for never. Set by misstep advise --apply."),
    Setting("rehearse", "", "Have the first steps tell their memory instead, as JSON; set by misstep memory."),
    Setting("profile", "", "Steps that run under the framework's profiler, like 5:8; see misstep profile."),
    Setting("hang_seconds", 0.0, "Write a flight record when no step ends for this long; 0 for never."),
    Setting("knowledge", "", "Further files of error patterns for misstep open, separated by ':'."),
    Setting("force_queue", False, "Send CPU tensors down the accelerator's road. For our own tests."),
    Setting("share", False, "Let other users of this machine read runs; without it they are yours alone (0700, 0600)."),
    Setting("secrets", "", "Names of further variables, options and keys whose values are never written: pin,corp_*."),
    Setting("lang", "", "Language of messages: en or zh; empty for the locale's.", ("", "en", "zh")),
)

BY_NAME: dict[str, Setting] = {setting.name: setting for setting in SETTINGS}


class Settings:
    """The settings in force; `settings.budget` is a float, `settings.level` a string."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Value] = {setting.name: setting.default for setting in SETTINGS}
        self._given: set[str] = set(values or ())
        for name, value in (values or {}).items():
            self._values[name] = _checked(name, value)

    @classmethod
    def load(cls, **given: Any) -> Settings:
        """From the call, the environment, ./misstep.toml and the defaults, in this order."""
        values: dict[str, Any] = dict(_from_file(Path("misstep.toml")))
        for setting in SETTINGS:
            if setting.variable in os.environ:
                values[setting.name] = os.environ[setting.variable]
        values.update({name: value for name, value in given.items() if value is not None})
        return cls(values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._values:
            raise SettingError(f"no setting is called {name!r}{nearest(name, BY_NAME)}")
        return self._values[name]

    @property
    def given(self) -> frozenset[str]:
        """Names of the settings somebody chose, by call, environment or file."""
        return frozenset(self._given)

    def as_dict(self) -> dict[str, Value]:
        """Without the token: a run directory is shown to others."""
        return {name: value for name, value in self._values.items() if name != "token"}

    def environment(self) -> dict[str, str]:
        """What a child process needs to see the same settings.

        A setting put back to its default is among them: the child reads misstep.toml too and must not take that.
        """
        return {BY_NAME[name].variable: str(value) for name, value in self._values.items() if name in self._given}


def _checked(name: str, value: Any) -> Value:
    if name not in BY_NAME:
        raise SettingError(f"no setting is called {name!r}{nearest(name, BY_NAME)}")
    setting = BY_NAME[name]
    try:
        read = _read(value, setting.default)
    except (TypeError, ValueError):
        kind = type(setting.default).__name__
        raise SettingError(f"{name} (or {setting.variable}) is {value!r}, which is no {kind}: {setting.help}") from None
    if setting.choices and read not in setting.choices:
        raise SettingError(f"{name} is {value!r}; it is one of {', '.join(filter(None, setting.choices))}")
    if isinstance(read, (int, float)) and read < 0:
        raise SettingError(f"{name} is {value}; it is 0 or more: {setting.help}")
    return read


def _read(value: Any, default: Value) -> Value:
    if isinstance(default, bool):
        if isinstance(value, bool):
            return value
        word = str(value).strip().lower()
        if word in ("1", "true", "yes", "on"):
            return True
        if word in ("0", "false", "no", "off", ""):
            return False
        raise ValueError(word)
    if isinstance(default, int):
        return int(value)
    if isinstance(default, float):
        text = str(value).strip()
        number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        if not math.isfinite(number):
            raise ValueError(text)
        return number
    return str(value)


def _from_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise SettingError(f"cannot read {path}: {error}") from None
    return {name: value for name, value in table.items() if not isinstance(value, dict)}
