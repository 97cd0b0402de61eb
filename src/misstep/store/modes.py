"""Who may read a run: its owner alone, unless the setting `share` says otherwise.

A run holds weights, batches, variables and command lines. Its directory lets nobody else in, so that what any library
writes into it is private too.
"""

from __future__ import annotations

from pathlib import Path

from misstep.errors import MisstepError
from misstep.settings import Settings


def _shared() -> bool:
    try:
        return bool(Settings.load().share)
    except MisstepError:  # told elsewhere; in doubt nobody else may read
        return False


def directory_mode() -> int:
    """Of a run's own directory."""
    return 0o755 if _shared() else 0o700


def make_run_directory(run: Path) -> None:
    """Make a run's directory, and those above it; nothing when it is there."""
    try:
        run.mkdir(mode=directory_mode(), exist_ok=True)
    except FileNotFoundError:
        run.parent.mkdir(parents=True, exist_ok=True)
        run.mkdir(mode=directory_mode(), exist_ok=True)


def file_mode() -> int:
    return 0o644 if _shared() else 0o600
