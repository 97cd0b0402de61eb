"""All watchpoints against all tensors of a step, in a few numpy operations.

    watchpoints ──► families: same condition, same parameters set, any thresholds
                        │ every step: (watchpoints × 1) thresholds against (rows) statistics
                        ▼
                    truths (watchpoints × rows) & who looks at what ──► Hit objects, for true ones only

A thousand watchpoints that differ in thresholds and patterns are one family, so their price is one comparison of a
small matrix. Hits come in execution order, and say where bad values were born.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from misstep.core.address import ROLE_CODES, Address, Role
from misstep.core.stats import ALIAS, DTYPE_NAMES, INPUTS_BAD, INPUTS_SEEN, ITEM_BYTES, TensorStats
from misstep.core.watching.asking import asked_at
from misstep.core.watching.columns import ATOL, RTOL, Column, Columns, EvidenceOf
from misstep.core.watching.family import Asked, Family, Member
from misstep.core.watching.selection import Selection, TensorTable, Truths, needed_level
from misstep.core.watching.watch import Birth, Hit, Watchpoint
from misstep.sentences.hits import LIKE_A_MASK
from misstep.sentences.text import clauses

_FORWARD = [ROLE_CODES[role] for role in ("input", "output", "buffer")]
_GRADIENTS = [ROLE_CODES[role] for role in ("grad", "grad_input", "grad_output")]
_ITEM_BYTES = np.array(ITEM_BYTES, dtype=np.int64)
_LEVELS = ("guard", "module", "op")


@dataclass(frozen=True, slots=True)
class Needs:
    """What capture must collect so that every enabled watchpoint can be answered."""

    previous: frozenset[int] = frozenset()
    """Tensors whose value of the step before must be kept."""
    tolerances: tuple[tuple[float, float], ...] = ()
    """The (rtol, atol) pairs asked of their change."""
    ranges: dict[int, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    """Per tensor, the ranges whose elements are counted."""
    roles: frozenset[Role] = frozenset()
    level: str = "guard"
    """The least detail at which every tensor asked for exists: guard, module or op."""
    initial: bool = False
    """Weights are looked at before the first step."""


class DryRun(NamedTuple):
    """What a watchpoint would do on the tensors at hand."""

    hits: list[Hit]
    tensors: int
    """Looked at."""
    bytes: int
    """Of those tensors, previous values included: what a step costs to read."""


class Evaluator:
    """The watchpoints of one rank, compiled against the run's tensor table."""

    def __init__(self, watchpoints: Iterable[Watchpoint] = (), *, most_hits: int = 1000) -> None:
        self.most_hits = most_hits
        """Hit objects made per watchpoint; later ones are only counted."""
        self.refused: set[int] = set()
        """Tensors whose previous value the memory budget could not hold; their hits say out_of_memory."""
        self._table = TensorTable()
        self._roles = np.zeros(0, dtype=np.uint8)
        self._last_id = 0
        self._members: dict[int, Member] = {}
        self._selections: dict[Any, Selection] = {}
        self._families: list[Family] | None = None
        self._next_hit = 1
        self._masks = np.zeros(0, dtype=bool)
        for watch in watchpoints:
            self.add(watch)

    # The set of watchpoints.

    @property
    def watchpoints(self) -> tuple[Watchpoint, ...]:
        return tuple(member.watch for member in self._members.values())

    def add(self, watch: Watchpoint) -> Watchpoint:
        """Add or replace by id; id 0 gets the next one, never that of a removed one, whose hits are still there. A
        replaced watchpoint starts counting anew."""
        if watch.id == 0:
            watch = replace(watch, id=self._last_id + 1)
        self._last_id = max(self._last_id, watch.id)
        self._members[watch.id] = Member(watch, selections=self._selections)
        self._families = None
        return watch

    def remove(self, id: int) -> None:
        if self._members.pop(id, None) is not None:
            self._families = None
            used = {member.selection for member in self._members.values()}
            self._selections = {place: chosen for place, chosen in self._selections.items() if chosen in used}

    def hit_counts(self) -> dict[int, int]:
        """Hits of each watchpoint, those beyond `most_hits` included."""
        return {id: member.hits for id, member in self._members.items()}

    def watched(self, id: int) -> list[int]:
        """The tensors a watchpoint looks at, by index."""
        return [int(i) for i in np.flatnonzero(self._members[id].selection.everywhere(self._table))]

    # The tensors.

    def tensor_added(self, index: int, address: Address, node_type: str = "") -> None:
        """A tensor of the run, by its index in the tensor table; its step and rank are ignored."""
        if index < len(self._table) and self._table.addresses[index] is not None:
            if self._table.addresses[index] == address:
                return
            for selection in self._selections.values():
                selection.forget(index)
            self._families = None
        self._table.put(index, address, node_type)

    def needs(self) -> Needs:
        """The union over the enabled watchpoints and the tensors known so far."""
        previous: set[int] = set()
        tolerances: set[tuple[float, float]] = set()
        ranges: dict[int, set[tuple[float, float]]] = {}
        roles: set[Role] = set()
        level, initial = 0, False
        for member in self._members.values():
            if not member.awake:
                continue
            roles |= member.selection.roles & ({p.role for p in member.watch.on if p.role} or member.selection.roles)
            level = max(level, _LEVELS.index(needed_level(member.watch, member.selection.roles)))
            initial |= "initial" in member.needs
            if "previous" in member.needs:
                previous |= set(np.flatnonzero(member.selection.everywhere(self._table)).tolist())
                given = member.given
                tolerances.add((float(given.get("rtol", RTOL)), float(given.get("atol", ATOL))))
            if member.range is not None:
                for tensor in np.flatnonzero(member.selection.everywhere(self._table)).tolist():
                    ranges.setdefault(tensor, set()).add(member.range)
        return Needs(
            previous=frozenset(previous),
            tolerances=tuple(sorted(tolerances)),
            ranges={tensor: tuple(sorted(bounds)) for tensor, bounds in sorted(ranges.items())},
            roles=frozenset(roles),
            level=_LEVELS[level],
            initial=initial,
        )

    # The questions.

    def evaluate(
        self, step: int, rank: int, head: Column, summary: Column, evidence: EvidenceOf | None = None
    ) -> list[Hit]:
        """The hits among the rows of a step, in execution order. The rows may be all of the step or a part of it."""
        rows = _Rows.of(step, rank, head, summary, evidence)
        found: list[_Found] = []
        deliberate: Truths | None = None
        key = rows.tensors.tobytes()
        for family in self._compiled():
            if not asked_at(family.needs, step):
                continue
            looked_at, who = family.looks_at(rows.tensors, key, self._table, step=step, rank=rank)
            asked = family.ask(rows.columns, looked_at, who)
            if asked is None:
                continue
            if family.overflow and deliberate is None:
                deliberate = self._deliberate(rows)
            for number in np.flatnonzero(asked.truth.any(axis=1)):
                found += self._news(asked, int(number), rows.tensors, deliberate if family.overflow else None)
        found.sort(key=lambda one: (one.row, one.member.watch.id))
        hits = [self._hit(one, rows, id=self._next_hit + place) for place, one in enumerate(found)]
        self._next_hit += len(hits)
        return hits

    def take_hit_id(self) -> int:
        """For a hit that comes of no tensor's row: the next number of this run."""
        self._next_hit += 1
        return self._next_hit - 1

    def would_hit(
        self,
        watch: Watchpoint,
        head: Column,
        summary: Column,
        evidence: EvidenceOf | None = None,
        *,
        step: int | None = None,
        rank: int = 0,
    ) -> DryRun:
        """What a watchpoint would say of these rows, whether enabled or not; nothing is counted or remembered."""
        if step is None:
            step = int(head["step"].max()) if len(head) else 0
        rows = _Rows.of(step, rank, head, summary, evidence)
        family = Family([Member(watch)])
        looked_at, who = family.looks_at(rows.tensors, b"", self._table, step=step, rank=rank)
        times = 2 if "previous" in family.needs else 1
        size = times * int((rows.summary["count"] * _ITEM_BYTES[rows.head["dtype"]])[looked_at].sum())
        asked = family.ask(rows.columns, looked_at, who) if asked_at(family.needs, step) else None
        found = [] if asked is None else [_Found(asked, 0, int(at)) for at in np.flatnonzero(asked.truth[0])]
        return DryRun([self._hit(one, rows, id=0) for one in found], len(looked_at), size)

    def _compiled(self) -> list[Family]:
        if self._families is None:
            groups: dict[object, list[Member]] = {}
            for member in self._members.values():
                if member.awake:
                    groups.setdefault(member.family_key, []).append(member)
            self._families = [Family(members) for members in groups.values()]
        return self._families

    def _news(self, asked: Asked, number: int, tensors: Column, deliberate: Truths | None) -> list[_Found]:
        """The answers of one watchpoint that are worth a Hit: within its limit, and nothing unanswerable said twice."""
        member = asked.family.members[number]
        positions = np.flatnonzero(asked.truth[number])
        tensors = tensors[asked.columns.rows[positions]]
        quiet = asked.marked[positions]
        if deliberate is not None and member.watch.origin != "user":
            quiet = quiet | deliberate[asked.columns.rows[positions]]
        if len(member.told) < len(self._table):
            member.told = np.concatenate([member.told, np.zeros(len(self._table) - len(member.told), dtype=bool)])
        fresh = ~(quiet & member.told[tensors])
        if member.watch.origin != "user":
            # Nobody asked, and the overflow itself is told by a watchpoint of its own.
            fresh &= ~asked.marked[positions]
        member.told[tensors[quiet]] = True
        loud = np.cumsum(~quiet & fresh)
        limit = self.most_hits if member.watch.limit is None else min(member.watch.limit, self.most_hits)
        kept = fresh & (quiet | (loud <= limit - member.hits))
        member.hits += int(loud[-1])
        if member.watch.limit is not None and member.hits >= member.watch.limit:
            member.hits = member.watch.limit
            self._families = None
        return [_Found(asked, number, int(at), bool(soft)) for at, soft in zip(positions[kept], quiet[kept])]

    def _hit(self, one: _Found, rows: _Rows, *, id: int) -> Hit:
        asked, number, position = one.asked, one.number, one.position
        tensor = int(rows.tensors[one.row])
        stats = rows.stats(one.row)
        marks = asked.marks(number, position)
        readings = asked.readings(number, position)
        reason = asked.reason(number, readings, marks, position, stats)
        severity = asked.severity(number, marks, stats)
        if one.quiet and not marks:
            severity, reason = "info", clauses([reason, LIKE_A_MASK.of()])
        if tensor in self.refused:
            marks = tuple("out_of_memory" if mark == "no_previous" else mark for mark in marks)
            reason = asked.reason(number, readings, marks, position, stats)
        return Hit(
            id=id,
            watchpoint=one.member.watch.id,
            address=rows.address(one.row, self._table),
            reason=reason,
            severity=severity,
            birth="unknown" if stats.finite else _birth(int(rows.head["flags"][one.row])),
            order=int(rows.head["order"][one.row]),
            stats=stats,
            readings=readings,
            errors=marks,
            condition=one.member.watch.condition,
            detail=dict(asked.values(number, position)),
        )

    def _deliberate(self, rows: _Rows) -> Truths:
        """Rows whose only bad values are -Inf put there on purpose, as attention masks are.

        Shown by a whole step, gradients included, in which nothing else was bad. Known masks stay known, so that they
        are not taken for the origin when something goes wrong later.
        """
        columns, tensors = rows.columns, rows.tensors
        if len(self._roles) < len(self._table):
            known = self._table.addresses
            self._roles = np.array([255 if a is None else ROLE_CODES[a.role] for a in known], dtype=np.uint8)
            self._masks = np.concatenate([self._masks, np.zeros(len(known) - len(self._masks), dtype=bool)])
        roles = self._roles[tensors]
        forward = np.isin(roles, _FORWARD)
        mask_like = forward & (columns["neg_inf"] > 0) & (columns["neg_inf"] == columns["nonfinite"])
        if np.isin(roles, _GRADIENTS).any() and not ((columns["nonfinite"] > 0) & ~mask_like).any():
            self._masks[tensors[mask_like]] = True
        known_masks: Truths = mask_like & self._masks[tensors]
        return known_masks


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a step in execution order."""

    head: Column
    summary: Column
    columns: Columns
    evidence: EvidenceOf | None
    rank: int
    _stats: dict[int, TensorStats] = field(default_factory=dict)
    _addresses: dict[int, Address] = field(default_factory=dict)

    @classmethod
    def of(cls, step: int, rank: int, head: Column, summary: Column, evidence: EvidenceOf | None) -> _Rows:
        order = head["order"]
        if len(order) > 1 and (order[1:] < order[:-1]).any():
            sorting = np.argsort(order, kind="stable")
            head, summary = head[sorting], summary[sorting]
            if evidence is not None:
                given = evidence
                evidence = lambda row: given(int(sorting[row]))  # noqa: E731
        columns = Columns(summary, step=step, flags=head["flags"], evidence=evidence)
        return cls(head, summary, columns, evidence, rank)

    @property
    def tensors(self) -> Column:
        tensors: Column = self.head["tensor"]
        return tensors

    def stats(self, row: int) -> TensorStats:
        """Made once however many watchpoints hit the row; so is its address."""
        if row not in self._stats:
            if self.evidence is not None:
                self._stats[row] = self.evidence(row).stats
            else:
                self._stats[row] = TensorStats.of(self.summary[row], dtype=DTYPE_NAMES[self.head["dtype"][row]])
        return self._stats[row]

    def address(self, row: int, table: TensorTable) -> Address:
        if row not in self._addresses:
            tensor = int(self.tensors[row])
            address = table.addresses[tensor] or Address(f"tensor-{tensor}")
            self._addresses[row] = address.at(step=self.columns.step, rank=self.rank)
        return self._addresses[row]


@dataclass(frozen=True, slots=True)
class _Found:
    """An answer that becomes a Hit."""

    asked: Asked
    number: int
    position: int
    quiet: bool = False

    @property
    def member(self) -> Member:
        return self.asked.family.members[self.number]

    @property
    def row(self) -> int:
        return int(self.asked.columns.rows[self.position])


def _birth(flags: int) -> Birth:
    """Where the bad values of a row come from. Memory seen earlier in the step has brought them along."""
    if flags & (INPUTS_BAD | ALIAS):
        return "propagated"
    return "origin" if flags & INPUTS_SEEN else "unknown"
