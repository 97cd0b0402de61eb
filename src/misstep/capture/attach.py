"""The engine's door: what the shim calls once a framework has been imported.

Attaching only finds the seams. The session goes live at the first training event (a forward with gradients, a
backward, an optimizer step), so launchers, DataLoader workers and scripts that merely import torch leave no trace.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
from pathlib import Path
from typing import Any

from misstep.settings import BY_NAME, SETTINGS, Settings

SHIM = Path(__file__).resolve().parent / "shim"
"""The directory whose sitecustomize.py attaches; `misstep run` puts it at the front of PYTHONPATH."""

_LENT_PACKAGES = ("ml_dtypes", "msgspec")


def attach_framework(framework: str) -> None:
    """Watch everything this process trains with that framework."""
    # Here and not at the top: the parent process imports this module for SHIM alone.
    rehearsal = os.environ.get("MISSTEP_REHEARSE", "")
    if rehearsal:
        _rehearse(framework, rehearsal)
        return
    from misstep.adapters.registry import adapter_named
    from misstep.capture.process import session_for_process

    adapter = adapter_named(framework)
    session = session_for_process().use(adapter)
    if session.settings.change:
        _carry_out(framework, session.settings.change, getattr(adapter, "loaders", None))


def _rehearse(framework: str, told: str) -> None:
    """Nothing is recorded: the first steps only tell what memory they need."""
    try:
        module = importlib.import_module(f"misstep.adapters.{framework}.rehearsal")
    except ModuleNotFoundError:
        return  # whoever asked finds no answer, and says so
    module.begin(json.loads(told))
    changes = os.environ.get("MISSTEP_CHANGE", "")
    if changes:
        importlib.import_module(f"misstep.adapters.{framework}.trying").carry_out(json.loads(changes), lambda **_: None)


def _carry_out(framework: str, changes: str, loaders: Any) -> None:
    """Have the program meet changes that are being tried; what came of it is in the journal."""
    try:
        trying = importlib.import_module(f"misstep.adapters.{framework}.trying")
    except ModuleNotFoundError:
        return  # a framework of another package: nothing is carried out, and so nothing is told as carried out
    trying.carry_out(json.loads(changes), loaders.changed)


def child_environment(command: tuple[str, ...], settings: Settings, given: set[str], run: Path) -> dict[str, str]:
    """Our environment, the settings in force, and what makes every Python process attach."""
    ours = {setting.variable for setting in SETTINGS}
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    # What was given is passed on even at its default: misstep.toml may say otherwise, and the call comes first.
    asked = {BY_NAME[name].variable: str(getattr(settings, name)) for name in given}
    chosen = {**settings.environment(), **asked, "MISSTEP_COMMAND": shlex.join(command)}
    return environment_for_child({**inherited, **chosen}, run)


def environment_for_child(environment: dict[str, str], run: Path) -> dict[str, str]:
    """What a command needs in its environment so that every Python process in it attaches to this run."""
    from misstep.adapters.registry import frameworks  # here, once: entry points are not read in every process

    path = [part for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part and part != str(SHIM)]
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join([str(SHIM), *path]),
        "MISSTEP_ATTACH": "1",
        "MISSTEP_RUN": str(run.absolute()),
        "MISSTEP_PACKAGES": os.pathsep.join(_places_of(_LENT_PACKAGES)),
        "MISSTEP_FRAMEWORKS": " ".join(f"{one.package}={one.name}" for one in frameworks()),
    }


def _places_of(packages: tuple[str, ...]) -> list[str]:
    """The directories our small dependencies live in, for a command whose own environment lacks them."""
    places: dict[str, None] = {}
    for package in packages:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            places[str(Path(spec.origin).resolve().parent.parent)] = None
    return list(places)
