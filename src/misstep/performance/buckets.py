"""All-reduces of a recorded training, cut anew: its gradients' ready times and its wire are measured on the command
itself, the best cut is computed, and what it promises against the framework's own cut decides whether it is tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from misstep.errors import PerformanceError
from misstep.performance.changes import Change
from misstep.performance.segmentation import (
    WORTH,
    Plan,
    Wire,
    bucket_caps_mb,
    end_of,
    fewest_within,
    fit_wire,
    framework_cuts,
    fusion_config,
)
from misstep.performance.trial import run_once
from misstep.sentences.speed import buckets as words
from misstep.sentences.text import Sentence
from misstep.store.reading.reader import Run, open_run

_STEPS = 26


@dataclass(frozen=True, slots=True)
class BucketReport:
    """Milliseconds after forward's end."""

    ranks: int
    gradients: int
    bytes: int
    wire: Wire
    backward: float
    """When the last gradient is ready."""
    default: Plan
    """What the framework does by itself."""
    best: Plan
    step: float
    """A step as it was measured meanwhile."""
    caps_mb: tuple[float, ...]
    fusion: tuple[int, ...]
    said: Sentence
    change: Change | None
    """To be tried; None where too little is promised."""

    @property
    def predicted(self) -> float:
        return self.step - max(0.0, self.default.end - self.best.end)


def bucket_report(run: Run, *, seconds: float) -> BucketReport:
    """Measure a training of several ranks for some steps, and cut its gradients."""
    attempt = run_once(run, [Change("knob", {"gradient_times": True})], steps=_STEPS, seconds=seconds)
    told = [event.facts for event in open_run(attempt.path).events("change")] if attempt.carried_out else []
    measured = [facts for facts in told if facts.get("ready")]
    if not measured:
        raise PerformanceError(words.NOT_MEASURED.of(run=run.name))
    return cut(measured, float(np.mean(attempt.ms)) if len(attempt.ms) else 0.0)


def cut(measured: list[dict[str, Any]], step: float) -> BucketReport:
    """What the facts of all ranks come to: a gradient is ready when its slowest rank has it."""
    ready = [
        max((one for one in times if one is not None), default=0.0)
        for times in zip(*(one["ready"] for one in measured))
    ]
    order = sorted(range(len(ready)), key=lambda place: ready[place])
    times = [ready[place] for place in order]
    sizes = [int(measured[0]["sizes"][place]) for place in order]
    probes = [tuple(pair) for one in measured for pair in one["wire"]]
    wire = fit_wire([size for size, _ in probes], [ms for _, ms in probes])
    cuts = framework_cuts(sizes)
    default = Plan(cuts, end_of(times, sizes, wire, cuts))
    best = fewest_within(times, sizes, wire)
    gain = (default.end - best.end) / step if step > 0 else 0.0
    caps = bucket_caps_mb(sizes, best.cuts)
    worth = gain > WORTH
    said = words.CUT if worth else words.LEAVE
    return BucketReport(
        ranks=len(measured),
        gradients=len(sizes),
        bytes=sum(sizes),
        wire=wire,
        backward=times[-1] if times else 0.0,
        default=default,
        best=best,
        step=step,
        caps_mb=tuple(caps),
        fusion=tuple(fusion_config(best.cuts)),
        said=said.of(now=len(cuts), best=len(best.cuts), gain=max(0.0, gain)),
        change=Change("knob", {"bucket_cap_mb_list": caps}) if worth else None,
    )
