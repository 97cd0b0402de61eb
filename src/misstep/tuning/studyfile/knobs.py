"""System knobs as parameters: what makes a step fast or small, with ranges that this machine can run.

A knob is an ordinary parameter: its value goes into the command like any other, and the script decides what to do
with it. Only the range comes from here.
"""

from __future__ import annotations

import os
import subprocess
import sys

from misstep.tuning.studyfile.expression import Expression
from misstep.tuning.studyfile.study import Parameter

_PROBE = "import torch; a = torch.ones(64, 64, dtype=torch.{dtype}); (a @ a).sum().item()"
_PROBE_SECONDS = 120


def knob_parameter(name: str, knob: str, *, when: Expression | None, line: int) -> Parameter:
    """The parameter behind `{knob: workers}`."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if knob == "workers":
        return Parameter(name, low=0, high=2 * cores, kind="int", when=when, knob=knob, line=line)
    if knob == "threads":
        return Parameter(name, low=1, high=cores, kind="int", when=when, knob=knob, line=line)
    choices: dict[str, tuple[str | int | bool, ...]] = {
        "batch_size": (8, 16, 32, 64, 128, 256, 512),
        "bucket_mb": (1, 5, 10, 25, 50, 100),
        "compile": (False, True),
        "precision": ("float32", *usable_precisions()),
    }
    return Parameter(name, kind="choice", choice=choices[knob], when=when, knob=knob, line=line)


def usable_precisions() -> tuple[str, ...]:
    """The half precisions a matrix product survives here, each tried in a process of its own.

    In its own process, because a processor that lists an instruction it lacks kills with SIGILL.
    """
    return tuple(dtype for dtype in ("bfloat16", "float16") if _survives(dtype))


def _survives(dtype: str) -> bool:
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE.format(dtype=dtype)], capture_output=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
