"""Two collections of tensors laid side by side: paired, measured, judged.

`diff` takes whatever `source_of` knows (runs, dumps, folders, checkpoints, dictionaries). Measuring is the only part
that touches values; it runs on all cores, because the kernel leaves Python alone while it reads.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misstep.compare.align import Alignment, Pair, align
from misstep.compare.judge.batches import Batches, batches_of
from misstep.compare.judge.hints import hint
from misstep.compare.judge.measures import measure
from misstep.compare.judge.order import moved
from misstep.compare.judge.sameness import Measured, judge
from misstep.compare.judge.updates import why
from misstep.compare.mapfile import NameMap, map_of, read_map
from misstep.compare.opening import by_statistics, of_one_rank, open_both, steps_of_both
from misstep.compare.result import Comparison, Row
from misstep.compare.setups import changed_settings
from misstep.errors import CompareError, TensorUnavailable
from misstep.store.foreign.elements import name_of
from misstep.store.foreign.source import Entry, TensorSource, select

_HINTS = 4
"""Causes that get a second look at their values; the first is what people read."""


def diff(
    left: object,
    right: object,
    *,
    step: int | None = None,
    right_step: int | None = None,
    rank: int | None = None,
    right_rank: int | None = None,
    names: NameMap | Mapping[str, object] | str | Path | None = None,
    threads: int | None = None,
) -> Comparison:
    """Two runs, dumps, folders, checkpoints or dictionaries of arrays, side by side in execution order.

    >>> diff("missteps/torch", "missteps/mindspore").first_difference
    >>> diff("run/a", "run/b", step=120, names="map.toml").summary()

    `names` is a map file, or a dictionary left name → right name. `right_step` and `right_rank` are the left side's
    unless said.
    """
    one, other = open_both(left, right)
    one, said = of_one_rank(select(one, step=step, rank=rank))
    other, also = of_one_rank(
        select(
            other,
            step=step if right_step is None else right_step,
            rank=rank if right_rank is None else right_rank,
        )
    )
    found = compare_sources(one, other, names=_names(names), threads=threads)
    ranks = [f"the {side} side has {words}" for side, words in (("left", said), ("right", also)) if words]
    return replace(found, facts=(*found.facts, *ranks))


Progress = Callable[[int, int], None]
"""Told how many pairs are measured, of how many; whoever wants an end raises."""


def compare_sources(
    left: TensorSource,
    right: TensorSource,
    *,
    names: NameMap | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Pair, measure and judge everything two sources hold."""
    begun = time.perf_counter()
    ours, theirs, facts = steps_of_both(left.entries(), right.entries())
    found = align(ours, theirs, names=names)
    if not found.pairs:
        raise CompareError(_nothing_in_common(left, right, found))
    batches, found = batches_of(found)
    measured, unavailable = _measure_all(left, right, found.pairs, batches, threads=threads, progress=progress)
    rows, precision = judge(measured, missing=_missing(found), fetch=left.array, fetch_right=right.array)
    rows = _with_hints(rows, left, right, batches)
    couples = [(pair.left, pair.right) for pair in found.pairs]
    estimated = sum(row.measures is not None and row.measures.estimated for row in rows)
    facts += [precision.said, batches.said, _said_order(moved(couples))]
    if estimated:
        facts.append(
            "only statistics were kept, so those are compared"
            if estimated == len(rows)
            else f"of {estimated} tensors only the statistics were kept and compared"
        )
    return Comparison(
        left=left.label,
        right=right.label,
        rows=rows,
        only_left=tuple(found.only_left),
        only_right=tuple(found.only_right),
        dtypes=precision.whole,
        seconds=time.perf_counter() - begun,
        notes=tuple(unavailable),
        settings=changed_settings(left, right, couples),
        facts=tuple(filter(None, facts)),
    )


