"""What a step would take with other loader arguments: recorded batches, run again through a model of the loader.

    worker w makes the batches w, w+n, w+2n …      a batch may be begun once batch k - n·prefetch was handed over
    the training thread takes them in order        and is busy for one step in between

That is how PyTorch's DataLoader hands out work; drawing from the recorded times keeps their spread, which a formula of
means loses. Where more is ready to run than there are cores, the CPU part of everything stretches by the same factor.
The model is first asked for the step that was measured: how far it is off becomes part of the interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from misstep.performance.pipeline import Load, Pipeline
from misstep.performance.steps import Floats, StepTimes

_BATCHES = 240
_DRAWS = 9
_HANDING_MS = 0.25
_BYTES_PER_MS = 1.5e6
"""Handing a batch between processes where it was not measured: 0.1 to 0.4 ms and 1 to 3 GB/s were seen."""
WORST_FIT = 0.3
"""A model this far off the step it was made from says nothing of others."""
_LEAST_SPREAD = 0.03
"""Two runs of one program differ by this much on a machine that others use."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A step with these arguments; milliseconds without misstep's own work."""

    workers: int
    prefetch: int
    batch: float
    """The batch size, as a multiple of the one used."""
    ms: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LoaderModel:
    """Everything a step depends on, per batch; milliseconds."""

    make: Floats
    """Making a batch."""
    make_cpu: float
    """The part of it that needs a core, waiting for one included."""
    consume: float
    """The rest of a step."""
    consume_cpu: float
    busy_cpu: float
    """CPU time of both, which is what they ask of the machine; waiting for a core is none."""
    put: float
    receive: float
    cores: float
    slowed: float
    """How many times longer than its CPU time a thread wanted a core, while this was measured."""
    others: float
    """Threads of others that want a core."""
    base: float
    """How many wanted each core while this was measured: what they cost is in the figures."""
    asks: float
    fit: float
    """The measured step divided by what the model says of it."""
    workers: int
    prefetch: int

    def predict(self, workers: int, prefetch: int | None = None, batch: float = 1.0) -> Prediction:
        """A step with so many workers, batches made ahead by each, and samples in a batch (as a factor)."""
        ahead = prefetch or self.prefetch or 2
        draws = np.array([self._step(workers, ahead, batch, seed) for seed in range(_DRAWS)]) * self.asks
        # How far the model was off where it could be checked says how far it may be off elsewhere.
        off = abs(self.fit - 1) + _LEAST_SPREAD + (0.03 if not self.workers and workers else 0.0)
        fit = 1.0 if self._leaves_the_loader(workers) else self.fit
        ms = float(np.median(draws)) * fit
        spread = float(np.percentile(draws, 90) - np.percentile(draws, 10)) / 2
        low, high = max(0.0, ms * (1 - off) - spread), ms * (1 + off) + spread
        if batch != 1:  # how the rest of a step grows with the batch is not known: between not at all and as much
            fixed = replace(self, consume=self.consume / batch, consume_cpu=self.consume_cpu / batch)
            other = fixed._step(workers, ahead, batch, 0) * self.asks * fit
            low, high = min(low, other), max(high, other)
        return Prediction(workers, ahead, batch, ms, low, high)

    def busy(self, workers: int, prefetch: int) -> tuple[float, float]:
        """A step, and the threads of ours that want a core meanwhile, in the crowd that was measured."""
        return self._once(workers, prefetch, 1.0, 0, 1.0)

    def crowd(self, busy: float) -> float:
        """How many want each core, when so many threads of ours do."""
        return max(1.0, (busy + self.others) / self.cores)

    def _leaves_the_loader(self, workers: int) -> bool:
        """With and without workers are two programs: what one is off says nothing of the other."""
        return bool(workers) != bool(self.workers)

    def _step(self, workers: int, prefetch: int, batch: float, seed: int) -> float:
        stretch = 1.0
        for _ in range(4):  # what is stretched keeps fewer cores busy, which stretches less
            step, busy = self._once(workers, prefetch, batch, seed, stretch)
            wanted = max(1.0, self.crowd(busy) / self.base)
            if abs(wanted - stretch) < 0.01:
                break
            stretch = (stretch + wanted) / 2
        return step

    def _once(self, workers: int, prefetch: int, batch: float, seed: int, stretch: float) -> tuple[float, float]:
        """A step, and the threads of ours that want a core meanwhile."""
        random = np.random.default_rng(seed)
        longer = (stretch - 1) * batch
        make = random.choice(self.make, _BATCHES) * batch + self.make_cpu * longer
        take = self.consume * batch + self.consume_cpu * longer
        if workers == 0:
            step = float(make.mean()) + take
        else:
            step = _through(make + self.put * batch * stretch, take, self.receive * batch * stretch, workers, prefetch)
        handing = (self.put + self.receive) if workers else 0.0
        return step, (self.busy_cpu + handing) * batch * self.slowed * stretch / max(step, 1e-9)


