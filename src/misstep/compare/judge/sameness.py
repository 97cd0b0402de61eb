"""From numbers to a story: which rows are noise, which differ, which of those caused the others.

Rows are judged step by step in execution order, so that the error a tensor arrived with is known when its result is
judged. A row that differs is a *cause* when its error exceeds what the errors of its inputs explain (an input, a
parameter, a node inside it), and a *consequence* otherwise. Where inputs were not captured, everything earlier stands
in.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from misstep.compare.align import Pair
from misstep.compare.judge import error_model as model
from misstep.compare.judge import updates
from misstep.compare.judge.measures import Measures
from misstep.compare.judge.order import AT_REST, Place, first_places, place_of
from misstep.compare.judge.precision import Precision, precision_of
from misstep.compare.names import ignorable, owner
from misstep.compare.result import BAD, Row, Sameness
from misstep.errors import TensorUnavailable
from misstep.store.foreign.elements import is_float
from misstep.store.foreign.source import Entry

_GRADIENTS = ("grad_input", "grad_output", "grad")
_FRESH = 10.0
"""An error this far above what its inputs explain was born here, whatever was wrong before."""
_FRESH_NONFINITE = 1e-3
"""NaN on one side only follows from inputs that differ by more than this; from less it is a cause of its own."""
_WEIGHT_UNITS = 4.0
"""Roundings in which two optimizers may compute one update."""
_BUFFER_UNITS = 32.0
"""The same for a running mean: a sum over the batch."""

Fetch = Callable[[Entry], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Measured:
    """A pair with its numbers; without them when the shapes do not fit."""

    pair: Pair
    measures: Measures | None
    dtypes: tuple[str, str]
    note: str = ""


def judge(
    measured: Sequence[Measured],
    *,
    missing: Sequence[tuple[Entry, str]] = (),
    fetch: Fetch,
    fetch_right: Fetch | None = None,
) -> tuple[tuple[Row, ...], Precision]:
    """The rows in execution order, judged; and the two precisions where one side computes in another."""
    precision = precision_of([(one.pair.left, one.dtypes) for one in measured])
    start = first_places(one.pair.left for one in measured)
    items: list[tuple[Place, Measured | tuple[Entry, str]]] = []
    for number, one in enumerate(measured):
        items.append((place_of(one.pair.left, start, number), one))
    for number, (entry, side) in enumerate(missing):
        if entry.role in AT_REST and not ignorable(entry.name):
            items.append((place_of(entry, start, number), (entry, side)))
    items.sort(key=lambda item: item[0])
    bench = _Bench(precision, _typical_scales(measured), start, fetch, fetch_right or fetch)
    rows = [bench.row(item) for _, item in items]
    return tuple(_once(updates.as_one(_missing_parts(rows)))), precision


class _Bench:
    """Everything judged so far, by the node it belongs to."""

    def __init__(
        self,
        precision: Precision,
        typical: dict[bool, float],
        start: dict[str, tuple[int, int]],
        fetch: Fetch,
        fetch_right: Fetch,
    ) -> None:
        self._precision, self._typical, self._start = precision, typical, start
        self._fetch, self._fetch_right = fetch, fetch_right
        self._of_node: dict[tuple[int | None, str, int], list[Row]] = defaultdict(list)
        self._parameters: dict[str, dict[str, Row]] = defaultdict(dict)
        self._bad_scopes: dict[str, float] = {}
        """Scopes that hold something bad: the largest error inside."""
        self._any_bad = self._ran_badly = False
        self._worst = 0.0
        self._noise = {False: 0.0, True: 0.0}

    def row(self, item: Measured | tuple[Entry, str]) -> Row:
        if isinstance(item, tuple):
            entry, side = item
            ours, theirs = (entry, None) if side == "left" else (None, entry)
            return Row(ours, theirs, "missing", note=f"only on the {side}")
        row = self._judged(item)
        self._remember(row)
        return row

    def _judged(self, one: Measured) -> Row:
        pair, entry = one.pair, one.pair.left
        sameness: Sameness = "shape"
        limit, note = model.Allowance(0.0, 0.0), ""
        if one.measures is not None:
            beside = self._beside(entry)
            limit = self._limit(one, beside, self._inherited(entry, beside))
            sameness, note = self._sameness(one, limit, beside)
        row = Row(
            pair.left,
            pair.right,
            sameness,
            one.measures,
            expected=limit.relative,
            how=pair.how,
            layout=pair.layout,
            note=note or one.note,
        )
        return replace(row, part="consequence" if self._explained(one, row) else "cause") if sameness in BAD else row

    def _sameness(self, one: Measured, limit: model.Allowance, beside: list[Row]) -> tuple[Sameness, str]:
        found, entry = one.measures, one.pair.left
        assert found is not None
        left, right = one.dtypes
        if left != right and not self._precision.usual(one.dtypes) and (is_float(left) or is_float(right)):
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

    def _inherited(self, entry: Entry, beside: list[Row]) -> float:
        """The largest error among what the tensor was computed from, as far as it is noise."""
        backward = _backward(entry)
        close = [row.error for row in beside if row.close and row.measures is not None]
        inherited = max(close, default=0.0 if beside else self._noise[backward])
        if entry.role in ("input", "grad_output") or not beside:
            inherited = max(inherited, self._noise[backward], self._noise[False])
        return inherited

    def _limit(self, one: Measured, beside: list[Row], inherited: float) -> model.Allowance:
        entry, found = one.pair.left, one.measures
        assert found is not None
        if entry.role in AT_REST:
            return self._updated_limit(one) if entry.updated else model.at_rest(one.dtypes)
        unit = model.unit_of(
            *one.dtypes,
            *(row.left.dtype for row in beside if row.left is not None and is_float(row.left.dtype)),
            *self._precision.coarse,
        )
        sides = [_side(row, self._fetch) for row in beside if row.measures is not None and row.left is not None]
        if _backward(entry):
            return self._backward_limit(entry, found, sides, unit, inherited)
        kind = "" if entry.role == "input" else entry.node_type
        limit = model.allowance(kind, entry.shape, found, sides, unit=unit, inherited=inherited)
        over = found.relative > limit.relative and found.relative < 1e4 * limit.relative
        if over and model.family_of(kind) == "norm":
            given = next((side for side in sides if side.role == "input"), None)
            weight = next((side.shape for side in sides if side.role == "param"), ())
            values = self._values(given.fetch) if given is not None else None
            if values is not None:
                limit = replace(limit, relative=limit.relative * model.norm_gain(kind, values, weight))
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

    def _updated_limit(self, one: Measured) -> model.Allowance:
        """What an update explains: the weight it began with and its gradient; of a buffer, its module's input."""
        entry, unit = one.pair.left, model.unit_of(*one.dtypes)
        before = self._parameters[entry.name].get(entry.name)
        if entry.role == "buffer":
            given = [row.error for row in self._given(entry) if row.close]
            carried = before.error if before is not None and before.close else 0.0
            return model.Allowance(_BUFFER_UNITS * unit + 2 * carried + 10 * max(given, default=0.0), unit)
        return updates.allowance(
            _WEIGHT_UNITS, unit, before, self._gradient(entry), lambda: self._moved(one.pair, before)
        )

    def _moved(self, pair: Pair, before: Row | None) -> float:
        """How far the update went, on the side that went further."""
        if before is None or before.left is None or before.right is None:
            return updates.LARGEST_UPDATE
        sides = ((self._fetch, pair.left, before.left), (self._fetch_right, pair.right, before.right))
        try:
            return max(updates.how_far(fetch(after), fetch(known)) for fetch, after, known in sides)
        except TensorUnavailable:  # only statistics were kept
            return updates.LARGEST_UPDATE

    def _values(self, fetch: Callable[[], NDArray[Any]]) -> NDArray[Any] | None:
        try:
            return fetch()
        except TensorUnavailable:  # only its statistics were kept
            return None

    def _gradient(self, entry: Entry) -> Row | None:
        same = self._of_node.get((entry.step, entry.name, 1), [])
        return next((row for row in same if row.entry.role == "grad"), None)

    def _given(self, entry: Entry) -> list[Row]:
        """What the module of a buffer was given in the step that updated it."""
        same = self._of_node.get((entry.step, owner(entry.name), 1), [])
        return [row for row in same if row.entry.role == "input"]

    def _beside(self, entry: Entry) -> list[Row]:
        """What the tensor was computed from, as far as it was captured: inputs and parameters of its own node."""
        node = owner(entry.name) if entry.role == "grad" else entry.name
        same = self._of_node.get((entry.step, node, entry.call), [])
        if entry.role in ("output", "loss"):
            inputs = [row for row in same if row.entry.role == "input"]
        elif entry.role in ("grad_input", "grad"):
            inputs = [row for row in same if row.entry.role in ("input", "grad_output")]
        else:
            return []
        return [*inputs, *self._parameters[node].values()] if inputs else []

    # ── cause or consequence ──────────────────────────────────────────────────────────────────────────────────

    def _explained(self, one: Measured, row: Row) -> bool:
        """Whether what was wrong already accounts for the error of this row."""
        entry = row.entry
        if entry.role in AT_REST:
            return self._update_explained(entry)
        carried = self._carried(entry)
        if not carried:
            return False
        if math.isinf(carried) or row.measures is None or row.verdict == "dtype":
            return True
        if row.measures.nonfinite_mismatch:
            return carried > _FRESH_NONFINITE
        limit = self._limit(one, self._beside(entry), max(carried, self._inherited(entry, self._beside(entry))))
        return not row.relative > _FRESH * limit.relative

    def _carried(self, entry: Entry) -> float:
        """The largest error of what was wrong before this row and may have led to it; 0 when all of it was fine."""
        beside = self._beside(entry)
        if entry.role not in ("output", "loss", "grad_input", "grad") or not beside:
            return self._worst if self._any_bad else 0.0
        node = owner(entry.name) if entry.role == "grad" else entry.name
        errors = [row.error for row in beside if not row.close]
        if node in self._bad_scopes:
            errors.append(self._bad_scopes[node])
        # The outermost module has no name of its own and is called by its type: everything lies inside it.
        if self._any_bad and (entry.role in ("grad_input", "grad") or (node == entry.node_type and self._ran_badly)):
            errors.append(self._worst)
        return max(errors, default=0.0)

    def _update_explained(self, entry: Entry) -> bool:
        if not self._ran_badly and not self._any_bad:
            return False
        if not entry.updated:
            # Values stored after the step (MindSpore's dump) stand behind what ran, and follow from it.
            return self._ran_badly and not self._has_run(entry)
        before = self._parameters[entry.name].get(entry.name)
        gradient = self._gradient(entry)
        if entry.role == "param" and gradient is not None and before is not None:
            return not gradient.close or not before.close
        if entry.role == "buffer":
            return any(not row.close for row in (*self._given(entry), *([before] if before else [])))
        return self._ran_badly or (before is not None and not before.close)

    def _has_run(self, entry: Entry) -> bool:
        return entry.name in self._start or owner(entry.name) in self._start

    def _remember(self, row: Row) -> None:
        entry = row.entry
        if entry.role in AT_REST:
            self._parameters[owner(entry.name)][entry.name] = row
            self._parameters[entry.name][entry.name] = row
        else:
            self._of_node[entry.step, entry.name, entry.call].append(row)
        if row.verdict in BAD:
            self._any_bad = True
            self._worst = max(self._worst, row.error)
            self._ran_badly = self._ran_badly or entry.role not in AT_REST
            outer = owner(entry.name if entry.role not in AT_REST else owner(entry.name))
            while outer:
                self._bad_scopes[outer] = max(self._bad_scopes.get(outer, 0.0), row.error)
                outer = owner(outer)
            self._bad_scopes[""] = self._worst
        elif row.measures is not None and entry.role not in AT_REST and not math.isinf(row.relative):
            backward = _backward(entry)
            self._noise[backward] = max(self._noise[backward], row.error)


