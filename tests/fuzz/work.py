"""One target in one process: its cases, the slowest, the peak, and what it kept because it went wrong."""

from __future__ import annotations

import hashlib
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests.fuzz.targets import HERE, TARGETS, Bench, Target

SLOW = 2.0
FOUND = HERE / "found"


@dataclass
class Told:
    """What came of one target."""

    name: str
    cases: int = 0
    errors: int = 0
    """Cases that ended with an error misstep explains; the others were harmless."""
    tracebacks: int = 0
    hangs: int = 0
    slowest: float = 0.0
    seconds: float = 0.0
    peak_mb: int = 0
    kept: list[str] = field(default_factory=list)


class TooSlow(BaseException):
    """The alarm rang."""


def one(target: Target, bench: Bench, data: bytes) -> bool:
    """Read it; True when it ended in an error that is explained."""
    try:
        target.read(bench, data)
    except target.explained:
        return True
    return False


def fuzz(name: str, first: int, cases: int, seconds: float, until: float) -> Told:
    """That many cases of one target, or as many as there is time for."""
    target, told, bench = TARGETS[name], Told(name), Bench()
    signal.signal(signal.SIGALRM, _ring)
    began = time.perf_counter()
    until = min(until, time.time() + seconds)
    try:
        seeds = target.seeds(bench)
        for number in range(first, first + cases):
            if time.time() > until:
                break
            data = target.case(seeds, number)
            at = time.perf_counter()
            signal.setitimer(signal.ITIMER_REAL, 4 * SLOW)
            try:
                told.errors += one(target, bench, data)
            except TooSlow:
                told.kept.append(_keep(name, data, "hang"))
            except Exception:
                told.tracebacks += 1
                if len(told.kept) < 5:
                    told.kept.append(_keep(name, data, traceback.format_exc(limit=-4)))
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            took = time.perf_counter() - at
            told.slowest = max(told.slowest, took)
            told.hangs += took > SLOW
            told.cases += 1
    finally:
        bench.close()
    told.seconds = time.perf_counter() - began
    told.peak_mb = _peak()
    return told


def _ring(signal_number: int, frame: FrameType | None) -> None:
    raise TooSlow


def _peak() -> int:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) // 1024


def _keep(name: str, data: bytes, why: str) -> str:
    folder = FOUND / name.replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(data).hexdigest()[:12]
    path.write_bytes(data)
    print(f"\n{name}: {path}\n{why}", file=sys.stderr)
    return str(path)


def work(job: tuple[str, int, int, float, float]) -> Told:
    return fuzz(*job)
