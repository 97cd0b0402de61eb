"""Numbers over the steps of a run: curves, one tensor's history, and every tensor of one step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from misstep.core.address import Address
from misstep.core.stats import DTYPE_NAMES, INPUTS_BAD, SUMMARY
from misstep.errors import AddressError, nearest
from misstep.protocol.payloads import ScalarSeries, StatsHistory, StepTable
from misstep.protocol.views import Number, number
from misstep.store.reading.reader import Run

TAGS = ("loss", "learning_rate", "gradient_norm", "seconds", "loss_scale", "overhead")


def scalars(run: Run, tag: str, rank: int, *, points: int, timed: bool = False) -> ScalarSeries:
    """A curve of the steps, thinned so that every bucket keeps its least and its greatest."""
    if tag not in TAGS:
        raise AddressError(f"no curve is called {tag!r}{nearest(tag, TAGS)}", address=tag)
    # Step 0 is what was there before training: it took no time, and a curve that begins at zero would hide the rest.
    all_steps = [step for step in run.steps(rank) if step.seconds or tag not in ("seconds", "overhead")]
    steps = [(step.number, getattr(step, tag)) for step in all_steps if getattr(step, tag) is not None]
    if tag == "overhead":  # a step that took no time of its own: more than all of it cannot be ours
        steps = [(step, min(share, 1.0)) for step, share in steps]
    kept = _thinned(steps, points)
    ends = {step.number: max(0.0, step.time - run.info.started) for step in all_steps} if timed else {}
    return ScalarSeries(
        tag=tag,
        rank=rank,
        x=tuple(x for x, _ in kept),
        y=tuple(number(y) for _, y in kept),
        total=len(steps),
        method="all" if len(kept) == len(steps) else "min-max",
        time=tuple(ends[x] for x, _ in kept) if timed else (),
    )


def history(run: Run, address: str, *, first: int | None, last: int | None, points: int) -> StatsHistory:
    """The statistics of one tensor over the steps; thinned evenly when there are too many."""
    wanted = Address.parse(address)
    rows = run.history(Address(wanted.node, wanted.role, wanted.slot, None, wanted.rank, wanted.call))
    if first is not None:
        rows = rows[rows["step"] >= first]
    if last is not None:
        rows = rows[rows["step"] <= last]
    total = len(rows)
    if total > points:
        rows = rows[np.unique(np.linspace(0, total - 1, points).astype(int))]
    shapes = run.graph(wanted.rank).shapes
    shape = int(rows["shape"][-1]) if total else 0
    return StatsHistory(
        address=address,
        step=tuple(int(step) for step in rows["step"]),
        columns=_columns(rows),
        dtype=DTYPE_NAMES[int(rows["dtype"][-1])] if total else "unknown",
        shape=tuple(shapes[shape]) if shape < len(shapes) else (),
        total=total,
    )


def step_table(run: Run, step: int, rank: int, *, only: Sequence[str] = ()) -> StepTable:
    """Every tensor of a step, in execution order; all statistics, or only those named, without dtypes and shapes."""
    graph, facts = run.graph(rank), run.step(step, rank)
    rows = run.rows(step, rank)
    known = len(graph.shapes)
    return StepTable(
        run=run.name,
        rank=rank,
        step=step,
        tensor=tuple(int(value) for value in rows["tensor"]) if len(rows) else (),
        dtype=tuple(DTYPE_NAMES[int(value)] for value in rows["dtype"]) if len(rows) and not only else (),
        shape=tuple(graph.shapes[int(at)] if at < known else () for at in rows["shape"])
        if len(rows) and not only
        else (),
        inputs_bad=tuple(bool(flags & INPUTS_BAD) for flags in rows["flags"]) if len(rows) else (),
        columns=_columns(rows, only),
        loss=number(facts.loss) if facts is not None else None,
        seconds=facts.seconds if facts is not None else 0.0,
    )


def _columns(rows: Any, only: Sequence[str] = ()) -> dict[str, tuple[Number, ...]]:
    out: dict[str, tuple[Number, ...]] = {}
    for name in [one for one in SUMMARY.names or () if not only or one in only]:
        values = rows[name].tolist() if len(rows) else []
        out[name] = tuple(value if isinstance(value, int) else number(value) for value in values)  # type: ignore[misc]
    return out


def _thinned(points: list[tuple[int, Any]], most: int) -> list[tuple[int, Any]]:
    if len(points) <= most or most < 4:
        return points
    buckets = most // 2
    size = math.ceil(len(points) / buckets)
    kept: list[tuple[int, Any]] = []
    for start in range(0, len(points), size):
        bucket = points[start : start + size]
        bad = [point for point in bucket if not math.isfinite(point[1])]
        finite = [point for point in bucket if math.isfinite(point[1])] or bad
        chosen = {min(finite, key=lambda point: point[1]), max(finite, key=lambda point: point[1]), *bad[:1]}
        kept += sorted(chosen, key=lambda point: point[0])
    return kept
