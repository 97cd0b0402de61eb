"""The rows of a finished step, put together by numpy: the twin of native/steprows.h."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from misstep.core.stats import ALIAS, HEAD, INPUTS_SEEN, ROW
from misstep.kernels._numpy_memory import as_rows, check_rows
from misstep.kernels.records import CHECK_START, CHECK_WEIGHTS, SUMMARY, Table

_HALVES = np.dtype([("head", f"V{HEAD.itemsize}"), ("summary", f"V{SUMMARY.itemsize}")])


def finish_rows(
    tensors: list[int],
    shapes: list[int],
    dtypes: list[int],
    inputs: list[tuple[int, ...] | None],
    aliases: dict[int, int],
    step: int,
    head: Table,
    summary: Table,
    /,
) -> int:
    count = len(tensors)
    if not count == len(shapes) == len(dtypes) == len(inputs):
        raise TypeError("finish_rows takes four lists of one length: tensors, shapes, dtypes, inputs")
    check_rows(head, 0, count, HEAD.itemsize)
    check_rows(summary, 0, count, SUMMARY.itemsize)
    heads, rows = as_rows(head, HEAD)[:count], as_rows(summary, SUMMARY)[:count]
    heads["tensor"], heads["dtype"], heads["shape"] = tensors, dtypes, shapes
    heads["step"], heads["spare"], heads["check"] = step, 0, 0
    heads["order"] = np.arange(count)
    heads["flags"] = [0 if sources is None else INPUTS_SEEN for sources in inputs]
    if aliases:
        if not all(0 <= row < count and 0 <= of < count for row, of in aliases.items()):
            raise IndexError(f"an alias outside of {count} rows")
        rows[list(aliases)] = rows[list(aliases.values())]
        heads["flags"][list(aliases)] |= ALIAS
    return int(np.count_nonzero(_bad(rows)))


def first_bad(summary: Table, count: int, /) -> int:
    check_rows(summary, 0, count, SUMMARY.itemsize)
    bad = np.flatnonzero(_bad(as_rows(summary, SUMMARY)[:count]))
    return int(bad[0]) if len(bad) else -1


def seal_rows(head: Table, summary: Table, out: Table, count: int, /) -> None:
    check_rows(head, 0, count, HEAD.itemsize)
    check_rows(summary, 0, count, SUMMARY.itemsize)
    check_rows(out, 0, count, ROW.itemsize)
    rows = as_rows(out, ROW)[:count]
    halves = rows.view(_HALVES)
    halves["head"] = as_rows(head, HEAD)[:count].view(_HALVES["head"])
    halves["summary"] = as_rows(summary, SUMMARY)[:count].view(_HALVES["summary"])
    words = rows.view("<u4").reshape(-1, ROW.itemsize // 4)
    rows["check"] = words @ CHECK_WEIGHTS + np.uint32(CHECK_START)


def step_line(
    number: int,
    time: float,
    loss: float | None,
    seconds: float,
    rate: float | None,
    overhead: float,
    level: int,
    optimizer: str,
    rows: int,
    norm: float | None,
    /,
) -> bytes:
    if any(mark in '"\\' or mark < " " for mark in optimizer):
        raise ValueError("a step that does not fit a short line")
    given: list[Any] = [
        number,
        _rounded(time, 3),
        loss,
        _rounded(seconds, 6),
        rate,
        _rounded(overhead, 3),
        level,
        f'"{optimizer}"',
    ]
    if rows or norm is not None:
        given.append(rows)
    if norm is not None:
        given.append(norm)
    texts = ("null" if one is None else one if isinstance(one, str) else repr(one) for one in given)
    body = ("[" + ",".join(texts)).encode()
    return body + b",%d]\n" % zlib.crc32(body)


def _rounded(value: float, places: int) -> str:
    whole, rest = divmod(abs(round(value * 10**places)), 10**places)
    return f"{'-' * (value < 0)}{whole}.{f'{rest:0{places}d}'.rstrip('0') or '0'}"


def _bad(rows: Table) -> Table:
    bad: Table = (rows["nan"] != 0) | (rows["pos_inf"] != 0) | (rows["neg_inf"] != 0)
    return bad
