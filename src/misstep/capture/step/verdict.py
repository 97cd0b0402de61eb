"""Where the first bad value of a step was born.

With operators captured, walk back from what went bad in the end (loss, gradient, weight) through non-finite inputs to
the operator whose inputs were finite. This passes harmless infinities by: an attention mask that no loss depends on is
never on the path. If the path begins at an operator that fills in a constant, the Inf was meant, and the verdict is
the place where it first became NaN.

With modules only, the first output in execution order that is bad while the inputs were finite; children come before
the modules that hold them, so the innermost wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import numpy as np

from misstep.adapters.step.frame import Catalog, Frame
from misstep.core.address import Role
from misstep.core.finding import Precision, TensorFact, Verdict
from misstep.core.graph import Node, Phase, scope_of
from misstep.core.stats import DTYPE_NAMES, INPUTS_BAD, INPUTS_SEEN, Array, TensorStats
from misstep.sentences.verdict import HIDDEN

SINKS: tuple[Role, ...] = ("loss", "grad", "param")
"""What training lives by: when these are finite, an Inf elsewhere did no harm."""

FILLS = frozenset(
    {"masked_fill", "masked_fill_", "fill_", "full", "full_like", "where", "constant_pad_nd", "scalar_tensor", "triu",
     "tril", "MaskedFill", "Fill", "FillV2", "Select", "Full", "FullLike"}
)  # fmt: skip
"""Operators that put a constant into a tensor."""

HIDES_NAN = frozenset({"ReLU", "ReLU6", "MaxPool", "MaxPoolWithArgmax", "MaxPoolWithMask"})
"""Operators of MindSpore whose CPU kernels make a number of NaN (measured: ReLU gives 0, MaxPool leaves it out)."""


def find_verdict(catalog: Catalog, frame: Frame, head: Array, summary: Array, *, rank: int = 0) -> Verdict | None:
    """The verdict on a finished frame; None when nothing that matters is bad."""
    return _Search(catalog, frame, head, summary, rank).run()


class _Search:
    def __init__(self, catalog: Catalog, frame: Frame, head: Array, summary: Array, rank: int) -> None:
        self.catalog, self.frame, self.head, self.summary, self.rank = catalog, frame, head, summary, rank
        self.nan = summary["nan"] > 0
        self.guilty = self.nan | (summary["pos_inf"] > 0)
        self.bad = self.guilty | (summary["neg_inf"] > 0)

    def run(self) -> Verdict | None:
        bad = [int(row) for row in np.flatnonzero(self.bad)]
        if not bad:
            return None
        sinks = [row for row in bad if self.role(row) in SINKS]
        if any(self.node(row).kind == "operator" for row in bad):
            return self.by_operators(sinks) if sinks else self.hidden()
        if not sinks and not any(self.nan[row] for row in bad):
            return None
        return self.by_modules(bad)

    # ── operators ─────────────────────────────────────────────────────────────────────────────────────────────

    def by_operators(self, sinks: list[int]) -> Verdict | None:
        path = self.walk_back(sinks[0])
        birth = path[-1]
        if self.node(birth).type.rpartition(".")[2] in FILLS and not self.nan[birth]:
            # The constant was meant; the fault is where it first turned into NaN.
            turned = [row for row in path if self.nan[row] and self.role(row) == "output"]
            birth = turned[-1] if turned else birth
        if self.role(birth) == "input":
            birth = self.before_the_network(birth)
        node = self.node(birth)
        if len(path) > 1 and self.role(birth) == "input" and self.node(path[-2]).phase == "optimizer":
            # A learning rate, or state of the optimizer: what used it is where training was hurt.
            user = path[-2]
            inputs = self.frame.inputs_of(user) or ()
            return self.make(user, "optimizer", self.node(user), inputs=inputs, outputs=(user,), precision="operator")
        if node.kind == "parameter" and self.role(birth) == "input":  # a weight was bad when the step began
            user = next((row for row in range(birth, len(self.head)) if birth in (self.frame.inputs_of(row) or ())), -1)
            if user >= 0:
                return self.make(birth, "input", self.node(user), inputs=(), outputs=(birth,), precision="operator")
        if node.kind != "operator":
            return self.by_modules([row for row in range(len(self.head)) if self.bad[row]])
        inputs = self.frame.inputs_of(birth) or ()
        if self.role(birth) == "input":
            return self.make(birth, "input", node, inputs=(), outputs=(birth,), precision="operator")
        return self.make(birth, node.phase, node, inputs=inputs, outputs=(birth,), precision="operator")

    def before_the_network(self, birth: int) -> int:
        """What the script itself computed before its network ran was moved about (sliced, stacked) unseen: an operator
        of its own that made something bad of finite values is where a bad input comes from."""
        for row in range(birth):
            node = self.node(row)
            if node.kind == "module" or node.phase != "forward":
                break
            made_here = self.guilty[row] and self.role(row) == "output" and scope_of(node.name) in ("", "script")
            if made_here and self.is_origin(row) and node.type.rpartition(".")[2] not in FILLS:
                return row
        return birth

    def hidden(self) -> Verdict | None:
        """NaN that an operator took in and swallowed: nothing later shows it, training goes on with wrong values."""
        for row in range(len(self.head)):
            node = self.node(row)
            if self.bad[row] or node.type not in HIDES_NAN or self.role(row) != "output":
                continue
            taken = [source for source in self.frame.inputs_of(row) or () if self.nan[source]]
            verdict = self.by_operators(taken) if taken else None
            if verdict is not None:
                return replace(verdict, note=HIDDEN.of(node=node.name, type=node.type))
        return None

    def walk_back(self, row: int) -> list[int]:
        """From a bad row to where its badness came from, always to the earliest bad input."""
        path = [row]
        seen = {row}
        while True:
            before = self.frame.source_of(row)
            candidates = [before] if before >= 0 and self.bad[before] else []
            if not candidates:
                candidates = [source for source in self.frame.inputs_of(row) or () if self.bad[source]]
            candidates = [source for source in candidates if source not in seen]
            if not candidates:
                return path
            row = min(candidates)
            seen.add(row)
            path.append(row)

    # ── modules ───────────────────────────────────────────────────────────────────────────────────────────────

    def by_modules(self, bad: list[int]) -> Verdict | None:
        """The first bad row in time tells; a mask (only -Inf) handed to a module does not count while others do."""
        masks = {row for row in bad if self.role(row) in ("input", "buffer") and not self.guilty[row]}
        first = next((row for row in bad if row not in masks), bad[0])
        role, node = self.role(first), self.node(first)
        inputs = self.frame.inputs_of(first) or ()
        if role == "input" and node.kind == "module":
            caller = self.catalog.graph.node(scope_of(node.name))
            if caller is None:  # nobody of ours computed it: the batch was bad
                return self.make(first, "input", node, inputs=(), outputs=(first,), precision="module")
            return self.make(first, caller.phase, caller, inputs=(), outputs=(first,), precision="module")
        if role == "loss":
            known: Precision = "module" if inputs else "step"
            return self.make(first, "loss", node, inputs=inputs, outputs=(first,), precision=known)
        if role in ("grad_output", "grad_input"):
            return self.by_gradient(first, bad)
        if role == "grad":
            owner = self.catalog.graph.node(scope_of(node.name)) or node
            known = "module" if owner.kind == "module" and inputs else "step"
            return self.make(first, "backward", owner, inputs=inputs, outputs=(first,), precision=known)
        if role == "param":
            phase: Phase = "optimizer" if self.head["step"][first] else "input"  # step 0: training was handed it
            return self.make(first, phase, node, inputs=inputs, outputs=(first,), precision="module")
        return self.make(first, node.phase, node, inputs=inputs, outputs=(first,), precision="module")

    def by_gradient(self, first: int, bad: list[int]) -> Verdict:
        """The innermost module that made a bad gradient of finite ones, else the code that called its maker."""
        same = self.frame.source_of(first) if self.frame.source_of(first) >= 0 else first
        group = [row for row in bad if row == same or self.frame.source_of(row) == same]
        makers = [row for row in group if self.role(row) == "grad_input" and self.is_origin(row)]
        if makers:
            row = max(makers, key=lambda one: len(self.node(one).name))
            inputs = self.frame.inputs_of(row) or ()
            return self.make(row, "backward", self.node(row), inputs=inputs, outputs=(row,), precision="module")
        node = self.node(first)
        caller = self.catalog.graph.node(scope_of(node.name)) or node
        return self.make(first, "backward", caller, inputs=(), outputs=(first,), precision="module")

    def is_origin(self, row: int) -> bool:
        flags = int(self.head["flags"][row])
        return bool(flags & INPUTS_SEEN) and not flags & INPUTS_BAD

    # ── words ─────────────────────────────────────────────────────────────────────────────────────────────────

    def node(self, row: int) -> Node:
        graph = self.catalog.graph
        return graph.nodes[graph.tensors[int(self.head["tensor"][row])].node]

    def role(self, row: int) -> Role:
        return self.catalog.graph.tensors[int(self.head["tensor"][row])].role

    def make(
        self, row: int, phase: Phase, node: Node, *, inputs: Iterable[int], outputs: Iterable[int], precision: Precision
    ) -> Verdict:
        kind: Literal["nan", "inf"] = "nan" if self.nan[row] else "inf"
        source = node.source
        op = node.type
        if phase == "optimizer" and node.kind == "parameter":
            optimizer = self.catalog.graph.node("optimizer")
            if optimizer is not None:
                source, op = optimizer.source, optimizer.type
        return Verdict(
            step=int(self.head["step"][row]),
            rank=self.rank,
            phase=phase,
            kind=kind,
            node=node.name,
            op=op,
            source=source,
            inputs=tuple(self.fact(one) for one in inputs),
            outputs=tuple(self.fact(one) for one in outputs),
            precision=precision,
        )

    def fact(self, row: int) -> TensorFact:
        shape = self.catalog.graph.shapes[int(self.head["shape"][row])]
        dtype = DTYPE_NAMES[int(self.head["dtype"][row])]
        stats = TensorStats.of(self.summary[row], dtype=dtype, shape=shape)
        address = self.catalog.address(int(self.head["tensor"][row]), step=int(self.head["step"][row]))
        return TensorFact(
            address=str(address),
            description=stats.describe(),
            nan=stats.nan,
            inf=stats.pos_inf + stats.neg_inf,
            count=stats.count,
            min=None if np.isnan(stats.min) else stats.min,
            max=None if np.isnan(stats.max) else stats.max,
            shape=shape,
            dtype=dtype,
        )
