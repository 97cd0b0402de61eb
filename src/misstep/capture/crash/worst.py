"""The rows of a step that the flight recorder keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from misstep.adapters.step.frame import Catalog
from misstep.core.stats import DTYPE_NAMES, Array, TensorStats
from misstep.store.codec import encode

_WORST = 8
"""Rows of a step that are kept in the ring: the non-finite ones first, then the largest."""


def worst_rows(catalog: Catalog, head: Array, summary: Array) -> Iterator[list[Any]]:
    """[address, NaN, Inf, min, max] of a few rows: the non-finite ones first, then the largest."""
    bad = np.flatnonzero((summary["nan"] + summary["pos_inf"] + summary["neg_inf"]) > 0)[:_WORST]
    rows = bad.tolist()
    if len(rows) < _WORST < len(head):  # at guard level the rows are the loss and what is bad
        largest = np.maximum(np.abs(summary["min"]), np.abs(summary["max"]))
        order = np.argsort(-np.nan_to_num(largest, nan=0.0))[: _WORST - len(rows)].tolist()
        rows += [row for row in order if row not in rows]
    graph = catalog.graph
    for row in rows:
        stats = TensorStats.of(
            summary[row],
            dtype=DTYPE_NAMES[int(head["dtype"][row])],
            shape=graph.shapes[int(head["shape"][row])],
        )
        address = catalog.address(int(head["tensor"][row]))
        yield [str(address), stats.nan, stats.pos_inf + stats.neg_inf, encode(stats.min), encode(stats.max)]
