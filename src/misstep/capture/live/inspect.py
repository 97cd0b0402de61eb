"""Any tensor of a training that stands still, by its address: live memory, never a copy of the whole.

What was looked at is *followed*: at every pause its values are copied (within a budget), so that "what was it one
step before" has an answer. Nothing is copied of a training nobody looks at.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from misstep.capture.live.debuggee import Debuggee
from misstep.core.address import Address, Role
from misstep.core.slices import Array
from misstep.core.stats import DTYPE_NAMES, TensorStats
from misstep.errors import MisstepError, TensorUnavailable
from misstep.protocol.tensor_payloads import TensorHeader
from misstep.protocol.window import look

MOST_FOLLOWED = 32
FOLLOWED_SHARE, HELD_SHARE = 1 / 8, 1 / 2
"""Of memory_mb, that copies of what was looked at may take, and the tensors of a step somebody walks through."""


@dataclass(slots=True)
class _Followed:
    """A tensor somebody looked at: its values at the last pause, and at the one before."""

    step: int
    values: Array
    previous_step: int | None = None
    previous: Array | None = None


class Look:
    """Answers questions about live tensors; everything here runs on the thread that trains."""

    def __init__(self, owner: Debuggee) -> None:
        self._owner = owner
        self._room = owner.ledger.account("tensors looked at", share=FOLLOWED_SHARE)
        self._walk = owner.ledger.account("the step walked through", share=HELD_SHARE)
        self._followed: OrderedDict[Address, _Followed] = OrderedDict()
        self._held: list[Any] = []
        self._held_rows = 0

    def hold(self) -> None:
        """Keep alive what passed since the last call: a framework frees an activation as soon as nobody needs it, and
        somebody who steps through the network may want to see it. Within the budget; let go when the step is left."""
        frame = self._owner.frame
        for row in range(self._held_rows, len(frame)):
            tensor = frame.refs[row]() if frame.refs[row] is not None else None
            size = int(getattr(tensor, "nbytes", 0))
            if tensor is not None and self._walk.take(row, size):
                self._held.append(tensor)
        self._held_rows = len(frame)

    def let_go(self) -> None:
        """The step is over and left."""
        self._held.clear()
        self._walk.clear()
        self._held_rows = 0

    def answer(
        self,
        address: str,
        *,
        slice: str,
        want: tuple[str, ...],
        previous: bool,
        step_of: Callable[[Role], int],
        id: str = "",
    ) -> tuple[TensorHeader, memoryview]:
        """What a client wants to know of a tensor; `step_of` tells the step the values of a role are of now."""
        wanted = Address.parse(address)
        present = step_of(wanted.role)
        bare = replace(wanted, step=None, rank=None)
        step = wanted.step if wanted.step is not None else present
        if previous or step < present:
            values, step = self._earlier(wanted, bare, None if previous else step, present)
            known = None
        else:
            values = self._live(wanted, bare, present)
            known = self._known(bare, values)
            self._follow(bare, values, present)
        shown = replace(wanted, step=step, rank=self._owner.rank)
        return look(
            values,
            address=str(shown),
            slice=slice,
            want=want,
            origin="live",
            step=step,
            rank=self._owner.rank,
            id=id,
            known=known,
        )

    def standing_still(self, step_of: Callable[[Role], int]) -> None:
        """Training stopped again: what is followed gets its values of now, and those of before become the previous."""
        for address, one in list(self._followed.items()):
            present = step_of(address.role)
            if one.step == present:
                continue
            try:
                values = self._owner.tensor(address)
            except MisstepError:
                continue
            self._moves_on(address, one, values, present)

    def _live(self, wanted: Address, bare: Address, present: int) -> Array:
        if wanted.rank not in (None, self._owner.rank):
            raise TensorUnavailable(
                f"{wanted} lives on rank {wanted.rank}; this is rank {self._owner.rank}",
                address=str(wanted),
                reason="other_rank",
            )
        if wanted.step is not None and wanted.step > present:
            raise TensorUnavailable(
                f"{wanted} does not exist yet: training is in step {present}. Go there:  step {wanted.step - present}",
                address=str(wanted),
                reason="no_such_step",
            )
        return self._owner.tensor(bare)

    def _earlier(self, wanted: Address, bare: Address, step: int | None, present: int) -> tuple[Array, int]:
        one = self._followed.get(bare)
        if one is not None:
            kept = [(one.step, one.values), (one.previous_step, one.previous)]
            for at, values in kept:
                if values is not None and at is not None and at < present and step in (None, at):
                    return values, at
        raise TensorUnavailable(
            f"{bare} of an earlier step was not kept. Look at it now (p {bare}), step, and compare again;"
            f" or dump it at every step:  misstep dump last '{bare}'",
            address=str(wanted),
            reason="not_captured",
        )

    def _follow(self, bare: Address, values: Array, present: int) -> None:
        one = self._followed.get(bare)
        if one is None:
            # Half of the room: its previous value will need as much again.
            if values.nbytes <= self._room.limit_bytes // 2 and self._make_room(bare, values.nbytes):
                self._followed[bare] = _Followed(present, values.copy())
        elif one.step != present:
            self._moves_on(bare, one, values, present)
        if bare in self._followed:
            self._followed.move_to_end(bare)

    def _moves_on(self, address: Address, one: _Followed, values: Array, present: int) -> None:
        """Its values of now become the previous ones, where there is room for both."""
        if self._make_room(address, values.nbytes + one.values.nbytes):
            one.previous_step, one.previous = one.step, one.values
            one.step, one.values = present, values.copy()

    def _make_room(self, address: Address, size: int) -> bool:
        """The longest unseen go first, until this many bytes of this tensor fit."""
        while len(self._followed) >= MOST_FOLLOWED and address not in self._followed:
            self._forget(next(iter(self._followed)))
        while not self._room.take(address, size):
            oldest = next((one for one in self._followed if one != address), None)
            if oldest is None:
                self._forget(address)
                return False
            self._forget(oldest)
        return True

    def _forget(self, address: Address) -> None:
        self._followed.pop(address, None)
        self._room.give_back(address)

    def _known(self, bare: Address, values: Array) -> TensorStats | None:
        """The statistics the step's frame has already, so that a gigabyte is not read again for them."""
        frame, graph = self._owner.frame, self._owner.catalog.graph
        node = graph.node(bare.node)
        if node is None:
            return None
        for row in range(len(frame) - 1, -1, -1):
            key = graph.tensors[frame.tensors[row]]
            if (key.node, key.role, key.slot, key.call) == (node.index, bare.role, bare.slot, bare.call):
                record = frame.summary[row]
                if int(record["count"]) != values.size:
                    return None  # still on the device, or an alias not yet filled in
                name = values.dtype.name
                return TensorStats.of(record, dtype=name if name in DTYPE_NAMES else "unknown", shape=values.shape)
        return None
