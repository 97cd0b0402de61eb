"""What one run of a command left behind: digests, in the order things happened."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Operation:
    """One operator: what went in, what came out, and where it was called."""

    name: str
    given: str
    made: str
    where: str
    settings: str = ""
    """Its arguments that are no tensors."""
    backward: bool = False


@dataclass(slots=True)
class Record:
    """One training process."""

    weights: dict[str, str] = field(default_factory=dict)
    inputs: list[list[str]] = field(default_factory=list)
    """For each pass through the network, the digests of its samples."""
    operations: list[Operation] = field(default_factory=list)
    gradients: list[dict[str, str]] = field(default_factory=list)
    generators: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Generator → its state when the framework was imported, and at the first pass."""
    seed: int | None = None
    workers: int = 0
    shuffled: bool = False
    threads: int = 0

    @property
    def used(self) -> list[str]:
        """The generators somebody drew from, or seeded, before the first pass."""
        return [name for name, (before, after) in self.generators.items() if before != after]


def read_record(folder: Path) -> Record | None:
    """The record of the process that trained; None when none did."""
    found = [record for path in sorted(folder.glob("probe-*.jsonl")) if (record := _read(path)).inputs]
    return max(found, key=lambda one: len(one.gradients), default=None)


def _read(path: Path) -> Record:
    record = Record()
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            event: dict[str, Any] = json.loads(line)
        except ValueError:
            continue  # the last line of a process that was ended
        kind = event.pop("event")
        if kind == "weights":
            record.weights = event["digests"]
        elif kind == "inputs":
            record.inputs.append(event["samples"])
        elif kind == "op":
            record.operations.append(Operation(**event))
        elif kind == "gradients":
            record.gradients.append(event["digests"])
        elif kind == "generators":
            record.generators = {name: (one[0], one[1]) for name, one in event["states"].items()}
            record.seed, record.threads = event["seed"], event["threads"]
        elif kind == "loader":
            record.workers = max(record.workers, event["workers"])
            record.shuffled = record.shuffled or event["shuffle"]
    return record
