"""What is worth knowing of a process before it trains (command, versions, git state; never the environment), and the
record that begins with it."""

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
from misstep.adapters.step.frame import Catalog
from misstep.core.graph import Edge, Node, TensorKey
from misstep.core.run import RunInfo
from misstep.settings import Settings
from misstep.store.runs import new_run_directory
from misstep.store.writing.writer import RunWriter


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


def begin_record(
    settings: Settings, adapters: Iterable[Adapter], *, rank: int, world_size: int
) -> tuple[RunWriter, RunInfo]:
    """A run directory for this process, or this rank's part of one."""
    directory = new_run_directory(settings.dir, settings.name)
    info = run_info(directory, settings, adapters, world_size=world_size)
    return RunWriter(directory, rank, info, stats_mb=settings.stats_mb, pack_mb=settings.pack_mb), info


def first_of_its_run() -> bool:
    """Whether `misstep run` started this process and none of its processes has recorded anything yet."""
    run = os.environ.get("MISSTEP_RUN", "")
    return bool(run) and next(Path(run).glob("rank-*"), None) is None


def write_news(writer: RunWriter, catalog: Catalog) -> None:
    """Nodes, tensors, edges and shapes met since the last time."""
    if not catalog.has_news:
        return
    for new in catalog.news():
        if isinstance(new, Node):
            writer.add_node(new)
        elif isinstance(new, TensorKey):
            writer.add_tensor(new)
        elif isinstance(new, Edge):
            writer.add_edge(new)
        else:
            writer.add_shape(new)


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