def _measure_all(
    left: TensorSource,
    right: TensorSource,
    pairs: Sequence[Pair],
    batches: Batches,
    *,
    threads: int | None,
    progress: Progress | None = None,
) -> tuple[list[Measured], list[str]]:
    results: list[Measured | None] = [None] * len(pairs)
    failures: list[BaseException] = []
    unavailable: list[str] = []
    places = iter(range(len(pairs)))

    def work() -> None:
        # next() on one iterator is atomic under the GIL: threads share the list without a lock or a task object each.
        for at in places:
            if failures:
                return
            try:
                if progress is not None:
                    progress(at, len(pairs))
                results[at] = _measured(left, right, pairs[at], batches)
            except TensorUnavailable as why:
                unavailable.append(str(why))
            except BaseException as wrong:
                failures.append(wrong)
                return

    wanted = threads or min(
        8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    helpers = [threading.Thread(target=work, name="misstep-compare") for _ in range(min(wanted, len(pairs)) - 1)]
    for helper in helpers:
        helper.start()
    work()
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[0]
    return [one for one in results if one is not None], unavailable


def _measured(left: TensorSource, right: TensorSource, pair: Pair, batches: Batches) -> Measured:
    try:
        one, other = batches.arrays(pair.left, pair.right, left, right)
    except TensorUnavailable:
        known = by_statistics(left, right, pair)
        if known is None:
            raise
        return known
    dtypes = name_of(one.dtype), name_of(other.dtype)
    if pair.layout:
        other = turned(other, pair.layout, one.shape)
    if one.shape != other.shape:
        return Measured(pair, None, dtypes, f"shape {_shape(one.shape)} against {_shape(other.shape)}")
    return Measured(pair, measure(one, other), dtypes)


def turned(array: NDArray[Any], layout: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """The right array laid like the left one: `transpose`, `reshape`, or an order of axes such as `0 2 3 1`."""
    if layout == "transpose":
        return array.T
    if layout == "reshape":
        return array.reshape(shape) if array.size == int(np.prod(shape, dtype=np.int64)) else array
    try:
        axes = [int(axis) for axis in layout.replace(",", " ").split()]
        return array.transpose(axes)
    except ValueError as wrong:
        raise CompareError(
            f"the layout {layout!r} does not fit a tensor of shape {array.shape}: {wrong}; "
            f"use transpose, reshape, or an order of its axes such as '0 2 3 1'"
        ) from None


def _with_hints(rows: tuple[Row, ...], left: TensorSource, right: TensorSource, batches: Batches) -> tuple[Row, ...]:
    told, given = list(rows), 0
    for at, row in enumerate(rows):
        if row.part == "cause" and row.left is not None and row.right is not None and given < _HINTS:
            given += 1
            try:
                said = _hint(row, rows, left, right, batches)
            except TensorUnavailable:  # only its statistics were kept
                continue
            if said:
                told[at] = replace(row, note=f"{row.note}; {said}" if row.note else said)
    return tuple(told)


def _hint(row: Row, rows: Sequence[Row], left: TensorSource, right: TensorSource, batches: Batches) -> str:
    assert row.left is not None
    assert row.right is not None
    if row.entry.updated and row.entry.role == "param":
        return why(row, rows, left.array, right.array)
    one, other = batches.arrays(row.left, row.right, left, right)
    return hint(one, turned(other, row.layout, one.shape) if row.layout else other, row.measures)


def _said_order(swapped: Sequence[tuple[str, str]]) -> str:
    if not swapped:
        return ""
    first, second = swapped[0]
    more = f", and {len(swapped) - 1} more" if len(swapped) > 1 else ""
    return f"the right side runs in another order: {second} before {first}{more}"


def _missing(found: Alignment) -> list[tuple[Entry, str]]:
    return [(entry, "left") for entry in found.only_left] + [(entry, "right") for entry in found.only_right]


def _names(given: NameMap | Mapping[str, object] | str | Path | None) -> NameMap | None:
    if given is None or isinstance(given, NameMap):
        return given
    return map_of(given) if isinstance(given, Mapping) else read_map(given)


def _nothing_in_common(left: TensorSource, right: TensorSource, found: Alignment) -> str:
    def some(entries: Sequence[Entry]) -> str:
        return ", ".join(dict.fromkeys(entry.name for entry in entries[:20])) if entries else "nothing"

    return (
        f"{left.label} and {right.label} have no tensor in common, by name or by order and shape; "
        f"left holds {some(found.only_left)[:200]}; right holds {some(found.only_right)[:200]}. "
        f"Write a map file and pass it with --map"
    )


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "scalar"
