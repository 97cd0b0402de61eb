"""A comparison: rows in execution order, each with its verdict and its part in the story."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from misstep.compare.align import How
from misstep.compare.judge.measures import Measures
from misstep.compare.names import canonical_type, ignorable
from misstep.compare.setups import SettingChange
from misstep.store.foreign.source import Entry

Sameness = Literal["identical", "noise", "different", "shape", "dtype", "missing"]
Part = Literal["", "cause", "consequence"]

BAD: frozenset[Sameness] = frozenset({"different", "shape", "dtype"})


@dataclass(frozen=True, slots=True)
class Row:
    """One tensor on both sides."""

    left: Entry | None
    right: Entry | None
    verdict: Sameness
    measures: Measures | None = None
    expected: float = 0.0
    """The relative difference that rounding explains, given the inputs."""
    part: Part = ""
    how: How | Literal[""] = ""
    layout: str = ""
    note: str = ""

    @property
    def entry(self) -> Entry:
        entry = self.left or self.right
        assert entry is not None
        return entry

    @property
    def name(self) -> str:
        """`layer1.0.bn1:output`, in the left side's words."""
        return str(self.entry)

    @property
    def close(self) -> bool:
        return self.verdict in ("identical", "noise")

    @property
    def relative(self) -> float:
        return self.measures.relative if self.measures is not None else float("nan")

    @property
    def error(self) -> float:
        """How wrong it may be, for what is computed from it: infinite where that cannot be measured."""
        if self.measures is None or self.measures.nonfinite_mismatch:
            return math.inf
        return math.inf if math.isnan(self.measures.error) else self.measures.error


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two things side by side in execution order, and the first difference.

    >>> found = compare(left, right)
    >>> if not found:
    ...     print(found.summary())
    """

    left: str
    right: str
    rows: tuple[Row, ...]
    """Everything that was paired, and parameters that are missing on one side, in the order of execution."""
    only_left: tuple[Entry, ...] = ()
    only_right: tuple[Entry, ...] = ()
    dtypes: tuple[str, str] | None = None
    """Set when the whole of one side computes in another precision: ('float64', 'float32')."""
    seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())
    """Why some pairs could not be compared."""
    settings: tuple[SettingChange, ...] = ()
    """How nodes were set up, where the two sides do not agree."""
    facts: tuple[str, ...] = ()
    """What holds for all of it and is told once: autocast, micro-batches, ranks, another order."""

    def __bool__(self) -> bool:
        """True when everything was paired and is close, and nothing was set up in another way."""
        return bool(self.rows) and all(row.close for row in self.rows) and not self.one_sided and not self.settings

    @property
    def one_sided(self) -> tuple[Entry, ...]:
        """What only one side has, but for buffers of one framework alone, and a loss that is a module on one side."""
        return tuple(
            entry
            for entry in (*self.only_left, *self.only_right)
            if not ignorable(entry.name) and not canonical_type(entry.node_type).endswith("loss")
        )

    @property
    def first_difference(self) -> Row | None:
        """The first row, in execution order, that noise does not explain; None when all are close."""
        return next((row for row in self.rows if not row.close), None)

    @property
    def causes(self) -> tuple[Row, ...]:
        """Rows whose inputs were fine and whose values are not."""
        return tuple(row for row in self.rows if row.part == "cause")

    @property
    def cause(self) -> Row | None:
        """The first of the causes; None when all are close."""
        return next((row for row in self.rows if row.part == "cause"), None)

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(row.verdict for row in self.rows))

    def row(self, name: str) -> Row | None:
        """The row of one tensor: `fc1:output`, or the bare name of a node for its first row."""
        return next((row for row in self.rows if row.name == name or row.entry.name == name), None)

    def summary(self) -> str:
        """The story in a few sentences."""
        from misstep.compare.sentences import summary_of

        return summary_of(self)
