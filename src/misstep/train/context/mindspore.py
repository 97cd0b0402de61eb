"""`set_context` on MindSpore: the same names, handed on where MindSpore still listens.

Some of them are deprecated there and warn on every call; those go to what replaced them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import mindspore as ms

from misstep.errors import SettingError

_HANDED_ON = ("mode", "device_target", "device_id", "max_call_depth", "env_config_path")


def apply(settings: Mapping[str, Any]) -> None:
    """Tell MindSpore what was just set."""
    handed_on = {name: settings[name] for name in _HANDED_ON if settings.get(name) not in (None, "")}
    if handed_on:
        ms.set_context(**handed_on)
    if settings.get("jit_level"):
        ms.set_context(jit_config={"jit_level": settings["jit_level"]})
    if "save_graphs" in settings:
        os.environ["MS_DEV_SAVE_GRAPHS"] = str(int(settings["save_graphs"]))
    if "save_graphs_path" in settings:
        os.environ["MS_DEV_SAVE_GRAPHS_PATH"] = str(settings["save_graphs_path"])
    if "deterministic" in settings:
        _set_deterministic(settings["deterministic"])
    if settings.get("runtime_num_threads"):
        ms.device_context.cpu.op_tuning.threads_num(settings["runtime_num_threads"])
    if settings.get("pynative_synchronize"):
        ms.runtime.launch_blocking()


def _set_deterministic(word: str) -> None:
    if ms.get_context("deterministic") == word:
        return
    try:
        ms.set_deterministic(word == "ON")
    except RuntimeError:
        raise SettingError(f"MindSpore sets determinism once in a process; it cannot be turned {word} now") from None


def mode() -> int:
    """Graph (0) or PyNative (1), as MindSpore has it."""
    return int(ms.get_context("mode"))
