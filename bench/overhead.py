"""What watching costs: one training step under each level, as a ratio to the bare step.

    python bench/overhead.py                          a table
    python bench/overhead.py --json                   one JSON object
    python bench/overhead.py --framework mindspore    PyNative: guard and module; graph mode: guard

Bare and watched steps of the same network alternate in one process, on one thread, in CPU time. The control is a bare
step against a bare step: a difference smaller than the control's distance from 1 means nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from measure import Measure, each, interleaved, report

Watching = Callable[[], contextlib.AbstractContextManager[None]]
"""What a step is watched in. To attach and to detach is no part of a step."""
LEVELS = ("idle", "guard", "module", "op")
MORE_ROUNDS = {"cnn": 8, "gpt": 2}
"""MindSpore's threads spin while they wait for each other: one and the same step takes 80 or 230 ms on two cores."""


def torch_rows(case: str, rounds: int) -> tuple[float, list[dict[str, Any]]]:
    import torch
    from models import training

    from misstep.adapters.pytorch.adapter import PyTorchAdapter
    from misstep.capture.session import Session
    from misstep.settings import Settings

    torch.set_num_threads(1)
    step = training(case)

    def watching(level: str) -> Watching:
        session = Session(Settings({"level": "off" if level == "idle" else level, "dir": tempfile.mkdtemp()}))
        adapter = PyTorchAdapter()  # one for each level, so that each keeps its names and its frame
        session.use(adapter)
        adapter.detach()

        @contextlib.contextmanager
        def attached() -> Iterator[None]:
            adapter.attach(session)
            yield
            adapter.detach()

        return attached

    return _measure(case, step, watching, rounds)


def mindspore_rows(case: str, rounds: int, *, graph: bool = False) -> tuple[float, list[dict[str, Any]]]:
    from models_mindspore import training

    from misstep.adapters.mindspore.adapter import MindSporeAdapter
    from misstep.capture.session import Session
    from misstep.settings import Settings

    step = training(case, graph=graph)

    def watching(level: str) -> Watching:
        session = Session(Settings({"level": "off" if level == "idle" else level, "dir": tempfile.mkdtemp()}))
        adapter = MindSporeAdapter()  # one for each level, so that each keeps its names and its frame
        session.use(adapter)
        adapter.seams.remove()

        @contextlib.contextmanager
        def attached() -> Iterator[None]:
            adapter.seams.install()
            yield
            adapter.seams.remove()

        return attached

    title = f"{case} graph" if graph else case
    return _measure(title, step, watching, rounds * MORE_ROUNDS[case], ("guard",) if graph else ("guard", "module"))


def _measure(
    case: str,
    step: Callable[[], Any],
    watching: Callable[[str], Watching],
    rounds: int,
    levels: tuple[str, ...] = LEVELS,
) -> tuple[float, list[dict[str, Any]]]:
    variants: dict[str, Callable[[], Any]] = {"bare": step, "control": step}
    variants.update(dict.fromkeys(levels, step))
    ratios = interleaved(variants, rounds=rounds, within={level: watching(level) for level in levels})
    rows = [{"case": f"{case} {level}", "value": round(ratios[level], 4), "unit": "x bare"} for level in levels]
    return ratios["control"], rows


def _cases(framework: str) -> list[Measure]:
    if framework == "pytorch":
        return [partial(torch_rows, case) for case in ("tiny", "cnn", "gpt")]
    eager = [partial(mindspore_rows, case) for case in ("cnn", "gpt")]
    return [*eager, *[partial(mindspore_rows, case, graph=True) for case in ("cnn", "gpt")]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--framework", choices=("pytorch", "mindspore"), default="pytorch")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    with contextlib.redirect_stdout(sys.stderr):
        control, rows = each(_cases(given.framework), given.rounds)
    report(control, rows, as_json=given.json)


if __name__ == "__main__":
    main()
