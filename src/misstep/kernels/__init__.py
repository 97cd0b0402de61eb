"""One pass over memory: what a tensor holds, what changed in it, how close two are.

    summarize(array)["std"]                          any numpy array, any layout
    summarize_memory(address, count, dtype, out, 0)  the hot call: memory in, a row of a SUMMARY table out
    summarize_many(addresses, counts, dtypes, out)   thousands of tensors in one call

Two engines do the same work: a small native one (C++, the machine's best instruction set) and a numpy twin for where
it could not be built. MISSTEP_KERNELS=native|numpy chooses, MISSTEP_ISA=plain|avx2|avx512 caps the instruction set.
"""

from __future__ import annotations

import os

from misstep.kernels import _numpy
from misstep.kernels._arrays import ArrayKernels, code_of
from misstep.kernels.records import (
    CHANGE,
    COMPARE,
    DTYPES,
    ITEM_BYTES,
    SUMMARY,
    Engine,
    exponent_bins,
    exponent_range,
)

__all__ = [
    "CHANGE",
    "COMPARE",
    "DTYPES",
    "ITEM_BYTES",
    "SUMMARY",
    "backend",
    "change",
    "change_memory",
    "clock",
    "code_of",
    "compare",
    "compare_memory",
    "digest",
    "digest_bytes",
    "digest_many",
    "exponent_bins",
    "exponent_histogram",
    "exponent_range",
    "exponents_memory",
    "finish_rows",
    "first_bad",
    "nonfinite_many",
    "seal_rows",
    "step_line",
    "summarize",
    "summarize_many",
    "summarize_memory",
    "summarize_strided",
]


def _engine() -> tuple[Engine, str]:
    wanted = os.environ.get("MISSTEP_KERNELS", "")
    if wanted not in ("", "native", "numpy"):
        raise ValueError(f"MISSTEP_KERNELS={wanted} is not a kind of kernels; native and numpy are")
    if wanted != "numpy":
        try:
            from misstep.kernels import _native
        except ImportError:
            if wanted == "native":
                raise
        else:
            return _native, f"native ({_native.instruction_set()})"
    return _numpy, "numpy"


_chosen, _name = _engine()
_arrays = ArrayKernels(_chosen)

# Bound once: a call costs what the engine's function costs.
summarize_memory = _chosen.summarize_memory
summarize_strided = _chosen.summarize_strided
summarize_many = _chosen.summarize_many
nonfinite_many = _chosen.nonfinite_many
digest = _chosen.digest
digest_bytes = _chosen.digest_bytes
digest_many = _chosen.digest_many
change_memory = _chosen.change_memory
compare_memory = _chosen.compare_memory
exponents_memory = _chosen.exponents_memory
# A module built from an earlier checkout has no rows of steps yet; the twin has.
finish_rows = getattr(_chosen, "finish_rows", _numpy.finish_rows)
first_bad = getattr(_chosen, "first_bad", _numpy.first_bad)
seal_rows = getattr(_chosen, "seal_rows", _numpy.seal_rows)
step_line = getattr(_chosen, "step_line", _numpy.step_line)
clock = getattr(_chosen, "Clock", None)
"""The native clock of a step; None where it was not built (adapters/timing/clock.py has its twin)."""
summarize = _arrays.summarize
change = _arrays.change
compare = _arrays.compare
exponent_histogram = _arrays.exponent_histogram


def backend() -> str:
    """Which engine does the work here: "native (avx2)" or "numpy"."""
    return _name
