"""Which tensors a watchpoint looks at, remembered as one truth per tensor of the run.

Names are matched once, when a tensor is first seen; every later step only indexes an array.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from misstep.core.address import ROLES_OF_CATEGORY, Address, Category, Pattern, Role
from misstep.core.watching.watch import Watchpoint

Truths = npt.NDArray[np.bool_]

UNWRITTEN = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"})
"""Operators whose output is memory nobody has written yet: NaN in it means nothing."""


def type_words(node_type: str) -> frozenset[str]:
    """`aten.relu_.default` → aten, relu, default; so that `ReLU` names the module and the operator alike."""
    return frozenset(word.rstrip("_").lower() for word in node_type.split("."))


class TensorTable:
    """The tensors of a run as far as questions go: address without step, and the words of the node's type."""

    def __init__(self) -> None:
        self.addresses: list[Address | None] = []
        self.words: list[frozenset[str]] = []

    def __len__(self) -> int:
        return len(self.addresses)

    def put(self, index: int, address: Address, node_type: str) -> None:
        while len(self.addresses) <= index:
            self.words.append(frozenset())
            self.addresses.append(None)  # last: its length is the table's, and another thread may read along
        self.addresses[index] = address
        self.words[index] = type_words(node_type)


class Selection:
    """The tensors of one watchpoint."""

    def __init__(self, watch: Watchpoint, category: Category) -> None:
        self.roles: frozenset[Role] = ROLES_OF_CATEGORY[category]
        self.patterns: tuple[Pattern, ...] = watch.on or (Pattern(),)
        self.but = watch.but
        self.nodes = frozenset(watch.nodes)
        self.types = frozenset().union(*map(type_words, watch.types)) - {"aten", "default"}
        self.timed = tuple(p for p in self.patterns if p.rank is not None or not p.includes_step(-1) or _ends(p))
        self._fits = [np.zeros(0, dtype=bool) for _ in self.patterns]

    def active(self, step: int, rank: int) -> tuple[bool, ...]:
        """Which of the patterns that name steps or ranks apply now; () for the usual selection without any."""
        return tuple(p.includes_step(step) and p.rank in (None, rank) for p in self.timed)

    def truths(self, table: TensorTable, *, step: int, rank: int) -> Truths:
        """One truth per tensor of the table."""
        self._extend(table)
        chosen = [
            fits
            for pattern, fits in zip(self.patterns, self._fits)
            if pattern not in self.timed or (pattern.includes_step(step) and pattern.rank in (None, rank))
        ]
        if not chosen:
            return np.zeros(len(table), dtype=bool)
        joined: Truths = chosen[0] if len(chosen) == 1 else np.logical_or.reduce(chosen)
        return joined

    def forget(self, index: int) -> None:
        """A tensor turned out to have another name or type: match again from there."""
        self._fits = [fits[:index] for fits in self._fits]

    def everywhere(self, table: TensorTable) -> Truths:
        """Tensors looked at in any step on any rank."""
        self._extend(table)
        joined: Truths = np.logical_or.reduce(self._fits)
        return joined

    def _extend(self, table: TensorTable) -> None:
        # The link thread asks too while training adds tensors: the new answers take the old ones' place at once.
        old = self._fits
        known, until = len(old[0]), len(table)
        if known >= until:
            return
        possible = [self._possible(table.addresses[i], table.words[i]) for i in range(known, until)]
        new = [[address is not None and _names(pattern, address) for address in possible] for pattern in self.patterns]
        self._fits = [np.concatenate([fits, np.array(more, dtype=bool)]) for fits, more in zip(old, new)]

    def _possible(self, address: Address | None, words: frozenset[str]) -> Address | None:
        """The address when everything but the patterns fits."""
        if address is None or address.role not in self.roles or words & UNWRITTEN:
            return None
        if self.types and not words & self.types:
            return None
        if self.nodes and address.node not in self.nodes:
            return None
        return None if any(_names(pattern, address) for pattern in self.but) else address


def needed_level(watch: Watchpoint, roles: frozenset[Role]) -> str:
    """The least detail at which the tensors exist: guard sees parameters and loss, op sees operators."""
    names: Sequence[str] = [*watch.nodes, *(pattern.node for pattern in watch.on)]
    if any("/" in name for name in names):
        return "op"
    wanted = {pattern.role for pattern in watch.on} - {None} or set(roles)
    return "guard" if wanted <= {"param", "grad", "loss"} else "module"


def _ends(pattern: Pattern) -> bool:
    return pattern.first_step is not None or pattern.last_step is not None


def _names(pattern: Pattern, address: Address) -> bool:
    """Whatever the step and rank."""
    return (
        (pattern.role is None or pattern.role == address.role)
        and (pattern.slot is None or pattern.slot == address.slot)
        and (pattern.call is None or pattern.call == address.call)
        and pattern.matches_node(address.node)
    )
