"""How every benchmark here measures: variants interleaved in one process, CPU time, medians of paired ratios, and a
control (the bare variant against itself) that says how far the machine can be trusted."""

from __future__ import annotations

import gc
import json
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

Measure = Callable[[int], tuple[float, list[dict[str, Any]]]]
"""Given a number of rounds: the control, and rows of a report."""


def interleaved(
    variants: dict[str, Callable[[], Any]],
    *,
    rounds: int,
    bare: str = "bare",
    warm: int = 2,
    within: Mapping[str, Callable[[], AbstractContextManager[Any]]] | None = None,
) -> dict[str, float]:
    """The median over rounds of each variant's CPU time divided by the bare variant's in the same round.

    `within`: by variant, what it runs inside of, which is not timed.
    """
    around = {name: (within or {}).get(name, nullcontext) for name in variants}
    for name, run in variants.items():
        for _ in range(warm):
            with around[name]():
                run()
    ratios: dict[str, list[float]] = {name: [] for name in variants}
    names = list(variants)
    gc.collect()
    gc.disable()
    try:
        for number in range(rounds):
            seconds = {}
            shift = number % len(names)  # no variant always runs in another's shadow
            for name in names[shift:] + names[:shift]:
                with around[name]():
                    began = time.process_time()
                    variants[name]()
                    seconds[name] = time.process_time() - began
            for name in names:
                ratios[name].append(seconds[name] / seconds[bare])
    finally:
        gc.enable()
    return {name: statistics.median(values) for name, values in ratios.items()}


def each(measures: Iterable[Measure], rounds: int) -> tuple[float, list[dict[str, Any]]]:
    """Everything that was measured, and the control that lies farthest from 1."""
    controls, rows = [], []
    for measure in measures:
        control, some = measure(rounds)
        controls.append(control)
        rows += some
    return max(controls, key=lambda value: abs(value - 1)), rows


def report(control: float, rows: list[dict[str, Any]], *, as_json: bool) -> None:
    """One JSON object, or a table for eyes."""
    if as_json:
        print(json.dumps({"control": round(control, 4), "rows": rows}))
        return
    print(f"control {control:.3f}")
    width = max((len(row["case"]) for row in rows), default=0)
    for row in rows:
        print(f"{row['case']:<{width}}  {row['value']:10.4g} {row['unit']}")
