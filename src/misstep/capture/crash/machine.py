"""What the machine says of this process: memory in use and its limits, and where numpy keeps its random numbers."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np

_PAGE = os.sysconf("SC_PAGE_SIZE")
MT19937_BYTES = 624 * 4 + 4
"""The state of numpy's usual generator: 624 words and the position among them."""


def resident_bytes() -> int:
    """Memory of this process that is really in use; 0 where the kernel does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def numpy_generator() -> int:
    """Where numpy's global generator keeps its state; 0 when it is not the usual one.

    Its address, because a copy of the state costs more than all the rest of a step's record.
    """
    generator = getattr(getattr(np.random, "mtrand", None), "_rand", None)
    bits: Any = getattr(generator, "_bit_generator", None)
    return int(bits.ctypes.state_address) if type(bits).__name__ == "MT19937" else 0


def peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def memory_limits() -> dict[str, int]:
    """What may end this process for want of memory: the machine, its container, its own limit."""
    limits: dict[str, int] = {}
    try:
        limits["machine"] = os.sysconf("SC_PHYS_PAGES") * _PAGE
    except (OSError, ValueError):
        pass
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(file).read_text().strip()
        except OSError:
            continue
        if text.isdecimal() and int(text) < 1 << 60:
            limits["container"] = int(text)
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        limits["address space"] = soft
    return limits
