"""The door into an examined command: called once its framework has been imported."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "MISSTEP_PROBE"
"""Where records are written."""


def attach_framework(framework: str) -> None:
    folder = os.environ.get(VARIABLE)
    if folder and framework == "pytorch":
        from misstep.migration.determinism.torch_probe import attach

        attach(Path(folder))