def _backward(entry: Entry) -> bool:
    """True for gradients, also for those MindSpore computes by operators of their own."""
    return entry.role in _GRADIENTS or entry.name.startswith("Gradients/")


def _stretched(found: Measures, limit: model.Allowance) -> bool:
    """All elements longer by one factor: the sign of a wrong epsilon or scale too small for its size to show."""
    return (
        limit.unit <= model.UNIT_ROUNDOFF["float32"]
        and not found.estimated
        and found.count >= 256
        and found.stretch > 10 * limit.unit
        and found.stretch > 0.8 * found.relative
    )


def _side(row: Row, fetch: Fetch) -> model.Side:
    entry, measures = row.entry, row.measures
    assert measures is not None
    return model.Side(entry.shape, measures, entry.role, lambda: fetch(entry))


def _typical_scales(measured: Sequence[Measured]) -> dict[bool, float]:
    found: dict[bool, list[float]] = {False: [], True: []}
    for one in measured:
        if one.measures is not None and one.measures.scale > 0 and is_float(one.dtypes[0]):
            found[_backward(one.pair.left)].append(one.measures.scale)
    return {backward: statistics.median(scales) if scales else 0.0 for backward, scales in found.items()}


def _once(rows: Sequence[Row]) -> list[Row]:
    """A node that was a cause in one step is no news in the next."""
    seen: dict[tuple[str, str, int], int | None] = {}
    told = []
    for row in rows:
        if row.part == "cause":
            step = seen.setdefault((row.entry.name, row.entry.role, row.entry.slot), row.entry.step)
            row = row if step == row.entry.step else replace(row, part="consequence")
        told.append(row)
    return told


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
