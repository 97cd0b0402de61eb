"""Folders for raw files about compiled code: MindSpore writes there, the trainee reads, and nothing is left behind."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

_NAME = "compiled-"
"""How the name of such a folder begins in a run directory."""
_ELSEWHERE = "misstep-compiled-"
"""The same among temporary files."""
_UNFIT = re.compile(r"[^A-Za-z0-9/_-]")
"""MindSpore refuses any other letter in the path of a dump."""


def scratch_folder(home: Path) -> Path:
    """A folder in the run directory for raw files; a link to one elsewhere when MindSpore would refuse its name."""
    folder = home.absolute() / f"{_NAME}{os.getpid()}"
    if _UNFIT.search(str(folder)):
        folder.symlink_to(tempfile.mkdtemp(prefix=_ELSEWHERE))
    else:
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def remove_folder(folder: Path) -> None:
    """Remove one scratch folder, and what it links to."""
    if not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)
        return
    elsewhere = folder.resolve()
    if elsewhere.name.startswith(_ELSEWHERE):
        shutil.rmtree(elsewhere, ignore_errors=True)
    folder.unlink(missing_ok=True)


def remove_scratch(run: Path) -> None:
    """Remove the raw files of processes that were killed before they could tidy up."""
    for folder in run.glob(f"{_NAME}*"):
        remove_folder(folder)
