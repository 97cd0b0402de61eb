"""What MindSpore is asked to write down about compiled code: which steps, and where."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from misstep.core.steps import parse_steps

VARIABLE = "MINDSPORE_DUMP_CONFIG"
NEVER = "2000000000"
"""An iteration no training reaches: MindSpore then writes graphs and no data."""
_NET = "net"
_SPREAD = 2
"""MindSpore counts the runs of each graph, and the second graph of a step begins at 1: look a little to both sides."""


def iterations_for(steps: str) -> str:
    """MindSpore's iterations for the steps of a user, a little wider on both sides.

    >>> iterations_for("5,10:12")
    '2-6|7-13'
    """
    chosen = parse_steps(steps)
    if chosen is None or any(last >= 2**31 for _, last in chosen):
        return "all"
    return "|".join(f"{max(first - 1 - _SPREAD, 0)}-{last - 1 + _SPREAD}" for first, last in chosen)


def dump_config(path: Path, iterations: str) -> dict[str, Any]:
    """The contents of a dump configuration: every operator, inputs and outputs, synchronously."""
    return {
        "common_dump_settings": {
            "op_debug_mode": 0,
            "dump_mode": 0,
            "path": str(path),
            "net_name": _NET,
            "iteration": iterations,
            "saved_data": "tensor",
            "input_output": 0,
            "kernels": [],
            "support_device": [0],
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }


def path_in(config: str) -> Path | None:
    """Where a user's own dump goes."""
    try:
        settings = json.loads(Path(config).read_text(encoding="utf-8"))
        path = settings["common_dump_settings"]["path"] or os.environ["MS_DIAGNOSTIC_DATA_PATH"] + "/debug_dump"
        return Path(path)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # MindSpore will say what is wrong with it
