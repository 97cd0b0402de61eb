"""A few steps under MindSpore's profiler: operators with their shapes, and in graph mode the cell they belong to.

What it writes is brought into the form torch's profiler has, so that one reader serves both. Lines of the program it
does not tell.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore.profiler as profiler


class Profiling:
    """One stretch of steps."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="misstep-profile-")
        self._profile: Any = profiler.profile(
            activities=[profiler.ProfilerActivity.CPU],
            start_profile=False,
            on_trace_ready=profiler.tensorboard_trace_handler(self._folder.name),
        )

    def start(self) -> None:
        self._profile.start()

    def stop(self, path: Path) -> None:
        """End it, and write what was seen in Chrome's format."""
        with contextlib.redirect_stdout(sys.stderr):  # it tells of its progress, in the user's output
            self._profile.stop()
        folder = Path(self._folder.name)
        shapes = dict(pair for file in folder.rglob("cpu_framework_*.txt") for pair in _shapes(file))
        events = [
            _event(one, shapes)
            for file in folder.rglob("trace_view.json")
            for one in json.loads(file.read_text(encoding="utf-8"))
            if one.get("ph") == "X"
        ]
        path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
        self._folder.cleanup()


def _event(told: dict[str, Any], shapes: dict[str, list[list[int]]]) -> dict[str, Any]:
    full = str(told["name"])
    *scope, name = full.split("/")
    cells = [part for part in scope if part not in ("Default", "Gradients")]
    phase = "backward" if "Gradients" in scope else ""
    args = {"Input Dims": shapes.get(name, []), "module": ".".join(cells), "phase": phase}
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name.rpartition("-op")[0] or name,
        "pid": told["pid"],
        "tid": told["tid"],
        "ts": float(told["ts"]),
        "dur": float(told["dur"]),
        "args": args,
    }


def _shapes(file: Path) -> Iterator[tuple[str, list[list[int]]]]:
    """(operator, shapes of its inputs) of every line: BiasAdd;BiasAdd-op0;3334417815;input_1:[4, 16];input_2:[16];"""
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        parts = line.split(";")
        if len(parts) > 3 and parts[1]:
            told = [part.partition(":")[2] for part in parts[3:] if part.startswith("input_")]
            yield parts[1], [json.loads(shape) for shape in told if shape.startswith("[")]
