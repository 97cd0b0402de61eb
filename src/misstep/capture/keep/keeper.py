"""Tensors of the step under way that somebody will want to see, kept although the framework lets go of them.

    step ──── a watchpoint that pauses looks at it ──► held, not copied, until the step is left
    replay ── a bad value is born of good ones ──────► it and what it was made of are held
              └─ the verdict speaks of them ─────────► copied before the weights move; small ones go into the pack

Of a healthy step nothing is kept unless somebody wants to pause in it; what is kept stays within a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from misstep.adapters.step.frame import Catalog, Frame
from misstep.capture.keep.holding import Holding
from misstep.capture.keep.ledger import Ledger
from misstep.core.address import Address, Role
from misstep.core.finding import Verdict
from misstep.core.stats import Array
from misstep.core.watching.evaluate import Evaluator
from misstep.protocol import tiles
from misstep.store.writing.writer import RunWriter

Want = Callable[[int, Any], None]

BUDGET_SHARE = 1 / 8
"""Of memory_mb, that may be held."""
_OTHERS_SHARE = 4
"""Of that: what may go to infinities that were meant (masks), and to values made bad by others."""
MOST_WRITTEN = 64 << 20
"""Bytes of one verdict's tensors that go into the pack: the values of a fault, not a dump of the network."""
_LASTING: frozenset[Role] = frozenset({"param", "grad", "buffer"})
"""Nobody lets go of these, so they need not be held."""


class KeptFor(Protocol):
    """What the keeper needs of a session."""

    catalog: Catalog
    frame: Frame
    rank: int
    evaluator: Evaluator
    ledger: Ledger
    writer: RunWriter | None

    def trouble(self, where: str, error: BaseException) -> None: ...


