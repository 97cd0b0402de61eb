"""A study as facts: what is searched, how a trial is run, what is optimized."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from misstep.tuning.studyfile.expression import Expression
from misstep.tuning.studyfile.words import PRUNE_ON

Goal = Literal["minimize", "maximize"]
Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """One thing that is searched: a range of numbers, or a choice."""

    name: str
    low: float = 0.0
    high: float = 0.0
    kind: Literal["float", "int", "choice"] = "float"
    log: bool = False
    step: float | None = None
    choice: tuple[Value, ...] = ()
    decimal: int | None = None
    when: Expression | None = None
    """It exists only when this holds of the parameters before it."""
    knob: str = ""
    prior: str = ""
    """range_test: short runs show first where it is likely to lie."""
    line: int = 1


def exists(parameter: Parameter, values: Mapping[str, Any]) -> bool:
    """Whether a parameter exists, given the values of those above it."""
    if parameter.when is None:
        return True
    try:
        return bool(parameter.when(values))
    except KeyError:
        return False  # it hangs on one that does not exist itself


@dataclass(frozen=True, slots=True)
class Target:
    """One number that is optimized, and where it is read."""

    name: str
    goal: Goal = "minimize"
    group: str = ""
    reduce: Literal["last", "min", "max", "mean"] = "last"
    pattern: str = ""
    line: int = 1


@dataclass(frozen=True, slots=True)
class Chosen:
    """A sampler or a pruner of Optuna by its name, with its arguments."""

    name: str
    args: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    line: int = 1


@dataclass(frozen=True, slots=True)
class Limits:
    """What one trial may take."""

    timeout: float | None = None
    steps: int | None = None
    memory_mb: float | None = None
    retries: int = 0
    backoff: float = 5.0
    gpus: int = 0
    cpus: int = 0


@dataclass(frozen=True, slots=True)
class Study:
    """Everything a study file says."""

    name: str
    command: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    targets: tuple[Target, ...]
    optional: tuple[tuple[int, int], ...] = ()
    """Parts of the command, first and behind the last, that are left out while a parameter in them does not exist."""
    tuner: Chosen = field(default_factory=lambda: Chosen("tpe"))
    pruner: Chosen = field(default_factory=lambda: Chosen("none"))
    prune_on: tuple[str, ...] = PRUNE_ON
    constraints: tuple[Expression, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    start: tuple[dict[str, Any], ...] = ()
    summary_base_dir: str = ""
    trials: int = 20
    workers: int = 1
    timeout: float | None = None
    limits: Limits = field(default_factory=Limits)
    level: str = "guard"
    storage: str = ""
    failures: int = 5
    heartbeat: float = 10.0
    grace: float = 60.0
    path: str = ""
    lines: dict[str, int] = field(default_factory=dict)
    """Of the keys at the top, for errors that are met while trials run."""
    notes: tuple[str, ...] = ()
    """What was understood otherwise than it may have been meant, a sentence each."""

    @property
    def directions(self) -> list[str]:
        return [target.goal for target in self.targets]

    def parameter(self, name: str) -> Parameter | None:
        return next((one for one in self.parameters if one.name == name), None)

    def where(self, key: str) -> str:
        """'study.yaml:7', for an error about this key."""
        return f"{self.path or self.name}:{self.lines.get(key, 1)}"
