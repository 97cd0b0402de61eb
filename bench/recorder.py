"""What the flight recorder costs: guard and recorder against a bare training step, and the size of what it leaves.

    python bench/recorder.py            a table
    python bench/recorder.py --json     one JSON object

Bare and recorded steps of the same network alternate in one process, on one thread, in CPU time; the seams stay in
place for as long as a recorded step runs. The control is a bare step against a bare step.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from measure import Rows, bench, each, interleaved, options


def recorded(step: Callable[[], Any], *, record: bool) -> tuple[Callable[[], Any], Any]:
    """The step under guard, with or without the recorder; and its session."""
    from misstep.adapters.registry import adapter_named
    from misstep.capture.session import Session
    from misstep.settings import Settings

    adapter: Any = adapter_named("pytorch")
    session = Session(Settings({"level": "guard", "record": record, "dir": tempfile.mkdtemp()}))

    def run() -> Any:
        session.use(adapter)
        adapter.attach(session)
        heard = adapter.on_network
        if not record:
            adapter.on_network = None  # the other session's recorder
        step()
        if not record:
            adapter.on_network = heard
        adapter.detach()

    return run, session


def rows_of(case: str, rounds: int) -> tuple[float, list[dict[str, Any]]]:
    import torch
    from models import training

    torch.set_num_threads(1)
    step = training(case)
    guard, without = recorded(step, record=False)
    both, session = recorded(step, record=True)
    ratios = interleaved({"bare": step, "control": step, "guard": guard, "recorder": both}, rounds=rounds)
    session.end()
    without.end()
    rows = [
        {"case": f"{case} guard", "value": round(ratios["guard"], 4), "unit": "x bare"},
        {"case": f"{case} guard + recorder", "value": round(ratios["recorder"], 4), "unit": "x bare"},
    ]
    return ratios["control"], rows


def size_row(steps: int = 80) -> dict[str, Any]:
    """The bundle of a GPT watched at module level: every row of its last steps is in it."""
    from models import training

    from misstep.adapters.registry import adapter_named
    from misstep.capture.session import Session
    from misstep.settings import Settings

    step = training("gpt")
    session = Session(Settings({"level": "module", "dir": tempfile.mkdtemp(), "record_mode": 2}))
    session.use(adapter_named("pytorch"))
    for _ in range(steps):
        step()
    session.end("finished", 0)
    assert session.run_directory is not None
    (bundle,) = Path(session.run_directory, "records").glob("*.zip")
    return {"case": "bundle of a GPT run", "value": round(bundle.stat().st_size / 1e6, 3), "unit": "MB"}


def main() -> None:
    bench(options(__doc__, rounds=15), lambda given: everything(given.rounds))


def everything(rounds: int) -> tuple[float, Rows]:
    control, rows = each((partial(rows_of, case) for case in ("cnn", "gpt")), rounds)
    rows.append(size_row())
    return control, rows


if __name__ == "__main__":
    main()