class Keeper:
    """What one rank keeps of the step under way, by tensor number; all of it on the training thread."""

    def __init__(self, owner: KeptFor, array: Callable[[Any], Array]) -> None:
        self._owner = owner
        self._array = array
        self._holding = Holding(array, owner.ledger.account("the step under way", share=BUDGET_SHARE))
        self._written: set[str] = set()
        self._pausing = self._only_bad = False

    # ── what is asked for ─────────────────────────────────────────────────────────────────────────────────────

    def wants(self) -> dict[int, Want]:
        """By tensor number, what to call when it passes: for all that a pausing watchpoint looks at."""
        evaluator, keys = self._owner.evaluator, self._owner.catalog.graph.tensors
        pausing = [watch for watch in evaluator.watchpoints if watch.then == "pause" and watch.enabled]
        self._pausing = bool(pausing)
        self._only_bad = all(watch.condition == "tensor_overflow" for watch in pausing)
        found: dict[int, Want] = {}
        for watch in pausing:
            want = self._bad if watch.condition == "tensor_overflow" else self._any
            for number in evaluator.watched(watch.id):
                if keys[number].role not in _LASTING and found.get(number) != self._any:
                    found[number] = want
        return found

    def tensor_added(self, number: int) -> Want | None:
        """What to call when a tensor passes for the first time; from the next step on the watchpoints are asked."""
        if not self._pausing or self._owner.catalog.graph.tensors[number].role in _LASTING:
            return None
        return self._bad if self._only_bad else self._any

    def replay_want(self, frame: Frame, earlier: Mapping[int, Any]) -> Callable[[int], Want]:
        """For the replay that fills this frame: what to call when a tensor passes there.

        `earlier` has, by id, what a tensor held before the operator now running wrote to it.
        """

        def passes(row: int, tensor: Any) -> None:
            if frame.nonfinite(row):
                self._guarded(self._born, frame, row, tensor, earlier)

        return lambda number: passes

    # ── what is kept ──────────────────────────────────────────────────────────────────────────────────────────

    def values(self, number: int) -> Array | None:
        """A tensor as it was when it passed; None when it was not kept, or was written over since."""
        return self._holding.values(number)

    def settle(self, verdict: Verdict, frame: Frame) -> None:
        """A verdict is found: copy what it speaks of, and put into the pack what fits there."""
        self._guarded(self._settle, verdict, frame)

    def let_go(self) -> None:
        """The step is left."""
        if self._holding.account.bytes:
            self._holding.learn()
            self._holding.let_go()

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────

    def _any(self, row: int, tensor: Any) -> None:
        self._guarded(self._holding.hold, self._owner.frame.tensors[row], tensor)

    def _bad(self, row: int, tensor: Any) -> None:
        frame = self._owner.frame
        # Nothing counted yet: its numbers are still on their way from the device.
        if frame.nonfinite(row) or not frame.count(row):
            self._guarded(self._holding.hold, frame.tensors[row], tensor)

    def _born(self, frame: Frame, row: int, tensor: Any, earlier: Mapping[int, Any]) -> None:
        """A bad row of a replay passes: keep it, and what it was made of when that was not bad already.

        As copies: what the replay writes to the user's tensors is undone, and weights move soon.
        """
        inputs = frame.inputs_of(row) or ()
        nan = frame.summary["nan"]
        first = frame.same_memory(row)
        made_bad = any(frame.nonfinite(one) for one in inputs)
        if made_bad and nan[first] and not any(nan[frame.same_memory(one)] for one in inputs):
            made_bad = False  # NaN of an infinity: where a constant that was meant goes wrong
        meant = not nan[first] and not frame.summary["pos_inf"][first]
        if (made_bad or meant) and self._holding.account.bytes > self._holding.account.limit_bytes // _OTHERS_SHARE:
            return
        self._holding.hold(frame.tensors[row], tensor, copy=True)
        for one in () if made_bad else inputs:
            source = frame.refs[one]() if frame.refs[one] is not None else None
            if source is not None and frame.tensors[one] not in self._holding:
                self._holding.hold(frame.tensors[one], earlier.get(id(source), source), copy=True)

    def _settle(self, verdict: Verdict, frame: Frame) -> None:
        room = MOST_WRITTEN
        for address, number, row, is_input in self._spoken_of(verdict, frame):
            values = self._holding.freeze(number)
            if values is None:
                values = self._present(frame, row, is_input=is_input)
            name = str(address)
            if values is None or name in self._written or values.nbytes > room or self._owner.writer is None:
                continue
            if not _same(values, frame, row):  # written over in place before anybody could copy it
                continue
            room -= values.nbytes
            self._written.add(name)
            self._owner.writer.tensor(address, np.ascontiguousarray(values), values.dtype.name, values.shape)

    def _spoken_of(self, verdict: Verdict, frame: Frame) -> Iterator[tuple[Address, int, int, bool]]:
        """(address, number, row, whether it went in) of every tensor the verdict names: what came out first."""
        rows = {
            str(self._owner.catalog.address(number, step=frame.step)): row for row, number in enumerate(frame.tensors)
        }
        facts = [(fact, False) for fact in verdict.outputs] + [(fact, True) for fact in verdict.inputs]
        for fact, is_input in facts:
            row = rows.get(fact.address)
            if row is not None:
                number = frame.tensors[row]
                address = self._owner.catalog.address(number, step=frame.step, rank=self._owner.rank)
                yield address, number, row, is_input

    def _present(self, frame: Frame, row: int, *, is_input: bool) -> Array | None:
        """What is still there at the end of a step that was not run again."""
        role = self._owner.catalog.graph.tensors[frame.tensors[row]].role
        if is_input and role in ("param", "buffer"):
            return None  # the update has moved it
        tensor = frame.refs[row]() if frame.refs[row] is not None else None
        return None if tensor is None else self._array(tensor)

    def _guarded(self, act: Callable[..., Any], *given: Any) -> None:
        try:
            act(*given)
        except Exception as error:
            self._owner.trouble("while keeping a tensor", error)


def _same(values: Array, frame: Frame, row: int) -> bool:
    """Whether these are the values that were summarised when the tensor passed."""
    now, then = tiles.statistics(values), frame.summary[frame.same_memory(row)]
    numbers = [(getattr(now, name), float(then[name])) for name in ("count", "nan", "pos_inf", "neg_inf", "min", "max")]
    return all(a == b or (a != a and b != b) for a, b in numbers)
