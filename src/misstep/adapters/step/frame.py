"""What one training step showed: a catalog of names that only grows, and a frame of rows that is filled anew each step.

    adapter ──reserve(tensor, shape, dtype)──► row number ──kernel writes──► summary[row]
                                                   │ end of step
                                                   ▼
                       finish() → (head, summary), two arrays, in execution order

This is the hot path: a row costs a few list appends; arrays are built once a step. Whether a node's inputs were already
bad is worked out at the end, and only for rows that turned out bad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from misstep import kernels
from misstep.core.address import Address, Role
from misstep.core.graph import Edge, Graph, Node, NodeKind, Phase, Source, TensorKey
from misstep.core.stats import DTYPE_NAMES, HEAD, INPUTS_BAD, INPUTS_SEEN, SUMMARY, Array

New = Node | TensorKey | Edge | tuple[int, ...]


class Catalog:
    """The names of a run: nodes, tensors and shapes by number, each told once to whoever writes them down."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.on_tensor: Callable[[int], None] = lambda tensor: None
        """Called with the number of every new tensor, before its first row."""
        self._tensors: dict[tuple[int, Role, int, int], int] = {}
        self._shapes: dict[tuple[int, ...], int] = {}
        self._edges: set[tuple[int, int, int, int]] = set()
        self._news: list[New] = []
        self._order = 0

    def node(
        self,
        name: str,
        kind: NodeKind,
        type: str,
        *,
        phase: Phase = "forward",
        source: Source | None = None,
        graph: str = "",
        forward: str = "",
        settings: Callable[[], dict[str, str]] = dict,
    ) -> int:
        """The number of a node, made when it is first met; only then is it asked how it was set up."""
        known = self.graph.node(name)
        if known is not None:
            return known.index
        self._order += 1
        node = Node(len(self.graph.nodes), name, kind, type, phase, source, self._order, graph, forward, settings())
        self.graph.add_node(node)
        self._news.append(node)
        return node.index

    def learn_source(self, node: int, source: Source) -> None:
        """A node's line became known after the node."""
        better = replace(self.graph.nodes[node], source=source)
        self.graph.add_node(better)
        self._news.append(better)

    def tensor(self, node: int, role: Role, slot: int = 0, call: int = 1) -> int:
        """The number of a tensor: node, role, slot and call, at any step."""
        number = self._tensors.get((node, role, slot, call))
        if number is None:
            number = self._tensors[node, role, slot, call] = len(self.graph.tensors)
            key = TensorKey(node, role, slot, call)
            self.graph.tensors.append(key)
            self._news.append(key)
            self.on_tensor(number)
        return number

    def shape(self, shape: tuple[int, ...]) -> int:
        number = self._shapes.get(shape)
        if number is None:
            shape = tuple(int(size) for size in shape)
            number = self._shapes[shape] = len(self.graph.shapes)
            self.graph.shapes.append(shape)
            self._news.append(shape)
        return number

    def edge(
        self,
        source: int,
        target: int,
        source_slot: int = 0,
        target_slot: int = 0,
        dtype: str = "",
        shape: tuple[int, ...] = (),
    ) -> None:
        key = (source, target, source_slot, target_slot)
        if key not in self._edges:
            self._edges.add(key)
            edge = Edge(source, target, source_slot, target_slot, dtype, tuple(shape))
            self.graph.edges.append(edge)
            self._news.append(edge)

    def address(self, tensor: int, *, step: int | None = None, rank: int | None = None) -> Address:
        return self.graph.address(tensor, step=step, rank=rank)

    @property
    def has_news(self) -> bool:
        return bool(self._news)

    def news(self) -> Iterator[New]:
        """What was added since the last call."""
        news, self._news = self._news, []
        yield from news


