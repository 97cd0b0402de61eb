"""misstep finds the step where training went wrong.

    import misstep
    session = misstep.attach(model, optimizer)      # the training loop stays as it is
    run = misstep.open_run("missteps/try-7")        # live or finished
    debug = misstep.connect("last")                 # pause, step and look, from another process

The public names are looked up when they are first used: importing misstep imports nothing else.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misstep.capture.process import attach
    from misstep.capture.session import Session
    from misstep.client import connect
    from misstep.compare.layers import diff
    from misstep.compare.offline import offline
    from misstep.core.address import Address
    from misstep.diagnosis.diagnose import assert_healthy, diagnose
    from misstep.errors import MisstepError
    from misstep.store.reading.reader import Run, open_run
    from misstep.train.printing import Print
    from misstep.train.seed import fix_randomness
    from misstep.tuning.api import tune
    from misstep.tuning.reporting import report

__version__ = "0.1.0"

__all__ = [
    "Address",
    "MisstepError",
    "Print",
    "Run",
    "Session",
    "__version__",
    "assert_healthy",
    "attach",
    "connect",
    "diagnose",
    "diff",
    "fix_randomness",
    "offline",
    "open_run",
    "report",
    "tune",
]

_HOMES = {
    "Address": "misstep.core.address",
    "MisstepError": "misstep.errors",
    "Print": "misstep.train.printing",
    "Run": "misstep.store.reading.reader",
    "Session": "misstep.capture.session",
    "assert_healthy": "misstep.diagnosis.diagnose",
    "attach": "misstep.capture.process",
    "connect": "misstep.client",
    "diagnose": "misstep.diagnosis.diagnose",
    "diff": "misstep.compare.layers",
    "fix_randomness": "misstep.train.seed",
    "offline": "misstep.compare.offline",
    "open_run": "misstep.store.reading.reader",
    "report": "misstep.tuning.reporting",
    "tune": "misstep.tuning.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'misstep' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
