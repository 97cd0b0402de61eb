"""What misstep loads into somebody's training process: little, never a web framework, Optuna or the CLI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import misstep

NEVER_IN_A_TRAINEE = {"click", "httpx", "optuna", "rich", "starlette", "uvicorn", "websockets"}
SOURCE = Path(misstep.__file__).parents[1]


def modules_after(statements: str) -> set[str]:
    """The top-level modules, and those of misstep, that a fresh interpreter holds after these statements."""
    code = f"{statements}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_misstep_imports_no_other_part_of_it_and_no_numpy() -> None:
    loaded = modules_after("import misstep")
    assert {name for name in loaded if name.startswith("misstep")} == {"misstep"}
    assert "numpy" not in loaded


def test_a_trainee_loads_neither_hub_nor_command_line_nor_optuna() -> None:
    loaded = modules_after("import misstep; misstep.attach; misstep.open_run")
    assert not NEVER_IN_A_TRAINEE & loaded
    assert not {name for name in loaded if name.startswith(("misstep.cli", "misstep.hub", "misstep.tuning"))}


def test_looking_at_a_public_name_imports_no_framework() -> None:
    assert not {"torch", "mindspore"} & modules_after("import misstep; misstep.attach; misstep.open_run")
