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
    if pipeline is not None and not pipeline.workers and times.bare > 0:
        # Made on the training thread: what others' load costs there, it costs in every other part of a step too.
        share = max(0.0, share - pipeline.delay * max(1.0, times.asks) / times.bare)
    if share <= WAITS:
        return DataVerdict("fine", words.FINE.of(share=share))
    if pipeline is not None and pipeline.workers and times.empty is not None and times.empty <= EMPTY:
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


def _delayed(pipeline: Pipeline) -> float:
    return min(1.0, pipeline.delay / pipeline.make) if pipeline.make > 0 else 0.0