def _through(make: Floats, take: float, receive: float, workers: int, prefetch: int) -> float:
    """Mean time between two batches once the loader runs evenly."""
    ahead = workers * prefetch
    finished, handed = np.zeros(len(make)), np.zeros(len(make))
    asked = 0.0
    for k, cost in enumerate(make):
        issued = handed[k - ahead] if k >= ahead else 0.0
        busy_until = finished[k - workers] if k >= workers else 0.0
        finished[k] = max(issued, busy_until) + cost
        handed[k] = max(asked, finished[k]) + receive
        asked = handed[k] + take
    start = min(len(make) // 3, 2 * ahead + workers)
    return float((handed[-1] - handed[start]) / (len(make) - 1 - start))


def loader_model(times: StepTimes, pipeline: Pipeline, load: Load | None) -> LoaderModel | None:
    """The model of a recorded training; None when it does not explain the step that was measured."""
    asks = max(1.0, times.asks)
    workers, prefetch = pipeline.workers, int(pipeline.loader.get("prefetch_factor") or 2)
    rest = times.bare - times.parts["data"]
    denied = min((load.denied if load is not None else 0.0) * times.mean, rest)
    in_here = pipeline.cpu * asks if not workers else 0.0
    handing = _HANDING_MS + pipeline.batch_bytes / _BYTES_PER_MS
    training_cpu = max(0.0, times.cpu - in_here - times.own)
    model = LoaderModel(
        make=pipeline.times,
        make_cpu=min(pipeline.cpu + pipeline.delay, pipeline.make),
        consume=max(rest, 1e-3) / asks,
        consume_cpu=min(training_cpu + denied, max(rest, training_cpu)) / asks,
        busy_cpu=min(pipeline.cpu, pipeline.make) + training_cpu / asks,
        put=(min(pipeline.put, handing) or handing) if workers else handing,
        receive=pipeline.receive if pipeline.receive is not None else handing / 2,
        cores=load.allowed if load is not None else 1e6,
        slowed=_slowed(load),
        others=0.0,
        base=1.0,
        asks=asks,
        fit=1.0,
        workers=workers,
        prefetch=prefetch,
    )
    _, busy = model.busy(workers, prefetch)
    model = replace(model, others=_others(load, busy))
    model = replace(model, base=model.crowd(busy))
    # Our own work delayed the step that was measured, and workers went on meanwhile.
    as_watched = replace(model, consume=model.consume + times.own / asks)
    said = as_watched.predict(workers, prefetch).ms
    fit = times.mean / said if said > 0 else 0.0
    return replace(model, fit=fit) if 1 - WORST_FIT <= fit <= 1 + WORST_FIT else None


def _slowed(load: Load | None) -> float:
    if load is None or load.training <= 0:
        return 1.0
    return min(20.0, (load.training + load.denied) / load.training)


def _others(load: Load | None, ours: float) -> float:
    """Threads of others that want a core: as many as it takes to slow us as we were, or those seen busy."""
    if load is None:
        return 0.0
    slowed = _slowed(load)
    return max(load.external, slowed * load.allowed - ours if slowed > 1.1 else 0.0)
