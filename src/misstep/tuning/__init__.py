"""Hyper-parameter tuning: a study file becomes trials, every trial an ordinary run, Optuna proposes the values.

    study file ─► search space ─► worker: ask ─► trial (a command under misstep) ─► tell ─► storage shared by workers

The worker reads a trial's run directory while it is written, so a trial is ended for a NaN, an error, a loss that
runs away or a curve that falls behind, with no change to the script.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misstep.tuning.api import Result, Tuner
    from misstep.tuning.trial.hyperconfig import HyperConfig

__all__ = ["HyperConfig", "Result", "Tuner"]

_HOMES = {"HyperConfig": "trial.hyperconfig", "Result": "api", "Tuner": "api"}


def __getattr__(name: str) -> Any:
    """Looked up when first used: a trial needs HyperConfig and nothing else."""
    if name not in _HOMES:
        raise AttributeError(f"module 'misstep.tuning' has no attribute {name!r}")
    return getattr(importlib.import_module(f"misstep.tuning.{_HOMES[name]}"), name)
