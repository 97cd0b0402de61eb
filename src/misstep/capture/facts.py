"""What is worth knowing of a process before it trains: command, versions, git state; never the environment."""

from __future__ import annotations

import os
import platform
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from misstep.adapters.base import Adapter
from misstep.core.run import RunInfo
from misstep.settings import Settings


def run_info(directory: Path, settings: Settings, adapters: Iterable[Adapter], *, world_size: int = 1) -> RunInfo:
    """The contents of run.json for this process."""
    import numpy

    from misstep import __version__

    versions = {"misstep": __version__, "python": platform.python_version(), "numpy": numpy.__version__}
    for adapter in adapters:
        versions.update(adapter.versions())
    return RunInfo(
        name=directory.name,
        command=tuple(_command()),
        started=time.time(),
        directory=os.getcwd(),
        host=socket.gethostname(),
        pid=os.getpid(),
        user=os.environ.get("USER", ""),
        versions=versions,
        git=_git(),
        settings=settings.as_dict(),
        world_size=world_size,
    )


def _command() -> list[str]:
    """As it was typed: `python train.py --lr 0.1`."""
    typed = os.environ.get("MISSTEP_COMMAND", "")  # set by misstep run: torchrun …, not the worker it started
    if typed:
        return shlex.split(typed)
    given = list(getattr(sys, "orig_argv", None) or [sys.executable, *sys.argv])
    return [os.path.basename(given[0]), *given[1:]] if given else []


def _git() -> dict[str, str]:
    """Commit and whether the tree was changed, when the program lies in a repository."""
    try:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=2)
        if commit.returncode != 0:
            return {}
        status = subprocess.run(["git", "status", "--porcelain", "-uno"], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"commit": commit.stdout.strip(), "changed": "yes" if status.stdout.strip() else "no"}
