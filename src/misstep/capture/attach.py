"""The engine's door: what the shim calls once a framework has been imported.

Attaching only finds the seams. The session goes live at the first training event (a forward with gradients, a
backward, an optimizer step), so launchers, DataLoader workers and scripts that merely import torch leave no trace.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Literal

Framework = Literal["pytorch", "mindspore"]

SHIM = Path(__file__).resolve().parent / "shim"
"""The directory whose sitecustomize.py attaches; `misstep run` puts it at the front of PYTHONPATH."""

SCRATCH = "compiled-"
"""In a run directory, the beginning of the name of a folder for raw files about compiled code."""
ELSEWHERE = "misstep-compiled-"
"""The same among temporary files, where a run's own name does not suit MindSpore."""

_LENT_PACKAGES = ("ml_dtypes", "msgspec")


def attach_framework(framework: Framework) -> None:
    """Watch everything this process trains with that framework."""
    # Here and not at the top: the parent process imports this module for SHIM alone.
    from misstep.adapters.base import adapter_named
    from misstep.capture.process import session_for_process

    session = session_for_process()
    if framework == "mindspore":
        from misstep.capture.mindspore import prepare_for_mindspore

        prepare_for_mindspore(session)
    session.use(adapter_named(framework))


def environment_for_child(environment: dict[str, str], run: Path) -> dict[str, str]:
    """What a command needs in its environment so that every Python process in it attaches to this run."""
    path = [part for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part and part != str(SHIM)]
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join([str(SHIM), *path]),
        "MISSTEP_ATTACH": "1",
        "MISSTEP_RUN": str(run.absolute()),
        "MISSTEP_PACKAGES": os.pathsep.join(_places_of(_LENT_PACKAGES)),
    }


def remove_scratch(run: Path) -> None:
    """Raw files of processes that were killed before they could tidy up."""
    for folder in run.glob(f"{SCRATCH}*"):
        remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """A folder of raw files; or, where the run's own name did not suit MindSpore, the link to one elsewhere."""
    if not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)
        return
    elsewhere = folder.resolve()
    if elsewhere.name.startswith(ELSEWHERE):
        shutil.rmtree(elsewhere, ignore_errors=True)
    folder.unlink(missing_ok=True)


def _places_of(packages: tuple[str, ...]) -> list[str]:
    """The directories our small dependencies live in, for a command whose own environment lacks them."""
    places: dict[str, None] = {}
    for package in packages:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            places[str(Path(spec.origin).resolve().parent.parent)] = None
    return list(places)
