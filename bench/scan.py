"""How much of real model sources `misstep scan` resolves, and how fast it reads.

    python bench/scan.py           a table
    python bench/scan.py --json    one JSON object

Five files of installed packages in five styles: a decoder with its own convolution layer, an encoder with many heads,
a convolutional network, an encoder and decoder with relative positions, and PyTorch's own transformer. A row each for
the share of calls resolved; lines a second over all of them, imported files of their projects read on the way. The
control reads the last file again and again, odd times against even ones.
"""

from __future__ import annotations

import argparse
import statistics
import time
from importlib.util import find_spec
from pathlib import Path

from measure import Rows, bench, options

from misstep.migration.apimap.table import load
from misstep.migration.scan.report import scan_paths


def sources() -> list[Path]:
    found = []
    for package, names in (
        ("transformers", [f"models/{name}/modeling_{name}.py" for name in ("gpt2", "bert", "resnet", "t5")]),
        ("torch", ["nn/modules/transformer.py"]),
    ):
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        found += [Path(spec.origin).parent / name for name in names]
    return found


def seconds(path: Path) -> float:
    began = time.process_time()
    scan_paths([path])
    return time.process_time() - began


def measure(given: argparse.Namespace) -> tuple[float, Rows]:
    load()
    files = sources()
    rows: Rows = []
    lines, spent = 0, 0.0
    for path in files:
        began = time.process_time()
        scan = scan_paths([path])
        spent += time.process_time() - began
        lines += scan.lines
        rows.append({"case": f"{path.stem} resolved", "value": 100 * scan.resolved, "unit": "%"})
    rows.append({"case": "speed", "value": lines / spent, "unit": "lines/s"})
    again = [seconds(files[-1]) for _ in range(10)]
    return statistics.median(again[::2]) / statistics.median(again[1::2]), rows


if __name__ == "__main__":
    bench(options(__doc__ or ""), measure)
