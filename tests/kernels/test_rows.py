"""The rows of a step: heads, aliases, and the bytes of stats.bin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from misstep.core.stats import ALIAS, HEAD, INPUTS_SEEN, ROW, SUMMARY
from misstep.store.statsfile import checks


def test_heads_carry_the_order_of_the_rows_and_whether_inputs_were_seen(kernels: Any) -> None:
    head, summary = np.ones(3, HEAD), np.zeros(4, SUMMARY)
    assert kernels.finish_rows([7, 8, 9], [0, 1, 0], [1, 1, 3], [None, (0,), ()], {}, 5, head, summary) == 0
    assert head["tensor"].tolist() == [7, 8, 9]
    assert head["shape"].tolist() == [0, 1, 0]
    assert head["dtype"].tolist() == [1, 1, 3]
    assert head["step"].tolist() == [5, 5, 5]
    assert head["order"].tolist() == [0, 1, 2]
    assert head["flags"].tolist() == [0, INPUTS_SEEN, INPUTS_SEEN]


def test_an_alias_holds_the_summary_of_the_row_that_was_read(kernels: Any) -> None:
    head, summary = np.zeros(3, HEAD), np.zeros(3, SUMMARY)
    summary["nan"][0], summary["max"][0] = 2, 4.5
    assert kernels.finish_rows([1, 2, 3], [0] * 3, [1] * 3, [None] * 3, {2: 0}, 1, head, summary) == 2
    assert summary[2] == summary[0]
    assert head["flags"].tolist() == [0, 0, ALIAS]


def test_an_alias_outside_of_the_rows_is_refused(kernels: Any) -> None:
    with pytest.raises(IndexError):
        kernels.finish_rows([1], [0], [1], [None], {0: 3}, 1, np.zeros(1, HEAD), np.zeros(8, SUMMARY))


def test_more_rows_than_the_table_holds_are_refused(kernels: Any) -> None:
    with pytest.raises(IndexError):
        kernels.finish_rows([1, 2], [0, 0], [1, 1], [None, None], {}, 1, np.zeros(1, HEAD), np.zeros(2, SUMMARY))


@pytest.mark.parametrize("field", ["nan", "pos_inf", "neg_inf"])
def test_the_first_row_that_is_not_finite_is_found(kernels: Any, field: str) -> None:
    summary = np.zeros(6, SUMMARY)
    assert kernels.first_bad(summary, 6) == -1
    summary[field][[3, 5]] = 1
    assert kernels.first_bad(summary, 6) == 3
    assert kernels.first_bad(summary, 3) == -1


def test_sealed_rows_hold_both_halves_and_check_themselves(kernels: Any) -> None:
    random = np.random.default_rng(0)
    head = np.frombuffer(random.bytes(5 * HEAD.itemsize), HEAD)
    summary = np.frombuffer(random.bytes(5 * SUMMARY.itemsize), SUMMARY)
    rows = np.zeros(8, ROW)
    kernels.seal_rows(head.copy(), summary.copy(), rows, 5)
    for name in ("tensor", "step", "order", "flags", "dtype", "shape"):
        assert rows[name][:5].tolist() == head[name].tolist()
    assert rows[:5].view(np.uint8).reshape(5, -1)[:, HEAD.itemsize :].tobytes() == summary.tobytes()
    assert (rows["check"][:5] == checks(rows[:5])).all()
    assert not rows[5:].view(np.uint8).any()
