"""From numbers to a story: which rows are noise, which differ, which of those caused the others.

Rows are judged in execution order, so that the error a tensor arrived with is known when its result is judged. A row
that differs is a *consequence* when something it was computed from differs already (an input, a parameter, a node
inside it), and a *cause* when all of that was fine. Where inputs were not captured, everything earlier stands in.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from misstep.compare import error_model as model
from misstep.compare.align import Pair
from misstep.compare.measures import Measures
from misstep.compare.names import ignorable, owner
from misstep.compare.result import BAD, Row, Verdict
from misstep.store.foreign.elements import is_float
from misstep.store.foreign.source import Entry

_RANK = {"input": 0, "param": 1, "buffer": 1, "output": 2, "loss": 3, "grad_output": 4, "grad_input": 5, "grad": 6}
_AT_REST = ("param", "buffer")
_GRADIENTS = ("grad_input", "grad_output", "grad")

Fetch = Callable[[Entry], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Measured:
    """A pair with its numbers; without them when the shapes do not fit."""

    pair: Pair
    measures: Measures | None
    dtypes: tuple[str, str]
    note: str = ""


def judge(
    measured: Sequence[Measured], *, missing: Sequence[tuple[Entry, str]] = (), fetch: Fetch
) -> tuple[tuple[Row, ...], tuple[str, str] | None]:
    """The rows in execution order, judged; and the two precisions where the whole of one side computes in another."""
    usual = _usual_dtypes(measured)
    start = _first_places(measured)
    items: list[tuple[tuple[float, int, int], Measured | tuple[Entry, str]]] = []
    for number, one in enumerate(measured):
        items.append((_place(one.pair.left, start, number), one))
    for number, (entry, side) in enumerate(missing):
        if entry.role in ("param", "buffer") and not ignorable(entry.name):
            items.append((_place(entry, start, number), (entry, side)))
    items.sort(key=lambda item: item[0])
    bench = _Bench(usual, _typical_scales(measured), start, fetch)
    rows = [bench.row(item) for _, item in items]
    return tuple(_missing_parts(rows)), usual if usual is not None and usual[0] != usual[1] else None


class _Bench:
    """Everything judged so far, by the node it belongs to."""

    def __init__(
        self, usual: tuple[str, str] | None, typical: dict[bool, float], start: dict[str, int], fetch: Fetch
    ) -> None:
        self._usual, self._typical, self._start, self._fetch = usual, typical, start, fetch
        self._of_node: dict[tuple[str, int], list[Row]] = defaultdict(list)
        self._parameters: dict[str, list[Row]] = defaultdict(list)
        self._bad_scopes: set[str] = set()
        self._any_bad = self._ran_badly = False
        self._noise = {False: 0.0, True: 0.0}

    def row(self, item: Measured | tuple[Entry, str]) -> Row:
        if isinstance(item, tuple):
            entry, side = item
            return Row(
                entry if side == "left" else None,
                entry if side == "right" else None,
                "missing",
                note=f"only on the {side}",
            )
        row = self._judged(item)
        self._remember(row)
        return row

    def _judged(self, one: Measured) -> Row:
        pair, entry = one.pair, one.pair.left
        verdict: Verdict = "shape"
        limit, note = model.Allowance(0.0, 0.0), ""
        if one.measures is not None:
            beside = self._beside(entry)
            limit = self._limit(one, beside)
            verdict, note = self._verdict(one, limit, beside)
        row = Row(
            pair.left,
            pair.right,
            verdict,
            one.measures,
            expected=limit.relative,
            how=pair.how,
            layout=pair.layout,
            note=note or one.note,
        )
        return self._with_part(row) if verdict in BAD else row

    def _verdict(self, one: Measured, limit: model.Allowance, beside: list[Row]) -> tuple[Verdict, str]:
        found, entry = one.measures, one.pair.left
        assert found is not None
        left, right = one.dtypes
        if left != right and one.dtypes != self._usual and (is_float(left) or is_float(right)):
            return "dtype", f"{left} against {right}"
        if found.identical:
            return "identical", f"{left} against {right}, equal values" if left != right else ""
        if found.nonfinite_mismatch:
            return "different", f"{found.nonfinite_mismatch:,} elements are NaN or Inf on one side only"
        if not is_float(left):
            inputs_noisy = any(row.verdict == "noise" for row in beside) or (not beside and self._noise[False] > 0)
            share = 1 - found.equal / found.count
            if inputs_noisy and share <= 0.01:
                return "noise", f"{share:.2%} of the decisions fell the other way"
            return "different", ""
        if found.relative <= limit.relative and found.peak <= limit.peak:
            fine = all(row.verdict == "identical" for row in beside) and bool(beside)
            if fine and entry.role == "output" and _stretched(found, limit):
                return "different", f"every element is larger by the same {found.stretch:.1e}: a factor, not rounding"
            return "noise", ""
        typical = self._typical.get(_backward(entry), 0.0)
        if _backward(entry) and found.rmse <= 64 * limit.unit * typical:
            return "noise", "both are zero up to rounding"
        if _backward(entry) and self._noise[True] > 0 and 1 - found.share_within <= 1e-3 and found.cosine > 0.999:
            return "noise", "single elements where rounding decided a comparison (ReLU, max)"
        return "different", ""

    def _limit(self, one: Measured, beside: list[Row]) -> model.Allowance:
        entry, found = one.pair.left, one.measures
        assert found is not None
        if entry.role in _AT_REST:
            return model.at_rest(one.dtypes)
        backward = _backward(entry)
        unit = model.unit_of(
            *one.dtypes, *(row.left.dtype for row in beside if row.left is not None and is_float(row.left.dtype))
        )
        close = [row for row in beside if row.close and row.measures is not None]
        inherited = max((row.relative for row in close), default=0.0 if beside else self._noise[backward])
        if entry.role in ("input", "grad_output") or not beside:
            inherited = max(inherited, self._noise[backward], self._noise[False])
        sides = [_side(row, self._fetch) for row in beside if row.measures is not None and row.left is not None]
        if backward:
            return self._backward_limit(entry, found, sides, unit, inherited)
        kind = "" if entry.role == "input" else entry.node_type
        limit = model.allowance(kind, entry.shape, found, sides, unit=unit, inherited=inherited)
        over = found.relative > limit.relative and found.relative < 1e4 * limit.relative
        if over and model.family_of(kind) == "norm":
            given = next((side for side in sides if side.role == "input"), None)
            weight = next((side.shape for side in sides if side.role == "param"), ())
            if given is not None:
                gain = model.norm_gain(kind, given.fetch(), weight)
                limit = replace(limit, relative=limit.relative * gain)
        return limit

    def _backward_limit(
        self, entry: Entry, found: Measures, sides: list[model.Side], unit: float, inherited: float
    ) -> model.Allowance:
        incoming = next((side for side in sides if side.role == "grad_output"), None)
        inputs = [side for side in sides if side.role == "input"]
        weights = [side for side in sides if side.role == "param" and len(side.shape) >= 2]
        limit = model.allowance(
            entry.node_type, entry.shape, found, sides, unit=unit, inherited=inherited, backward=True
        )
        hidden = model.gradient_cancellation(found, entry.shape, incoming, inputs, weights, entry.role)
        return replace(limit, relative=limit.relative * hidden)

    def _beside(self, entry: Entry) -> list[Row]:
        """What the tensor was computed from, as far as it was captured: inputs and parameters of its own node."""
        node = owner(entry.name) if entry.role == "grad" else entry.name
        same = self._of_node.get((node, entry.call), [])
        if entry.role in ("output", "loss"):
            inputs = [row for row in same if row.entry.role == "input"]
        elif entry.role in ("grad_input", "grad"):
            inputs = [row for row in same if row.entry.role in ("input", "grad_output")]
        else:
            return []
        return inputs + self._parameters.get(node, []) if inputs else []

    def _with_part(self, row: Row) -> Row:
        entry = row.entry
        if entry.role in _AT_REST:
            # Values stored after the step (MindSpore's dump, or ours) stand behind what ran, and follow from it.
            behind = entry.updated or not self._has_run(entry)
            return replace(row, part="consequence" if self._ran_badly and behind else "cause")
        beside = self._beside(entry)
        if entry.role in ("output", "loss", "grad_input", "grad") and beside:
            node = owner(entry.name) if entry.role == "grad" else entry.name
            # The outermost module has no name of its own and is called by its type: everything lies inside it.
            inside = node in self._bad_scopes or (node == entry.node_type and self._ran_badly)
            explained = inside or any(not one.close for one in beside)
            if entry.role in ("grad_input", "grad"):
                explained = explained or self._any_bad
        else:
            explained = self._any_bad
        return replace(row, part="consequence" if explained else "cause")

    def _has_run(self, entry: Entry) -> bool:
        return entry.name in self._start or owner(entry.name) in self._start

    def _remember(self, row: Row) -> None:
        entry = row.entry
        if entry.role in _AT_REST:
            self._parameters[owner(entry.name)].append(row)
            if owner(entry.name) != entry.name:
                self._parameters[entry.name].append(row)
        else:
            self._of_node[entry.name, entry.call].append(row)
        if row.verdict in BAD:
            self._any_bad = True
            self._ran_badly = self._ran_badly or entry.role not in _AT_REST
            scope = entry.name if entry.role not in _AT_REST else owner(entry.name)
            outer = owner(scope)
            while outer:
                self._bad_scopes.add(outer)
                outer = owner(outer)
            self._bad_scopes.add("")
        elif row.measures is not None and entry.role not in _AT_REST and not math.isinf(row.relative):
            backward = _backward(entry)
            self._noise[backward] = max(self._noise[backward], row.relative)


def _backward(entry: Entry) -> bool:
    """True for gradients, also for those MindSpore computes by operators of their own."""
    return entry.role in _GRADIENTS or entry.name.startswith("Gradients/")


def _stretched(found: Measures, limit: model.Allowance) -> bool:
    """All elements longer by one factor: the sign of a wrong epsilon or scale too small for its size to show."""
    return (
        limit.unit <= model.UNIT_ROUNDOFF["float32"]
        and found.count >= 256
        and found.stretch > 10 * limit.unit
        and found.stretch > 0.8 * found.relative
    )


def _side(row: Row, fetch: Fetch) -> model.Side:
    entry, measures = row.entry, row.measures
    assert measures is not None
    return model.Side(entry.shape, measures, entry.role, lambda: fetch(entry))


def _usual_dtypes(measured: Sequence[Measured]) -> tuple[str, str] | None:
    """The pair of float types most rows have: a whole run in another precision is one fact, not a thousand."""
    seen = Counter(one.dtypes for one in measured if is_float(one.dtypes[0]) and is_float(one.dtypes[1]))
    if not seen:
        return None
    pair, times = seen.most_common(1)[0]
    return pair if pair[0] == pair[1] or times > 0.6 * sum(seen.values()) else (pair[0], pair[0])


def _typical_scales(measured: Sequence[Measured]) -> dict[bool, float]:
    found: dict[bool, list[float]] = {False: [], True: []}
    for one in measured:
        if one.measures is not None and one.measures.scale > 0 and is_float(one.dtypes[0]):
            found[_backward(one.pair.left)].append(one.measures.scale)
    return {backward: statistics.median(scales) if scales else 0.0 for backward, scales in found.items()}


def _first_places(measured: Sequence[Measured]) -> dict[str, int]:
    """Where each scope begins to run: its parameters are told there."""
    start: dict[str, int] = {}
    for one in measured:
        entry = one.pair.left
        if entry.role in ("input", "output", "loss"):
            scope = entry.name
            while True:
                if entry.order < start.get(scope, math.inf):
                    start[scope] = entry.order
                if not scope:
                    break
                scope = owner(scope)
    return start


def _place(entry: Entry, start: dict[str, int], number: int) -> tuple[float, int, int]:
    if entry.updated:
        return math.inf, _RANK[entry.role], number
    if entry.role in _AT_REST:
        scope = entry.name if entry.name in start else owner(entry.name)
        return start.get(scope, entry.order) if scope else entry.order, _RANK[entry.role], number
    return entry.order, _RANK[entry.role], number


def _missing_parts(rows: list[Row]) -> list[Row]:
    """A parameter that only one side has is the cause when its module's result differs for no other reason."""
    cause_at = {row.entry.name: at for at, row in enumerate(rows) if row.part == "cause" and row.entry.role == "output"}
    told = list(rows)
    for at, row in enumerate(rows):
        if row.verdict == "missing":
            output = cause_at.get(owner(row.entry.name))
            if output is not None:
                told[at] = replace(row, part="cause")
                told[output] = replace(told[output], part="consequence")
    return told
