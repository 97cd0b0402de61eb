"""One place for how a program runs, with MindSpore's names and the nearest meaning on either framework.

    set_context(mode=GRAPH_MODE)                        whole graphs      MindSpore: graph mode · torch: compiled
    set_context(mode=PYNATIVE_MODE)                     line by line      MindSpore: PyNative · torch: nothing compiled
    set_context(env_config_path="mindspore_config.json")

A setting is kept here, and told to every framework the program has imported by then; `MEANINGS` says what each one
does on torch. Import the framework first.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from misstep.capture.crash.envconfig import EnvConfig, RecorderConfig, env_config, use_env_config
from misstep.errors import SettingError, nearest

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "EnvConfig",
    "RecorderConfig",
    "env_config",
    "get_context",
    "set_context",
]

GRAPH_MODE: Final = 0
PYNATIVE_MODE: Final = 1


@dataclass(frozen=True, slots=True)
class Meaning:
    """A setting of `set_context`: its kind, where it starts, and what it does on torch."""

    name: str
    kinds: tuple[type, ...]
    default: Any
    on_torch: str
    choices: tuple[Any, ...] = ()


MEANINGS: tuple[Meaning, ...] = (
    Meaning(
        "mode",
        (int,),
        PYNATIVE_MODE,
        "GRAPH_MODE compiles the network of a Model made afterwards; PYNATIVE_MODE runs everything eagerly, also what"
        " the program compiles itself (torch.compiler.set_stance)",
        (GRAPH_MODE, PYNATIVE_MODE),
    ),
    Meaning(
        "jit_level",
        (str,),
        "",
        "in graph mode: O0 keeps operators apart (aot_eager), O1 fuses them (inductor), O2 tunes as well",
        ("", "O0", "O1", "O2"),
    ),
    Meaning("device_target", (str,), "CPU", "CPU, or GPU for tensors made afterwards", ("CPU", "GPU", "Ascend")),
    Meaning("device_id", (int,), 0, "the GPU for tensors made afterwards"),
    Meaning("save_graphs", (bool, int), 0, "in graph mode: writes each compiled graph as readable Python"),
    Meaning("save_graphs_path", (str, os.PathLike), ".", "where graphs are written, below rank_N/graphs"),
    Meaning("env_config_path", (str, os.PathLike), "", "the recorder and memory reuse, from mindspore_config.json"),
    Meaning("print_file_path", (str, os.PathLike), "", "Print writes here as well; read it with parse_print"),
    Meaning("deterministic", (str,), "OFF", "ON: torch.use_deterministic_algorithms", ("ON", "OFF")),
    Meaning("runtime_num_threads", (int,), 0, "torch.set_num_threads; 0 leaves it alone"),
    Meaning("pynative_synchronize", (bool,), False, "nothing on a CPU, where every operator is waited for anyway"),
    Meaning("memory_optimize_level", (str,), "O0", "nothing; memory reuse is switched by sys.mem_reuse", ("O0", "O1")),
    Meaning("max_call_depth", (int,), 1000, "nothing; Python has sys.setrecursionlimit"),
)
BY_NAME: dict[str, Meaning] = {meaning.name: meaning for meaning in MEANINGS}


def set_context(**settings: Any) -> None:
    """Choose how programs run from here on.

    >>> set_context(mode=GRAPH_MODE, save_graphs=True, save_graphs_path="./graphs")
    >>> set_context(env_config_path="./mindspore_config.json")
    """
    # Everything is checked before anything takes effect: half a configuration is worse than none.
    checked = {name: _checked(name, value) for name, value in settings.items()}
    before = dict(_given)
    try:
        if checked.get("env_config_path"):
            _apply_memory_reuse(use_env_config(checked["env_config_path"]))
        _given.update(checked)
        for framework in ("torch", "mindspore"):
            if framework in sys.modules:
                import_module(f"misstep.train.context.{framework}").apply(checked)
    except Exception:
        _given.clear()
        _given.update(before)
        raise


def get_context(name: str) -> Any:
    """The value of one setting: as set here, else as the framework has it, else the default."""
    if name not in BY_NAME:
        raise SettingError(f"set_context has no {name!r}{nearest(name, BY_NAME)}")
    if name in _given:
        return _given[name]
    if name == "mode" and "mindspore" in sys.modules:
        return import_module("misstep.train.context.mindspore").mode()
    return BY_NAME[name].default


def is_set(name: str) -> bool:
    """Whether the program has said anything about this setting."""
    return name in _given


def reset_context() -> None:
    """Forget what was set; frameworks keep what they were told."""
    _given.clear()


_given: dict[str, Any] = {}


def _checked(name: str, value: Any) -> Any:
    if name not in BY_NAME:
        raise SettingError(f"set_context has no {name!r}{nearest(name, BY_NAME)}")
    meaning = BY_NAME[name]
    wrong_kind = not isinstance(value, meaning.kinds) or (isinstance(value, bool) and bool not in meaning.kinds)
    if wrong_kind:
        kinds = " or ".join(kind.__name__ for kind in meaning.kinds)
        raise SettingError(f"set_context: {name} is {value!r}; it takes {kinds}")
    if meaning.choices and value not in meaning.choices:
        if name == "mode":
            raise SettingError(f"set_context: mode is {value!r}; it is GRAPH_MODE (0) or PYNATIVE_MODE (1)")
        listed = ", ".join(repr(choice) for choice in meaning.choices if choice != "")
        raise SettingError(f"set_context: {name} is {value!r}; it is one of {listed}")
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _apply_memory_reuse(config: EnvConfig) -> None:
    from misstep.train.memory import set_memory_reuse

    set_memory_reuse(config.mem_reuse)