class Frame:
    """The rows of the step under way."""

    def __init__(self, *, capacity: int = 1024) -> None:
        self.summary = np.zeros(capacity, SUMMARY)
        """Kernels write here; `summary[row]` belongs to the row `reserve` returned."""
        self.step = self.begun = 0
        """Of which step, and how many have begun in it: a step whose update was skipped begins again."""
        self.names_inputs = False
        """A dump wants to know what every operator was given, though the memory has passed under another name."""
        self._clear()

    def _clear(self) -> None:
        self.tensors: list[int] = []
        self.refs: list[Any] = []
        """For each row a weak reference to its tensor, or None: what a paused debugger can still look at."""
        self._shapes: list[int] = []
        self._dtypes: list[int] = []
        self._inputs: list[tuple[int, ...] | None] = []
        self._aliases: dict[int, int] = {}
        self._made_by: dict[int, int] = {}
        self._inside: dict[int, Sequence[int]] = {}
        self._expected: dict[int, Sequence[int]] = {}

    def begin(self, step: int) -> None:
        """Forget the previous step."""
        self.step = step
        self.begun += 1
        if self.tensors or self._expected:
            self._clear()

    def __len__(self) -> int:
        return len(self.tensors)

    def reserve(
        self,
        tensor: int,
        shape: int,
        dtype: int,
        inputs: tuple[int, ...] | None = None,
        ref: Any = None,
        inside: Sequence[int] = (),
    ) -> int:
        """A new row; the caller has a kernel fill `summary[row]`.

        `inputs` are the rows the value was computed from; `inside`, for a module, what its children made on the way.
        """
        row = len(self.tensors)
        if row >= len(self.summary):
            grown = np.zeros(2 * len(self.summary), SUMMARY)
            grown[:row] = self.summary
            self.summary = grown
        self.tensors.append(tensor)
        self.refs.append(ref)
        self._shapes.append(shape)
        self._dtypes.append(dtype)
        self._inputs.append(inputs)
        if inside:
            self._inside[row] = inside
        return row

    def alias(
        self,
        tensor: int,
        of: int,
        inputs: tuple[int, ...] | None = None,
        ref: Any = None,
        inside: Sequence[int] = (),
    ) -> int:
        """A row for memory that row `of` has summarised already in this step."""
        holder = ref if ref is not None else self.refs[of]
        row = self.reserve(tensor, self._shapes[of], self._dtypes[of], inputs, holder, inside)
        self._aliases[row] = self._aliases.get(of, of)
        return row

    def trace(self, row: int, made_by: int) -> None:
        """`row` (a gradient, a weight, the loss) holds what the operator of row `made_by` left there."""
        if made_by >= 0:
            self._made_by[row] = made_by

    def expect(self, tensor: int, rows: Sequence[int]) -> None:
        """A row of this tensor, when it comes, was computed as one of these rows: the one that holds the same."""
        self._expected[tensor] = [*self._expected.get(tensor, ()), *rows]

    def source_of(self, row: int) -> int:
        """The row whose memory this one shares or continues, or -1."""
        return self._aliases.get(row, self._made_by.get(row, -1))

    def same_memory(self, row: int) -> int:
        """The first row of the step that saw this memory: `row` itself unless it is an alias."""
        return self._aliases.get(row, row)

    def count(self, row: int) -> int:
        """How many elements a row already summarised has."""
        return int(self.summary["count"][self._aliases.get(row, row)])

    def is_float(self, row: int) -> bool:
        return DTYPE_NAMES[self._dtypes[row]].startswith(("float", "bfloat"))

    def inputs_of(self, row: int) -> tuple[int, ...] | None:
        return self._inputs[row]

    @property
    def all_finite(self) -> bool:
        """Whether no row summarised so far holds NaN or Inf."""
        return kernels.first_bad(self.summary, len(self.tensors)) < 0

    def nonfinite(self, row: int) -> bool:
        """Whether a row already summarised holds NaN or Inf."""
        record = self.summary[self._aliases.get(row, row)]
        return bool(record["nan"] or record["pos_inf"] or record["neg_inf"])

    def finish(self) -> tuple[Array, Array]:
        """(head, summary) of all rows so far, in execution order. The summary is a view: copy it to keep it."""
        count = len(self.tensors)
        head, summary = np.empty(count, HEAD), self.summary[:count]
        bad = kernels.finish_rows(
            self.tensors, self._shapes, self._dtypes, self._inputs, self._aliases, self.step, head, self.summary
        )
        if self._expected:
            self._join_expected(summary)
            head["flags"][[row for row, inputs in enumerate(self._inputs) if inputs is not None]] |= INPUTS_SEEN
        if bad:
            self._mark_births(summary, head["flags"])
        return head, summary

    def _join_expected(self, summary: Array) -> None:
        for row, tensor in enumerate(self.tensors):
            record = summary[row].tobytes() if tensor in self._expected else b""
            made = next((one for one in self._expected.get(tensor, ()) if summary[one].tobytes() == record), None)
            if made is not None and made < row:
                self._inputs[row] = (made,)

    def _mark_births(self, summary: Array, flags: Array) -> None:
        """Set INPUTS_BAD on every bad row that an earlier one explains; bad with INPUTS_SEEN alone is an origin.

        A module whose child was handed something bad by the module's own code is an origin although the child's
        output is bad too: only a child that is an origin, or follows from one, explains the module around it.
        """
        bad = (summary["nan"] + summary["pos_inf"] + summary["neg_inf"]) > 0
        # An input that holds only -Inf is an attention mask, and explains nothing by itself.
        guilty = (summary["nan"] + summary["pos_inf"]) > 0
        explained: set[int] = set()
        for row in np.flatnonzero(bad).tolist():
            inputs = self._inputs[row]
            blamed = [source for source in inputs or () if guilty[source]]
            if blamed:
                flags[row] |= INPUTS_BAD
                known = any(source in explained for source in blamed)
            elif any(source in explained for source in self._inside.get(row, ())):
                flags[row] |= INPUTS_BAD
                known = True
            else:
                known = inputs is not None or self.source_of(row) in explained
            if known:
                explained.add(row)
