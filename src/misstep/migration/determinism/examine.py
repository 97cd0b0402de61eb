"""The runs: twice as the command is; the same with other threads when both were equal, with fixed hashes when the
order of a set is suspected."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from misstep.errors import MigrationError
from misstep.migration.determinism.compare import Difference, Stage, first_difference, fixed
from misstep.migration.determinism.record import Record, read_record
from misstep.sentences import porting as sentences

Environment = Callable[[Mapping[str, str], Path], dict[str, str]]
"""What makes every Python process of a command write its record into a folder."""
THREADS = ("1", "3")


@dataclass(slots=True)
class Examined:
    """What was found out about a command."""

    command: list[str]
    runs: int = 0
    fixed: dict[Stage, bool] = field(default_factory=dict)
    difference: Difference | None = None
    threads: bool | None = None
    """Whether another number of threads changes nothing; None when nobody tried."""
    steps: int = 0
    operations: int = 0

    @property
    def deterministic(self) -> bool:
        return self.difference is None


def examine(command: Sequence[str], environment: Environment, *, threads: bool = True) -> Examined:
    """Run a command and say whether it does the same each time."""
    found = Examined(list(command))
    with tempfile.TemporaryDirectory(prefix="misstep-determinism-") as home:
        runner = _Runner(found, environment, Path(home))
        one, other = runner.run({}), runner.run({})
        found.fixed, found.difference = fixed(one, other), first_difference(one, other)
        found.steps, found.operations = len(one.gradients), len(one.operations)
        if found.difference is not None and found.difference.cause == "hash":
            _suspect_hashes(found, runner)
        elif found.difference is None and threads:
            few, many = runner.run(_threads(THREADS[0])), runner.run(_threads(THREADS[1]))
            apart = first_difference(few, many)
            found.threads = apart is None
            if apart is not None:
                found.difference = Difference(apart.stage, "threads", apart.detail, apart.where)
    return found


def _suspect_hashes(found: Examined, runner: _Runner) -> None:
    """With the order of sets fixed, two runs that were different are the same: then it was that."""
    assert found.difference is not None
    calm = {"PYTHONHASHSEED": "0"}
    if first_difference(runner.run(calm), runner.run(calm)) is not None:
        found.difference = Difference(found.difference.stage, "unknown")


def _threads(count: str) -> dict[str, str]:
    return dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), count)


class _Runner:
    def __init__(self, found: Examined, environment: Environment, home: Path) -> None:
        self.found, self.environment, self.home = found, environment, home

    def run(self, changes: Mapping[str, str]) -> Record:
        self.found.runs += 1
        folder = self.home / f"run{self.found.runs}"
        folder.mkdir()
        given = self.environment({**os.environ, **changes}, folder)
        try:
            done = subprocess.run(self.found.command, env=given, capture_output=True, text=True, check=False)
        except OSError as wrong:
            raise MigrationError(
                sentences.NO_COMMAND.of(command=self.found.command[0], why=wrong.strerror or str(wrong))
            ) from None
        if done.returncode:
            tail = (done.stderr.strip().splitlines() or [""])[-1]
            raise MigrationError(sentences.COMMAND_FAILED.of(code=done.returncode, tail=tail))
        record = read_record(folder)
        if record is None:
            raise MigrationError(sentences.NO_TRAINING.of(command=" ".join(self.found.command)))
        return record
