"""How every benchmark here measures: variants interleaved in one process, CPU time, medians of paired ratios, and a
control (the bare variant against itself) that says how far the machine can be trusted."""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

Rows = list[dict[str, Any]]
Measure = Callable[[int], tuple[float, Rows]]
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


def each(measures: Iterable[Measure], rounds: int) -> tuple[float, Rows]:
    """Everything that was measured, and the control that lies farthest from 1."""
    controls, rows = [], []
    for measure in measures:
        control, some = measure(rounds)
        controls.append(control)
        rows += some
    return farthest(controls), rows


def farthest(controls: Iterable[float]) -> float:
    """The control that strayed furthest from 1: how much of a ratio noise alone can make."""
    return max(controls, key=lambda ratio: max(ratio, 1 / ratio))


def options(doc: str, *, rounds: int | None = None) -> argparse.ArgumentParser:
    """The options every benchmark has; a script adds its own."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    if rounds is not None:
        parser.add_argument("--rounds", type=int, default=rounds, help="rounds a ratio is the median of")
    return parser


def bench(parser: argparse.ArgumentParser, measure: Callable[[argparse.Namespace], tuple[float, Rows]]) -> None:
    """Read the command line, measure, and print the report: the whole of a benchmark's `main`."""
    given = parser.parse_args()
    with only_the_report():
        control, rows = measure(given)
    report(control, rows, as_json=given.json)


@contextmanager
def only_the_report() -> Iterator[None]:
    """Sends to stderr whatever is printed while measuring, by native code and child processes too."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def report(control: float, rows: Rows, *, as_json: bool) -> None:
    """One JSON object, {"control": number, "rows": [{"case", "value", "unit"}]}, or a table for eyes."""
    if as_json:
        listed = [{"case": str(row["case"]), "value": float(row["value"]), "unit": str(row["unit"])} for row in rows]
        print(json.dumps({"control": round(float(control), 4), "rows": listed}, ensure_ascii=False))
        return
    print(f"control {control:.3f}")
    width = max((len(row["case"]) for row in rows), default=0)
    for row in rows:
        print(f"{row['case']:<{width}}  {row['value']:10.4g} {row['unit']}")
