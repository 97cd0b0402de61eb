"""Watchpoints and their hits: a question asked of a set of tensors at every step, and the answers.

watchpoint ── condition ── what it needs ──► the capture plan
     └─────── pattern   ── which tensors
                               │ every step
                               ▼
                  hit: address, why, origin or propagated
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from misstep.core.address import Address, Pattern
from misstep.core.stats import TensorStats

Action = Literal["note", "pause", "dump", "stop"]
Severity = Literal["error", "warning", "info"]
Birth = Literal["origin", "propagated", "unknown"]
"""origin: finite inputs, bad output. propagated: an input was bad already."""

ErrorMark = Literal["nan", "inf", "no_previous", "out_of_memory", "no_value"]


@dataclass(frozen=True, slots=True)
class Watchpoint:
    """A condition on a pattern, and what to do then."""

    id: int
    condition: str
    """A condition's name (`gradient_vanishing`) or an expression (`abs_mean > 1e3 and nan == 0`)."""
    parameters: dict[str, float | bool] = field(default_factory=dict)
    on: tuple[Pattern, ...] = ()
    """Any of these; empty means every tensor of the condition's category."""
    then: Action = "note"
    enabled: bool = True
    limit: int | None = None
    """Hits after which it falls silent; None for no limit."""
    name: str = ""
    nodes: tuple[str, ...] = ()
    """An explicit list of node names; when given, only these."""
    origin: Literal["user", "recommended", "guard"] = "user"
    but: tuple[Pattern, ...] = ()
    """None of these, even when `on` fits."""
    types: tuple[str, ...] = ()
    """Only nodes of these types (`Tanh`, `aten.tanh`); empty means any."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One parameter of a condition against a tensor: the threshold, what was found, and whether it tripped."""

    parameter: str
    threshold: float | bool
    actual: float | None
    hit: bool


@dataclass(frozen=True, slots=True)
class Hit:
    """A watchpoint tripped."""

    id: int
    watchpoint: int
    address: Address
    """With step and rank."""
    reason: str
    """A sentence: '1,204 NaN of 65,536'."""
    severity: Severity = "warning"
    birth: Birth = "unknown"
    order: int = 0
    stats: TensorStats | None = None
    readings: tuple[Reading, ...] = ()
    errors: tuple[ErrorMark, ...] = ()
    condition: str = ""
    outdated: bool = False
    detail: dict[str, Any] = field(default_factory=dict)
