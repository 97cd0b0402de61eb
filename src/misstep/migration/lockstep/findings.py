"""What a check of two networks finds: facts, put into words by the command and the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from misstep.migration.frameworks.base import Call
from misstep.migration.lockstep.rules import LAYERS, OPTIMIZERS, Argument, agree

What = Literal[
    "argument", "output", "gradient", "statistics", "between", "after", "shape", "unpaired", "loss", "update", "broken"
]
StageName = Literal["parameters", "model", "inference", "training"]
Status = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference, with its cause where it is known."""

    what: What
    layer: str
    """Where, in the left network; with the right one's name when it is another."""
    kind: str = ""
    parameter: str = ""
    left: str = ""
    right: str = ""
    default: bool = False
    """The right side's value is the framework's default, nobody wrote it."""
    fix: str = ""
    apart: float | None = None
    """The largest difference seen, in the left side's units."""
    allowed: float | None = None
    mode: str = ""


@dataclass(slots=True)
class LayerRow:
    """One layer on both sides, for the table and the page."""

    left: str
    right: str
    kind: str
    close: bool = True
    relative: float = 0.0
    allowed: float = 0.0
    gradient: float | None = None
    mode: str = "eval"


@dataclass(slots=True)
class Stage:
    name: StageName
    status: Status = "passed"
    findings: list[Finding] = field(default_factory=list)
    checked: int = 0
    note: str = ""


def arguments_apart(left: Call, right: Call) -> list[Finding]:
    """Arguments the two layers were constructed with that do not say the same."""
    found = differences(LAYERS.get(left.type, ()), left.arguments, right.arguments, right.given)
    place = left.path if left.path == right.path else f"{left.path} / {right.path}"
    return [_finding(one, place, right.type) for one in found]


def optimizer_arguments_apart(
    name: str, kind: str, left: Mapping[str, Any], right: Mapping[str, Any], given: frozenset[str]
) -> list[Finding]:
    return [_finding(one, "optimizer", kind) for one in differences(OPTIMIZERS.get(name, ()), left, right, given)]


def loss_arguments_apart(
    name: str, kind: str, left: Mapping[str, Any], right: Mapping[str, Any], given: frozenset[str]
) -> list[Finding]:
    return [_finding(one, "loss", kind) for one in differences(LAYERS.get(name, ()), left, right, given)]


@dataclass(frozen=True, slots=True)
class Difference:
    argument: Argument
    left: Any
    right: Any
    default: bool


def differences(
    rule: tuple[Argument, ...], left: Mapping[str, Any], right: Mapping[str, Any], given: frozenset[str]
) -> list[Difference]:
    """The arguments of a rule on which two constructors disagree; nothing where one was not seen built."""
    if not left or not right:
        return []
    found = []
    for one in rule:
        ours, theirs = one.left(left), one.right(right)
        if theirs is None and one.name not in right:
            continue  # the right layer has no such argument: numbers decide
        if not agree(ours, theirs):
            spelled = one.name in given or (one.name == "padding" and "pad_mode" in given)
            found.append(Difference(one, ours, theirs, not spelled))
    return found


def _finding(one: Difference, layer: str, kind: str) -> Finding:
    spelled = one.argument.spell(one.left)
    fix = spelled if "=" in spelled else f"{one.argument.name}={spelled}"
    return Finding(
        "argument",
        layer,
        kind,
        one.argument.name,
        repr(one.left),
        repr(one.right),
        one.default,
        fix,
    )
