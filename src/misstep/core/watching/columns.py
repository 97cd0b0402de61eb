"""The tensors of a step as columns: one array per statistic, so that a question is asked of all of them at once.

Plain statistics are there already. What needs the tensor itself (its change since the last step, the share of elements
in a range) is fetched through the row's `Evidence`, once per row however many watchpoints ask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from misstep.core.stats import ALIAS, INPUTS_BAD, INPUTS_SEEN, SUMMARY, TensorStats

Column = npt.NDArray[Any]
Need = Literal["stats", "previous", "range", "initial"]

RTOL, ATOL = 1e-5, 1e-8
"""Of `weight_not_changed`; also used where only the size of the change is asked, so that one pass serves all."""


class Evidence(Protocol):
    """What can be asked of one tensor of a step. Capture answers for live tensors, a reader for dumped ones."""

    @property
    def stats(self) -> TensorStats: ...

    @property
    def step(self) -> int: ...

    def previous_change(self, rtol: float, atol: float) -> Any | None:
        """A record with count, mean_abs, max_abs, mean_abs_before and within; None without a previous value."""

    def count_within(self, low: float, high: float) -> int | None:
        """Elements with low <= x <= high; None when the values are gone."""


EvidenceOf = Callable[[int], Evidence]
"""From the row's position in the step's arrays."""


class Columns:
    """Statistics of several tensors, `columns["abs_mean"]` at a time, as float64."""

    def __init__(
        self,
        summary: Column,
        *,
        step: int = 0,
        flags: Column | None = None,
        evidence: EvidenceOf | None = None,
    ) -> None:
        self.step = step
        self.rows: Column = np.arange(len(summary))
        """Positions in the step's arrays."""
        self._whole: Columns | None = None
        self._summary = summary
        self._flags = flags
        self._evidence = evidence
        self._all_finite: bool | None = None
        self._ready: dict[Any, Column] = {}
        self._changes: dict[tuple[int, float, float], Any] = {}
        self._within: dict[tuple[int, float, float], int | None] = {}

    @classmethod
    def of(cls, evidence: Evidence, *, flags: int = 0) -> Columns:
        """A single tensor."""
        stats = evidence.stats
        summary = np.array([tuple(getattr(stats, name) for name in SUMMARY.names or ())], dtype=SUMMARY)
        return cls(summary, step=evidence.step, flags=np.array([flags]), evidence=lambda _: evidence)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Column:
        ready = self._ready.get(name)
        if ready is None:
            if self._whole is not None and not name.startswith("previous."):
                # Computed once for the step, then picked from. Previous values are fetched only for the rows asked.
                ready = self._whole[name][self.rows]
            elif name in DERIVED:
                ready = DERIVED[name](self)
            else:
                ready = self._summary[name].astype(np.float64)
            self._ready[name] = ready
        return ready

    def take(self, positions: Column) -> Columns:
        """Some of the rows of a whole step; what was fetched for one view is known to all."""
        part = Columns.__new__(Columns)
        part.step, part.rows, part._whole = self.step, positions, self
        part._summary, part._flags, part._evidence = self._summary, self._flags, self._evidence
        part._ready, part._changes, part._within = {}, self._changes, self._within
        return part

    @property
    def all_finite(self) -> bool:
        """Nothing in the whole step is bad: the usual case, known from one look."""
        whole = self if self._whole is None else self._whole
        if whole._all_finite is None:
            whole._all_finite = not whole["nonfinite"].any()
        return whole._all_finite

    @property
    def born_here(self) -> Column:
        """The node's inputs were seen and finite, and the memory is its own: bad values in it are its own too."""
        if self._flags is None:
            return np.zeros(len(self), dtype=bool)
        own: Column = (self._flags[self.rows] & (INPUTS_SEEN | INPUTS_BAD | ALIAS)) == INPUTS_SEEN
        return own

    def change(self, field: str, *, rtol: float = RTOL, atol: float = ATOL) -> Column:
        """A field of the change since the previous value; NaN where there is none."""
        key = ("change", field, rtol, atol)
        if key not in self._ready:
            self._ready[key] = np.array(
                [self._change_of(int(row), field, rtol, atol) for row in self.rows], dtype=float
            )
        return self._ready[key]

    def share_within(self, low: float, high: float) -> Column:
        """Percentage of elements in [low, high]; NaN where the values are gone or there are no elements."""
        key = ("within", low, high)
        if key not in self._ready:
            inside = np.array([self._inside(int(row), low, high) for row in self.rows], dtype=float)
            self._ready[key] = percentage(inside, self["count"])
        return self._ready[key]

    def has_previous(self, *, rtol: float = RTOL, atol: float = ATOL) -> Column:
        return ~np.isnan(self.change("count", rtol=rtol, atol=atol))

    def has_values(self, low: float, high: float) -> Column:
        known: Column = ~np.isnan(self.share_within(low, high)) | (self["count"] == 0)
        return known

    def _change_of(self, row: int, field: str, rtol: float, atol: float) -> float:
        key = (row, rtol, atol)
        if key not in self._changes:
            self._changes[key] = None if self._evidence is None else self._evidence(row).previous_change(rtol, atol)
        record = self._changes[key]
        return float("nan") if record is None else float(record[field])

    def _inside(self, row: int, low: float, high: float) -> float:
        key = (row, low, high)
        if key not in self._within:
            self._within[key] = None if self._evidence is None else self._evidence(row).count_within(low, high)
        inside = self._within[key]
        return float("nan") if inside is None else float(inside)


def percentage(part: Column, whole: Column) -> Column:
    """NaN for an empty whole."""
    with np.errstate(all="ignore"):
        share: Column = 100.0 * part / whole
        return share


DERIVED: dict[str, Callable[[Columns], Column]] = {
    "inf": lambda c: c._summary["pos_inf"] + c._summary["neg_inf"],
    "nonfinite": lambda c: c._summary["nan"] + c._summary["pos_inf"] + c._summary["neg_inf"],
    "zero_percentage": lambda c: percentage(c["zeros"], c["count"]),
    "abs_max": lambda c: np.maximum(np.abs(c["min"]), np.abs(c["max"])),
    "spread": lambda c: c["max"] - c["min"],
    "step": lambda c: np.full(len(c), float(c.step)),
    "previous.mean_abs_change": lambda c: c.change("mean_abs"),
    "previous.max_abs_change": lambda c: c.change("max_abs"),
    "previous.abs_mean": lambda c: c.change("mean_abs_before"),
    "previous.unchanged_percentage": lambda c: percentage(c.change("within"), c.change("count")),
}
"""Numbers computed from the others. Of an empty tensor most are NaN, which trips no threshold."""

NAMES: tuple[str, ...] = (*(SUMMARY.names or ()), *DERIVED)
"""Every number a question may mention."""
