"""How a tensor becomes a row of the step: measured, summarised once, and aliased wherever else it passes.

Memory is known by its address while the tensor that holds it lives. A framework that runs ahead of Python is not made
to wait at every module: with a `glance` tensors are held as they pass and read together in `settle`, known by identity
until then.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from misstep.adapters.base import Listener
from misstep.adapters.step.calls import Call, Measure, Memory
from misstep.adapters.step.frame import Frame
from misstep.core.address import Role
from misstep.core.stats import ITEM_BYTES
from misstep.errors import AdapterError
from misstep.kernels import nonfinite_many, summarize_many, summarize_memory

MOST_HELD_MB = 256
"""Tensors held until `settle`, which frameworks would have freed by then."""


class Rows:
    """The tensors of the step under way that were seen."""

    def __init__(self, listener: Listener, measure: Measure, glance: Measure | None = None) -> None:
        self.listener = listener
        self.measure = measure
        """Waits for the values."""
        self.glance = glance
        """Waits for nothing; what it answers is read in `settle`."""
        self.holding = False
        """Read tensors in `settle` and not as they pass."""
        self.keeping = False
        """Hold every tensor until the step ends: operators hand out wrappers that die before their memory does."""
        self._forget_rows()

    def _forget_rows(self) -> None:
        self._seen: dict[int, tuple[Callable[[], Any], int, tuple[int, ...], int]] = {}
        self._starts: dict[int, int] = {}
        """By address: where the memory of what was seen there begins, once somebody writes."""
        self._held: list[tuple[int, Any, Memory]] = []
        self._held_bytes = 0

    def put(
        self,
        call: Call,
        role: Role,
        slot: int,
        tensor: Any,
        inputs: tuple[int, ...] | None,
        *,
        fresh: bool = False,
        memory: Memory | None = None,
    ) -> int | None:
        """A row for one tensor: an alias when it was summarised already in this step and nobody wrote to it since."""
        memory = memory or self._look_at(tensor)
        if memory is None:
            return None
        listener = self.listener
        number = listener.catalog.tensor(call.node, role, slot, call.call)
        known = None if fresh else self._known(memory)
        if known is not None:
            row = listener.frame.alias(number, known, (*(inputs or ()), known))
        else:
            reference = weakref.ref(tensor)
            row = listener.frame.reserve(number, listener.catalog.shape(memory.shape), memory.dtype, inputs, reference)
            self._remember(tensor, memory, row)
        if memory.address < 0:
            self._hold(row, tensor, memory)
            return row
        if known is None:
            summarize_memory(memory.address, memory.elements, memory.dtype, listener.frame.summary, row)
        want = listener.wants.get(number)
        if want is not None:
            want(row, tensor)
        return row

    def _look_at(self, tensor: Any) -> Memory | None:
        if self.holding and self.glance is not None and not self.listener.stepping:
            return self.glance(tensor)
        return self.measure(tensor)

    def _hold(self, row: int, tensor: Any, memory: Memory) -> None:
        self._held.append((row, tensor, memory))
        if self.listener.frame.same_memory(row) == row:
            self._held_bytes += memory.elements * ITEM_BYTES[memory.dtype]
            if self._held_bytes > MOST_HELD_MB * 2**20:
                self.settle()

    def settle(self) -> None:
        """Read everything that was held as it passed."""
        held, self._held, self._held_bytes = self._held, [], 0
        frame, wants = self.listener.frame, self.listener.wants
        for row, tensor, glanced in held:
            if frame.same_memory(row) == row:
                memory = self.measure(tensor)
                if memory is None or memory.version != glanced.version:
                    self._overwritten(row)
                    continue
                summarize_memory(memory.address, memory.elements, memory.dtype, frame.summary, row)
            want = wants.get(frame.tensors[row])
            if want is not None:
                want(row, tensor)

    def _overwritten(self, row: int) -> None:
        """Somebody wrote to a tensor before it was read: from here on everything is read as it passes."""
        self.holding, self.glance = False, None
        key = self.listener.catalog.graph.tensors[self.listener.frame.tensors[row]]
        name = f"{self.listener.catalog.graph.nodes[key.node].name}:{key.role}"
        why = AdapterError(f"{name} was written to in place before it was read; its row of this step is empty")
        self.listener.trouble("while reading a tensor", why)

    def written(self, where: int, storage: Callable[[Any], int]) -> None:
        """Somebody wrote to the memory that begins here: what it holds now was not seen yet, whoever shows it."""
        starts = self._starts
        for address, (holder, *_) in list(self._seen.items()):
            held = holder()
            if address not in starts and held is not None:
                starts[address] = storage(held)
            if starts.get(address, where) == where:
                del self._seen[address]

    def holds(self, tensor: Any, row: int) -> None:
        """Somebody put the values that `row` saw into this tensor."""
        memory = self.measure(tensor)
        if memory is not None:
            self._remember(tensor, memory, row)

    def row_of(self, tensor: Any) -> int | None:
        """The row that first saw this tensor in this step."""
        memory = self._look_at(tensor)
        return None if memory is None else self._known(memory)

    def initial(self, named: Iterable[tuple[str, Any]]) -> Frame:
        """The weights before training: a frame of its own, of step 0."""
        frame = Frame()
        frame.begin(0)
        self._put_many([(name, "param", tensor, None) for name, tensor in named], frame)
        return frame

    def bad_only(self, tensors: Sequence[Any]) -> set[int]:
        """Positions of the tensors that hold NaN or Inf: all that the guard level keeps."""
        memories = [(place, memory) for place, tensor in enumerate(tensors) if (memory := self.measure(tensor))]
        if not memories:
            return set()
        flags = nonfinite_many(
            [memory.address for _, memory in memories],
            [memory.elements for _, memory in memories],
            [memory.dtype for _, memory in memories],
        )
        return {place for (place, _), bad in zip(memories, flags) if bad}

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────

    def _known(self, memory: Memory) -> int | None:
        seen = self._seen.get(memory.address)
        if seen is None or seen[0]() is None or seen[2] != memory.shape or seen[3] != memory.version:
            return None
        return seen[1]

    def _remember(self, tensor: Any, memory: Memory, row: int) -> None:
        if memory.keep is not None:
            return  # a copy was read, and its address will be somebody else's soon
        holder: Callable[[], Any] = (lambda: tensor) if self.keeping else weakref.ref(tensor)
        self._seen[memory.address] = (holder, row, memory.shape, memory.version)
        if self._starts:
            self._starts.pop(memory.address, None)

    def _find_original(self, row: int) -> None:
        """Something bad comes out of memory nobody has seen: MindSpore copies a view before a kernel that cannot read
        it, and tells no one. It came from the last row that looked the same; without one it came from outside."""
        frame = self.listener.frame
        same = np.ones(row, bool)
        for name in ("count", "nan", "pos_inf", "neg_inf", "min", "max"):
            earlier, here = frame.summary[name][:row], frame.summary[name][row]
            same &= (earlier == here) | ((earlier != earlier) & (here != here))
        found = np.flatnonzero(same)
        if len(found):
            frame.trace(row, int(found[-1]))

    def _put_many(self, batch: Sequence[tuple[str, Role, Any, tuple[int, ...] | None]], frame: Frame) -> list[int]:
        """Parameter rows: consecutive, so that one kernel call fills them all."""
        listener, catalog = self.listener, self.listener.catalog
        rows: list[int] = []
        memories: list[Memory] = []
        for name, role, tensor, inputs in batch:
            memory = self.measure(tensor)
            if memory is None:
                continue
            number = catalog.tensor(catalog.node(name, "parameter", "Parameter"), role)
            rows.append(frame.reserve(number, catalog.shape(memory.shape), memory.dtype, inputs, weakref.ref(tensor)))
            memories.append(memory)
        if not rows:
            return []
        summarize_many(
            [memory.address for memory in memories],
            [memory.elements for memory in memories],
            [memory.dtype for memory in memories],
            frame.summary,
            rows[0],
        )
        if listener.wants and frame is listener.frame:
            for row, (_, _, tensor, _) in zip(rows, batch):
                want = listener.wants.get(frame.tensors[row])
                if want is not None:
                    want(row, tensor)
        return rows
