"""What the step trace costs: the clock and the record of every step, and nothing else of misstep.

    python bench/trace.py           a table
    python bench/trace.py --json    one JSON object

The same training steps run with the trace and with its clock replaced by one that does nothing; everything else of
misstep is attached in both (level off, no flight recorder), so the difference is the trace. CPU time, interleaved in
one process; the control is the second variant against itself. `tiny` takes more than a thousand steps a second;
`medium` is a step of about ten milliseconds.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from measure import Rows, bench, options


class NoClock:
    """What an adapter turns while nobody wants to know."""

    segment = since = asks = 0
    queue, epoch = -1, False

    def nothing(self, *given: Any) -> int:
        return -1

    switch = own = back = compiles = ask = settle = restart = nothing


def loop(width: int, steps: int) -> Callable[[], None]:
    """A training loop over a data loader."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.randn(steps * 2, 16), torch.randn(steps * 2, 1))
    loader = DataLoader(data, batch_size=2)
    wide = torch.randn(256, 16) if width > 256 else None

    def run() -> None:
        for x, y in loader:
            optimizer.zero_grad()
            out = model(x if wide is None else wide)
            loss = ((out if wide is None else out[:2]) - y).square().mean()
            loss.backward()
            optimizer.step()

    return run


@contextlib.contextmanager
def attached(clock: Any = None) -> Iterator[None]:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter
    from misstep.capture.session import Session
    from misstep.settings import Settings

    session = Session(Settings({"level": "off", "record": False, "dir": tempfile.mkdtemp()}))
    adapter = PyTorchAdapter()
    if clock is not None:
        adapter.clock = clock
        session.trace.step_done = lambda *given: None  # type: ignore[method-assign]
    session.use(adapter)
    yield
    session.end()


def measure(given: argparse.Namespace) -> tuple[float, Rows]:
    import torch

    torch.set_num_threads(1)
    rows: Rows = []
    controls = []
    for case, width, steps in (("tiny", 8, 400), ("medium", 1024, 30)):
        run = loop(width, steps)
        taken: dict[str, list[float]] = {"traced": [], "bare": [], "control": []}
        names = list(taken)
        for number in range(given.rounds + 1):
            for name in names[number % 3 :] + names[: number % 3]:
                with attached(None if name == "traced" else NoClock()):
                    run()
                    began = time.process_time()
                    run()
                    if number:
                        taken[name].append((time.process_time() - began) / steps)
        bare = statistics.median(taken["bare"])
        added = statistics.median(a - b for a, b in zip(taken["traced"], taken["bare"]))
        ratio = statistics.median(a / b for a, b in zip(taken["traced"], taken["bare"]))
        controls.append(statistics.median(a / b for a, b in zip(taken["control"], taken["bare"])))
        rows += [
            {"case": f"{case} step", "value": round(bare * 1e6, 1), "unit": "µs"},
            {"case": f"{case} trace adds", "value": round(added * 1e6, 2), "unit": "µs per step"},
            {"case": f"{case} ratio", "value": round(ratio, 4), "unit": "x untraced"},
        ]
    return max(controls, key=lambda one: abs(one - 1)), rows


def main() -> None:
    bench(options(__doc__, rounds=15), measure)


if __name__ == "__main__":
    main()
