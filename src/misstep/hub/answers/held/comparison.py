"""A comparison and a checkpoint as the page gets them: tables by column, numbers that JSON can carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from misstep.compare.checkpoints import inspect
from misstep.compare.layers import turned
from misstep.compare.mapfile import map_text
from misstep.compare.result import Comparison, Row
from misstep.core.stats import Array
from misstep.errors import CompareError, TensorUnavailable
from misstep.hub.answers.held.things import Opened, bytes_of
from misstep.protocol.things import CheckpointView, ComparisonColumns, ComparisonTable, Unmatched, WeightView
from misstep.protocol.views import Number, number, stats_view
from misstep.store.checkpoint import Checkpoint
from misstep.store.checkpoint.record import section_of
from misstep.store.foreign.source import Entry, TensorSource

MOST_EXTRAS = 50


def comparison_table(found: Comparison, *, id: str, a: str, b: str, map: str, checkpoints: bool) -> ComparisonTable:
    """Everything a comparison knows, a list for each field."""
    rows = found.rows
    return ComparisonTable(
        id=id,
        a=a,
        b=b,
        map=map,
        close=bool(found),
        summary=found.summary(),
        counts=found.counts,
        first=_place(rows, found.first_difference),
        cause=_place(rows, found.cause),
        rows=_columns(rows),
        only_left=tuple(_unmatched(entry) for entry in found.only_left),
        only_right=tuple(_unmatched(entry) for entry in found.only_right),
        notes=found.notes[:200],
        seconds=found.seconds,
        dtypes=found.dtypes or (),
        sections=tuple(section_of(row.entry.name) for row in rows) if checkpoints else (),
    )


def map_of_pairs(found: Comparison) -> str:
    """The pairs found, as the map file to edit: what `misstep diff --write-map` writes."""
    pairs = {row.left.name: row.right.name for row in found.rows if row.left is not None and row.right is not None}
    return map_text(
        pairs.items(),
        only_left=[entry.name for entry in found.only_left],
        only_right=[entry.name for entry in found.only_right],
    )


def both(found: Comparison, place: int, left: TensorSource, right: TensorSource) -> tuple[Array, Array, Row]:
    """The two arrays of a row, the right one laid like the left."""
    if not 0 <= place < len(found.rows):
        raise CompareError(f"the comparison has {len(found.rows)} rows; {place} is none of them")
    row = found.rows[place]
    if row.left is None or row.right is None:
        side = "left" if row.right is None else "right"
        raise TensorUnavailable(f"{row.name} is only on the {side}", address=row.name, reason="unknown")
    one, other = left.array(row.left), right.array(row.right)
    if row.layout:
        other = turned(other, row.layout, one.shape)
    if one.shape != other.shape:
        raise CompareError(f"{row.name} has the shape {list(one.shape)} on the left, {list(other.shape)} on the right")
    return one, other, row


def checkpoint_view(opened: Opened) -> CheckpointView:
    """What a checkpoint holds, weight by weight."""
    if not isinstance(opened.source, Checkpoint):
        raise CompareError(f"{opened.found.name} is no checkpoint file")
    found = inspect(opened.source)
    entries = {entry.key: entry for entry in opened.source.entries()}
    return CheckpointView(
        of=opened.found.name,
        format=found.format,
        parameters=found.parameters,
        checksum=found.checksum,
        summary=found.summary(),
        weights=tuple(
            WeightView(
                name=one.name,
                address=str(entries[one.name].address),
                section=one.section,
                dtype=one.dtype,
                shape=one.shape,
                bytes=bytes_of(entries[one.name]),
                trainable=one.trainable,
                state=one.state,
                stats=stats_view(one.stats),
            )
            for one in found.weights
        ),
        extras={str(name): str(value)[:200] for name, value in list(found.extras.items())[:MOST_EXTRAS]},
    )


def _place(rows: Sequence[Row], wanted: Row | None) -> int:
    return next((at for at, row in enumerate(rows) if row is wanted), -1)


def _columns(rows: Sequence[Row]) -> ComparisonColumns:
    def measured(name: str) -> tuple[Number | None, ...]:
        return tuple(None if row.measures is None else number(getattr(row.measures, name)) for row in rows)

    def side(which: str, text: Any) -> tuple[str, ...]:
        entries: list[Entry | None] = [getattr(row, which) for row in rows]
        return tuple("" if entry is None else str(text(entry)) for entry in entries)

    return ComparisonColumns(
        left=side("left", str),
        right=side("right", str),
        left_node=side("left", lambda entry: entry.name),
        right_node=side("right", lambda entry: entry.name),
        left_address=side("left", lambda entry: entry.address),
        right_address=side("right", lambda entry: entry.address),
        type=tuple(row.entry.node_type for row in rows),
        dtype=tuple(row.entry.dtype for row in rows),
        shape=tuple(row.entry.shape for row in rows),
        step=tuple(row.entry.step for row in rows),
        source=tuple(row.entry.source_line for row in rows),
        verdict=tuple(row.verdict for row in rows),
        part=tuple(row.part for row in rows),
        how=tuple(row.how for row in rows),
        layout=tuple(row.layout for row in rows),
        note=tuple(row.note for row in rows),
        count=tuple(0 if row.measures is None else row.measures.count for row in rows),
        equal=tuple(0 if row.measures is None else row.measures.equal for row in rows),
        relative=measured("relative"),
        expected=tuple(None if row.measures is None else number(row.expected) for row in rows),
        max_abs=measured("max_abs"),
        max_rel=measured("max_rel"),
        cosine=measured("cosine"),
        max_ulp=measured("max_ulp"),
        share_within=measured("share_within"),
    )


def _unmatched(entry: Entry) -> Unmatched:
    return Unmatched(str(entry), entry.name, entry.node_type, entry.dtype, entry.shape, str(entry.address))
