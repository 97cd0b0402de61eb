"""This machine: versions, whether each framework works here, and the settings in force.

A framework is tried in a process of its own: a broken one may crash or print, and that must not be our end.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from misstep import __version__
from misstep.adapters.registry import BROKEN, frameworks
from misstep.sentences.cli import general as words
from misstep.settings import BY_NAME, Settings

TRIAL_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class FrameworkState:
    """Whether a framework can be used here, and if not, why."""

    version: str | None
    works: bool
    problem: str = ""


def environment_facts() -> dict[str, Any]:
    """What a report of a problem should begin with."""
    settings = Settings.load()
    return {
        "misstep": __version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "numpy": installed("numpy"),
        "kernels": kernels_backend(),
        "frameworks": try_frameworks(),
        "settings": settings.as_dict(),
        "changed_settings": {
            name: value for name, value in settings.as_dict().items() if value != BY_NAME[name].default
        },
    }


def installed(package: str) -> str | None:
    """The version of a package, without importing it."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def kernels_backend() -> str:
    """The instruction set of the native kernels, or numpy."""
    from misstep import kernels

    return str(kernels.backend())


def try_frameworks() -> dict[str, FrameworkState]:
    """Import each installed framework and compute something with it; all at once."""
    known = {one.package: one for one in frameworks()}
    versions = {name: installed(one.distribution or name) for name, one in known.items()}
    refused = {name: problem for name in known if (problem := _known_problem(name, versions[name]))}
    trials = {
        name: subprocess.Popen(
            [sys.executable, "-c", one.trial or f"import {name}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={name: value for name, value in os.environ.items() if name != "MISSTEP_ATTACH"},
        )
        for name, one in known.items()
        if versions[name] is not None and name not in refused
    }
    states = {}
    for name, version in versions.items():
        problem = _outcome(trials[name]) if name in trials else refused.get(name, "")
        states[name] = FrameworkState(version, works=version is not None and not problem, problem=problem)
    return states | {name: FrameworkState("?", works=False, problem=problem) for name, problem in BROKEN.items()}


def _known_problem(framework: str, version: str | None) -> str:
    numpy = installed("numpy") or "0"
    if framework == "mindspore" and version is not None and version.startswith("2.10") and not numpy.startswith("1."):
        return words.NUMPY_TOO_NEW(version=numpy)
    return ""


def _outcome(trial: subprocess.Popen[str]) -> str:
    """The last line a failed trial said; empty when it worked."""
    try:
        _, errors = trial.communicate(timeout=TRIAL_SECONDS)
    except subprocess.TimeoutExpired:
        trial.kill()
        trial.communicate()
        return f"no answer within {TRIAL_SECONDS:.0f} seconds"
    if trial.returncode == 0:
        return ""
    lines = errors.strip().splitlines()
    return lines[-1] if lines else f"exit code {trial.returncode}"
