"""What a data loader does: how long its batches take to make, which samples are slow, what a sample is made of, and
how much of the machine is left for it.

The figures come from the processes that make the batches themselves, so they hold with one worker or sixteen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from misstep.performance.steps import Floats, ready_waits
from misstep.store.tracefile import Records, Trace

_OUTLYING = 10.0
"""A sample is slow beyond this many times the usual one (rule of thumb from the p99 of per-sample times)."""
_NOTABLE_MS = 5.0
"""… and by this much: a busy machine alone holds a process up for some milliseconds."""
_MOST_SAMPLES = 10


@dataclass(frozen=True, slots=True)
class SlowSample:
    index: int
    ms: float


@dataclass(frozen=True, slots=True)
class Stage:
    """A function a sample goes through."""

    name: str
    share: float
    """Of the time of a sample, what it calls included."""
    ms: float
    """Per sample."""
    where: str
    depth: int


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One data loader of one rank; times in milliseconds per batch."""

    loader: dict[str, Any]
    """Its arguments and the user's line, as it was met."""
    batches: int
    samples: int
    """In a batch."""
    make: float
    """Samples and collating, by the clock on the wall."""
    collate: float
    cpu: float
    delay: float
    """Ready to run while no core was free."""
    put: float
    """Handing a finished batch over, in the worker."""
    receive: float | None
    """Receiving one that lies ready, on the training thread; None when none ever lay ready."""
    batch_bytes: int
    sample_ms: float
    """The usual sample."""
    slow: tuple[SlowSample, ...]
    stages: tuple[Stage, ...]
    times: Floats = field(repr=False, compare=False)
    """What each batch took to make."""

    @property
    def workers(self) -> int:
        return int(self.loader.get("num_workers") or 0)


@dataclass(frozen=True, slots=True)
class Load:
    """How busy the machine was meanwhile, in cores."""

    allowed: float
    external: float
    """Kept busy by others."""
    own: float
    training: float
    denied: float
    """What the training thread was denied: 0.2 is one fifth of the time ready to run without a core."""
    seconds: float


def pipeline_of(
    trace: Trace, loaders: list[dict[str, Any]], stages: dict[str, Any] | None, folder: str = ""
) -> Pipeline | None:
    """The loader that made most batches; None when no batch is told of."""
    if not len(trace.batches) or not loaders:
        return None
    numbers, counts = np.unique(trace.batches["loader"], return_counts=True)
    number = int(numbers[np.argmax(counts)])
    facts = next((one for one in loaders if one.get("loader") == number), loaders[0])
    batches = _after_the_start(trace.batches[trace.batches["loader"] == number])
    whole = batches[batches["flags"] == 0] if (batches["flags"] == 0).sum() >= 4 else batches  # unprofiled
    made = (whole["fetch"] + whole["collate"]).astype(np.float64) / 1e3
    samples = max(1, int(np.median(whole["samples"])))
    waits = ready_waits(trace.steps)
    usual = float(np.median(whole["fetch"].astype(np.float64) / np.maximum(1, whole["samples"])) / 1e3)
    idle = whole["idle"][whole["idle"] > 0].astype(np.float64) / 1e3
    return Pipeline(
        loader=facts,
        batches=len(batches),
        samples=samples,
        make=float(made.mean()),
        collate=float(whole["collate"].astype(np.float64).mean() / 1e3),
        cpu=float(whole["cpu"].astype(np.float64).mean() / 1e3),
        delay=float(batches["delay"].astype(np.float64).mean() / 1e3),
        put=float(np.percentile(idle, 10)) if len(idle) >= 4 and facts.get("num_workers") else 0.0,
        receive=float(np.median(waits)) if len(waits) >= 3 else None,
        batch_bytes=int(np.median(whole["bytes"])),
        sample_ms=usual,
        slow=_slow_samples(batches, usual),
        stages=stages_of(stages, folder),
        times=made,
    )


def _after_the_start(batches: Records) -> Records:
    """Without the first batch of every worker: it holds imports, opened files, cold caches."""
    keep = np.ones(len(batches), dtype=bool)
    if len(batches) >= 8:
        for worker in np.unique(batches["worker"]):
            keep[np.flatnonzero(batches["worker"] == worker)[0]] = False
    kept: Records = batches[keep]
    return kept


def load_of(records: Records) -> Load | None:
    """How busy the machine was, by time; None when nobody looked."""
    if not len(records):
        return None
    wall = records["wall"].astype(np.float64)
    mean = {name: float(np.average(records[name], weights=wall)) for name in ("machine", "own", "training", "delay")}
    return Load(
        allowed=float(np.median(records["allowed"])),
        external=max(0.0, mean["machine"] - mean["own"]),
        own=mean["own"],
        training=mean["training"],
        denied=min(0.95, mean["delay"]),
        seconds=float(wall.sum()),
    )


def stages_of(told: dict[str, Any] | None, folder: str = "") -> tuple[Stage, ...]:
    """What a sample is made of, as a tree in the order of time spent; empty when no sample was looked into."""
    if not told or not told.get("ns") or not told.get("samples"):
        return ()
    spent = {tuple(path): ns for path, ns in told["paths"]}
    found: list[Stage] = []

    def below(parent: tuple[str, ...]) -> None:
        children = [path for path in spent if len(path) == len(parent) + 1 and path[: len(parent)] == parent]
        for path in sorted(children, key=lambda one: -spent[one]):
            share = spent[path] / told["ns"]
            if share >= 0.01:
                ms = spent[path] / told["samples"] / 1e6
                where = str(told["where"].get(path[-1], "")).removeprefix(folder.rstrip("/") + "/" if folder else "")
                found.append(Stage(path[-1], min(1.0, share), ms, where, len(parent)))
                below(path)

    below(())
    return tuple(found)


def _slow_samples(batches: Records, usual: float) -> tuple[SlowSample, ...]:
    slowest = batches["slowest"].astype(np.float64) / 1e3
    worst: dict[int, float] = {}
    denied = batches["delay"].astype(np.float64) / 1e3 > slowest / 2  # no core was free: not the sample's fault
    beyond = slowest > max(_OUTLYING * usual, usual + _NOTABLE_MS)
    for at in np.flatnonzero(beyond & ~denied & (batches["slowest_index"] >= 0)):
        index = int(batches["slowest_index"][at])
        worst[index] = max(worst.get(index, 0.0), float(slowest[at]))
    ordered = sorted(worst.items(), key=lambda item: -item[1])[:_MOST_SAMPLES]
    return tuple(SlowSample(index, ms) for index, ms in ordered)
