"""A change that can be tried without touching the user's files: what it is called, how a process is told of it, and
the line to write when it proved good.

    Change("loader", {"num_workers": 3}, source=…)      carried out where DataLoader is called, by the adapter
    Change("environment", {"OMP_NUM_THREADS": "1"})     set for the command
    Change("knob", {"autocast": "bfloat16"})            carried out once the framework is imported
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["loader", "environment", "knob"]


@dataclass(frozen=True, slots=True)
class Change:
    kind: Kind
    values: dict[str, Any]
    before: dict[str, Any] = field(default_factory=dict)
    """What the values were, as far as they are known."""
    source: dict[str, Any] | None = None
    """The user's line it belongs to: file, line, code; of a loader also the how-manieth made there."""

    @property
    def name(self) -> str:
        """'num_workers 1 → 3', 'OMP_NUM_THREADS=1', 'autocast=bfloat16'."""
        if self.kind == "loader":
            return ", ".join(f"{name} {self.before.get(name)} → {value}" for name, value in self.values.items())
        return ", ".join(f"{name}={value}" for name, value in self.values.items())


def as_setting(changes: Iterable[Change]) -> str:
    """What an adapter reads: loaders by their line, knobs by name."""
    told: dict[str, Any] = {"loaders": [], "knobs": {}}
    for change in changes:
        if change.kind == "loader":
            told["loaders"].append({"at": change.source, "arguments": change.values})
        elif change.kind == "knob":
            told["knobs"].update(change.values)
    return json.dumps(told) if told["loaders"] or told["knobs"] else ""


def as_environment(changes: Iterable[Change]) -> dict[str, str]:
    return {
        name: str(value) for change in changes if change.kind == "environment" for name, value in change.values.items()
    }
