"""Which whole tensors to keep, at which steps: what a user wrote, as a value that can be asked.

    encoder.*:output@100:110        a pattern, its steps behind the @
    */matmul:output                 a slash names operators, so those steps are looked at operator by operator

A `DumpSpec` answers two questions: does this tensor fit, and is this step one of them. Reading MindSpore's JSON into
specs is in dumpconfig.py; doing what they ask is in dump.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from misstep.core.address import Address, Pattern, Role
from misstep.core.levels import Level
from misstep.core.steps import parse_steps
from misstep.core.watching.watch import Watchpoint
from misstep.settings import Settings

MINDSPORE_VARIABLE = "MINDSPORE_DUMP_CONFIG"
EVERYTHING = Pattern()

Saved = Literal["tensor", "statistic", "full"]
Steps = tuple[tuple[int, int], ...]
"""Ranges with both ends."""


@dataclass(frozen=True, slots=True)
class DumpSpec:
    """One wish for whole tensors."""

    pattern: Pattern = EVERYTHING
    steps: Steps | None = None
    """None for every step from now on."""
    level: Level = "module"
    """How closely the steps must be looked at for the tensors to exist."""
    kernels: Kernels | None = None
    """Names, types and regular expressions of MindSpore's schema; None takes whatever fits the pattern."""
    roles: frozenset[Role] | None = None
    ranks: frozenset[int] | None = None
    saved: Saved = "tensor"
    """`statistic` keeps the rows of the steps and no values."""
    overflow: bool = False
    """Only operators whose result is not finite, with what went into them."""
    inputs_only: bool = False
    """With `overflow`: what went into them, not what came out."""
    most_overflows: int = 0
    """Operators kept by an overflow dump in the whole run; 0 for all."""
    sample: int = 0
    """Elements kept of each tensor, evenly spread; 0 for all."""
    id: int = 0

    def fits(self, address: Address, node_type: str = "") -> bool:
        """Whether this tensor is meant, whatever the step."""
        return (
            self.pattern.matches(replace(address, step=None, rank=None))
            and (self.roles is None or address.role in self.roles)
            and (self.kernels is None or self.kernels.fit(address.node, node_type))
        )

    def includes(self, step: int) -> bool:
        return self.steps is None or any(first <= step <= last for first, last in self.steps)

    def names_inputs(self, step: int) -> bool:
        """Whether it wants what goes into operators, in a step it keeps the values of."""
        return (
            self.saved != "statistic"
            and not self.overflow
            and self.includes(step)
            and (self.roles is None or "input" in self.roles)
            and self.pattern.role in (None, "input")
        )

    def on_rank(self, rank: int) -> bool:
        return (self.ranks is None or rank in self.ranks) and self.pattern.rank in (None, rank)

    def __str__(self) -> str:
        where = str(replace(self.pattern, first_step=None, last_step=None))
        return where if self.steps is None else f"{where}@{steps_text(self.steps)}"


@dataclass(frozen=True, slots=True)
class Kernels:
    """`kernels` of MindSpore's schema: full names, types by any part of them in any case, or name-regex(…)."""

    names: frozenset[str] = frozenset()
    types: tuple[str, ...] = ()
    regexes: tuple[re.Pattern[str], ...] = ()

    def fit(self, name: str, node_type: str) -> bool:
        kind = node_type.rpartition(".")[2].lower()
        return (
            name in self.names
            or any(part in kind for part in self.types)
            or any(one.search(name) is not None for one in self.regexes)
        )


def parse_dump(text: str, *, steps: str = "") -> DumpSpec:
    """What stands behind --dump; `steps` may also be a list, like 5,10:12.

    >>> parse_dump("encoder.*:output@100:110").steps
    ((100, 110),)
    """
    pattern = Pattern.parse(text)
    chosen = parse_steps(steps)
    ranges = None if chosen is None else tuple(chosen)
    if ranges is None and (pattern.first_step is not None or pattern.last_step is not None):
        ranges = ((pattern.first_step or 0, 2**31 if pattern.last_step is None else pattern.last_step),)
    return DumpSpec(
        pattern=replace(pattern, first_step=None, last_step=None),
        steps=ranges,
        level="op" if "/" in pattern.node else "module",
    )


def asks_for_dump(settings: Settings, watchpoints: Iterable[Watchpoint]) -> bool:
    """Whether whole tensors may have to be kept from the beginning."""
    return bool(
        settings.dump
        or settings.dump_config
        or os.environ.get(MINDSPORE_VARIABLE)
        or any(watch.then == "dump" for watch in watchpoints)
    )


def steps_text(steps: Steps) -> str:
    """The steps as a user would write them.

    >>> steps_text(((5, 5), (10, 12)))
    '5,10:12'
    """
    return ",".join(
        str(first) if first == last else f"{first}:{'' if last >= 2**31 else last}" for first, last in steps
    )
