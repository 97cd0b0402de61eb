"""What being ready to replay costs, and what one replay takes.

    python bench/replay.py            a table
    python bench/replay.py --json     one JSON object

`guard` and `guard, replay armed` are ratios to a bare step of the same network, interleaved in one process on one
thread, in CPU time; the control is a bare step against a bare step. `one replay` is the time of a replay under operator
capture, in bare steps.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from measure import Rows, bench, each, interleaved, options


def rows_of(case: str, rounds: int) -> tuple[float, list[dict[str, Any]]]:
    import torch
    from models import training

    from misstep.adapters.pytorch.adapter import PyTorchAdapter
    from misstep.capture.session import Session
    from misstep.settings import Settings

    torch.set_num_threads(1)
    step = training(case)

    def watched(replay: bool) -> Callable[[], Any]:
        session = Session(Settings({"level": "guard", "replay": replay, "dir": tempfile.mkdtemp()}))
        adapter = PyTorchAdapter()  # one for each variant, so that each keeps its names and what it learned

        def run() -> Any:
            session.use(adapter)
            adapter.attach(session)
            adapter.set_level("guard")
            session.replays.arm(adapter, "guard")
            step()
            adapter.detach()

        return run

    ratios = interleaved(
        {"bare": step, "control": step, "guard": watched(False), "guard, replay armed": watched(True)}, rounds=rounds
    )
    rows = [
        {"case": f"{case} {name}", "value": round(ratios[name], 4), "unit": "x bare"}
        for name in ("guard", "guard, replay armed")
    ]
    again = one_replay(step, PyTorchAdapter())
    return ratios["control"], [*rows, {"case": f"{case} one replay", "value": round(again, 3), "unit": "bare steps"}]


def one_replay(step: Callable[[], Any], adapter: Any, *, times: int = 5) -> float:
    """Seconds of a replay divided by those of a bare step, medians."""
    from misstep.capture.session import Session
    from misstep.settings import Settings

    bare = []
    for _ in range(times):
        began = time.process_time()
        step()
        bare.append(time.process_time() - began)
    session = Session(Settings({"level": "guard", "dir": tempfile.mkdtemp()}))
    spent: list[float] = []

    def before_update(adapter: Any) -> None:
        began = time.process_time()
        replayed = adapter.replay()
        spent.append(time.process_time() - began)
        assert replayed.exact == "exact", replayed.exact

    session.before_update = before_update  # type: ignore[method-assign]
    session.use(adapter)
    adapter.attach(session)
    adapter.set_level("guard")
    session.replays.arm(adapter, "guard")
    for _ in range(times):
        step()
    adapter.detach()
    return statistics.median(spent) / statistics.median(bare)


def main() -> None:
    bench(options(__doc__, rounds=15), lambda given: everything(given.rounds))


def everything(rounds: int) -> tuple[float, Rows]:
    control, rows = each((partial(rows_of, case) for case in ("cnn", "gpt")), rounds)
    return control, rows


if __name__ == "__main__":
    main()
