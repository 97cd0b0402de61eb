"""What dumping costs beyond writing the bytes: one step of a small GPT, with every tensor kept.

    python bench/dump.py            a table
    python bench/dump.py --json     one JSON object

Module and operator level: (the step with its dump − the time inside its own writes to the pack) / the bare step. The
writes are timed where they happen: the same bytes written apart from the step cost 0.4 to 4 bare steps from one run to
the next on a shared machine, more than the dump itself, and made the rest come out below 1. All in CPU time, the
kernel's part of a write included; bare and dumped steps alternate. Small tensors: 5,000 of 4 kB through the dumper.
Asynchronous: CPU time of the training thread alone, against the synchronous dump.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from measure import Rows, bench, options

MB = 1 << 20


class Dumping:
    """One step of a training under a session that dumps; its pack is emptied after each."""

    def __init__(self, step: Callable[[], Any], pattern: str, **settings: Any) -> None:
        from misstep.adapters.registry import adapter_named
        from misstep.capture.session import Session
        from misstep.settings import Settings

        self.step = step
        self.folder = tempfile.mkdtemp(prefix="misstep-bench-")
        self.adapter = adapter_named("pytorch")
        given = {"dir": self.folder, "dump": pattern, "pack_mb": 1 << 20, "replay": False, **settings}
        self.session = Session(Settings(given))
        self.writing = 0.0
        """CPU seconds inside writes to the pack since this was last set to 0."""

    def time_writes(self) -> None:
        """From now on; the pack is there once the first step was dumped."""
        writer = self.session.writer
        assert writer is not None
        append = writer._files[3].append

        def timed(data: Any, *, before: bytes = b"") -> int:
            began = time.thread_time()
            kept = append(data, before=before)
            self.writing += time.thread_time() - began
            return kept

        writer._files[3].append = timed  # type: ignore[method-assign]

    def __call__(self) -> None:
        self.session.use(self.adapter)
        self.adapter.attach(self.session)
        self.step()
        dumper = self.session.dumper
        if dumper is not None and dumper.buffer is not None:
            dumper.buffer.drain()
        self.adapter.detach()

    def sizes(self) -> list[int]:
        """Bytes of every tensor in the pack, each memory once."""
        from misstep.store.reading.reader import open_run

        run = open_run(self.session.run_directory or "")
        once = {stored.offset: stored.bytes for stored in run.tensors()}
        return [once[offset] for offset in sorted(once)]

    @property
    def names(self) -> int:
        return self.session.dumper.kept if self.session.dumper is not None else 0

    def empty(self) -> None:
        writer = self.session.writer
        if writer is not None and writer._files[3].size:
            os.truncate(writer._files[3].path, 64)
            writer._files[3].size = writer._files[3]._reserved = 64

    def close(self) -> None:
        self.session.end("finished")
        shutil.rmtree(self.folder)


def level_rows(level: str, title: str, rounds: int) -> tuple[float, list[dict[str, Any]]]:
    import torch
    from models import training

    torch.set_num_threads(1)
    step = training("gpt")
    dumping = Dumping(step, "*@1:", level=level)
    dumping()
    dumping()  # the second knows every name already
    sizes, names = dumping.sizes(), dumping.names // 2
    dumping.time_writes()
    work: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "bare": (step, lambda: None),
        "control": (step, lambda: None),
        "dump": (dumping, dumping.empty),
    }
    dumping.empty()
    step()
    taken: dict[str, list[float]] = {name: [] for name in (*work, "write")}
    order = list(work)
    for number in range(rounds):
        for name in order[number % 3 :] + order[: number % 3]:
            run, clean = work[name]
            dumping.writing = 0.0
            began = time.process_time()
            run()
            taken[name].append(time.process_time() - began)
            if name == "dump":
                taken["write"].append(dumping.writing)
            clean()
    dumping.close()
    bare, write, dump = (statistics.median(taken[name]) for name in ("bare", "write", "dump"))
    beyond = statistics.median(d - w for d, w in zip(taken["dump"], taken["write"], strict=True))
    control = statistics.median(a / b for a, b in zip(taken["control"], taken["bare"], strict=True))
    return control, [
        {"case": f"{title} beyond writing", "value": round(beyond / bare, 3), "unit": "x bare"},
        {"case": f"{title} with writing", "value": round(dump / bare, 3), "unit": "x bare"},
        {"case": f"{title} writing alone", "value": round(write / bare, 3), "unit": "x bare"},
        {"case": f"{title} tensors", "value": names, "unit": "names"},
        {"case": f"{title} bytes", "value": round(sum(sizes) / MB), "unit": "MB"},
    ]


def thread_rows(rounds: int) -> list[dict[str, Any]]:
    """CPU time the training thread spends on a dumped step, synchronous and asynchronous."""
    from models import training

    step = training("gpt")
    modes: dict[str, Dumping] = {
        "synchronous": Dumping(step, "*@1:"),
        "asynchronous": Dumping(step, "*@1:", dump_async=True),
    }
    taken: dict[str, list[float]] = {name: [] for name in (*modes, "bare")}
    for number in range(rounds + 1):
        for name in ("bare", *modes):
            began = time.thread_time()
            run: Callable[[], Any] = modes.get(name, step)
            run()
            if number:
                taken[name].append(time.thread_time() - began)
            if name in modes:
                modes[name].empty()
    for mode in modes.values():
        mode.close()
    cost = {name: statistics.median(a - b for a, b in zip(taken[name], taken["bare"], strict=True)) for name in modes}
    rows: list[dict[str, Any]] = [
        {"case": f"{name}, training thread beyond bare", "value": round(1000 * seconds, 1), "unit": "ms a step"}
        for name, seconds in cost.items()
    ]
    ratio = cost["asynchronous"] / cost["synchronous"]
    return [*rows, {"case": "asynchronous / synchronous", "value": round(ratio, 3), "unit": "x"}]


def small_rows(count: int = 5000) -> list[dict[str, Any]]:
    """Many tensors of 4 kB through the dumper, as an adapter hands them over."""
    from misstep.capture.session import Session
    from misstep.settings import Settings
    from misstep.testing.fake import FakeAdapter
    from misstep.testing.fake_framework import FakeTensor

    folder = tempfile.mkdtemp(prefix="misstep-bench-")
    session = Session(Settings({"dir": folder, "dump": "*", "recommended": False}))
    session.use(FakeAdapter())
    session.going_live(session.adapters[0])
    node = session.catalog.node("net", "module", "Net")
    numbers = [session.catalog.tensor(node, "output", slot) for slot in range(count)]
    shape = session.catalog.shape((1024,))
    tensors = [FakeTensor(np.full(1024, slot, np.float32)) for slot in range(count)]
    rows = [session.frame.reserve(number, shape, 1) for number in numbers]
    session._wanting.refresh(session.step)
    calls = [session.wants[number] for number in numbers]
    taken = []
    for _ in range(5):
        began = time.process_time()
        for call, row, tensor in zip(calls, rows, tensors, strict=True):
            call(row, tensor)
        taken.append((time.process_time() - began) / count)
        assert session.dumper is not None
        session.dumper.begin_step()  # else the second time would only note the same places again
    each = statistics.median(taken)
    session.end("finished")
    shutil.rmtree(folder)
    return [{"case": "small tensor (4 kB)", "value": round(1e6 * each, 2), "unit": "us each"}]


def main() -> None:
    bench(options(__doc__, rounds=7), lambda given: everything(given.rounds))


def everything(rounds: int) -> tuple[float, Rows]:
    control, rows = level_rows("module", "module level", rounds)
    _, operators = level_rows("op", "operator level", rounds)
    return control, rows + operators + small_rows() + thread_rows(rounds)


if __name__ == "__main__":
    main()
