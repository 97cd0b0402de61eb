"""What holds a training back on the side of its data. Two questions decide: is data waited for, and did some lie ready?

A wait alone proves nothing: on a cheap pipeline the wait is the handing over, and more workers make it worse. The
thresholds follow MindSpore Insight's (a queue empty on over 30 % of asks is the pipeline's fault, else the transfer's).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from misstep.performance.loader_model import LoaderModel, Prediction
from misstep.performance.pipeline import Load, Pipeline
from misstep.performance.steps import StepTimes
from misstep.sentences.speed import advice as words
from misstep.sentences.text import Sentence

Bound = Literal["input", "transfer", "saturated", "fine", "unknown"]

WAITS, EMPTY, DELAYED, BUSY = 0.10, 0.30, 0.20, 0.80
_WAITING = 0.3
GAIN = 0.05
"""A prediction has to promise this much before anybody is bothered."""


@dataclass(frozen=True, slots=True)
class DataVerdict:
    bound: Bound
    why: Sentence


def data_verdict(
    times: StepTimes, pipeline: Pipeline | None, load: Load | None, best: Prediction | None
) -> DataVerdict:
    """`best`: the fastest step the model knows of, None without a model."""
    share = times.share("data")
    if pipeline is not None and not pipeline.workers and _only_computes(pipeline, times):
        # Made on the training thread, by work alone: what it waited for a core is the fault of others, not its own.
        share *= min(1.0, pipeline.cpu / max(pipeline.make, 1e-9))
    if share <= WAITS:
        return DataVerdict("fine", words.FINE.of(share=share))
    if pipeline is not None and pipeline.workers and times.empty is not None and times.empty <= EMPTY:
        if load is not None and share - load.denied <= WAITS:  # the thread had its batch, and no core to take it
            return DataVerdict("fine", words.FINE.of(share=share))
        return DataVerdict("transfer", words.TRANSFER_READY.of(share=share, ready=1 - times.empty))
    if pipeline is not None and load is not None and _saturated(times, pipeline, load, best):
        return DataVerdict(
            "saturated",
            words.SATURATED.of(
                share=share,
                delay=_delayed(pipeline),
                busy=load.own + load.external,
                cores=load.allowed,
                others=load.external,
            ),
        )
    if pipeline is not None and not pipeline.workers:
        return DataVerdict("input", words.INPUT_HERE.of(share=share))
    if times.empty is None:
        return DataVerdict("input", words.INPUT_UNSEEN.of(share=share))
    return DataVerdict("input", words.INPUT_EMPTY.of(empty=times.empty, share=share))


def best_workers(model: LoaderModel, cores: float) -> Prediction:
    """The fewest workers within 2 % of the fastest."""
    most = int(min(16, max(4, 2 * cores)))
    known = [model.predict(workers) for workers in range(most + 1)]
    fastest = min(one.ms for one in known)
    return next(one for one in known if one.ms <= 1.02 * fastest)


def _saturated(times: StepTimes, pipeline: Pipeline, load: Load, best: Prediction | None) -> bool:
    if best is not None and best.ms < (1 - GAIN) * times.bare:
        return False
    crowded = load.own + load.external > BUSY * load.allowed
    return crowded or _delayed(pipeline) > DELAYED


def _only_computes(pipeline: Pipeline, times: StepTimes) -> bool:
    """Whether making a batch is work and waiting for a core, and hardly any waiting for disk or network. The thread's
    waiting is known for whole steps; of it, making batches has its share of the work."""
    share = min(1.0, pipeline.cpu * max(1.0, times.asks) / times.cpu) if times.cpu > 0 else 1.0
    return pipeline.make - pipeline.cpu - pipeline.delay * share < _WAITING * pipeline.make


def _delayed(pipeline: Pipeline) -> float:
    return min(1.0, pipeline.delay / pipeline.make) if pipeline.make > 0 else 0.0
