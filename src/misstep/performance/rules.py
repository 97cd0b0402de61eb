"""Advice: each rule is a function of the facts, and gives nothing where its threshold is not passed.

An advice carries its evidence, the threshold it passed, what is predicted (with an interval) and the exact change;
where there is no change misstep can make itself, it says where to look. Numbers follow the field's practice: input 10 %
and 30 %, gap 5 %, a rank 20 % slower than the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from misstep.performance.changes import Change
from misstep.performance.loader_model import LoaderModel, Prediction
from misstep.performance.pipeline import Load, Pipeline
from misstep.performance.steps import StepTimes
from misstep.performance.verdict import GAIN, DataVerdict
from misstep.sentences.speed import advice as words
from misstep.sentences.text import Sentence
from misstep.store.tracefile import Trace

_NOTABLE_MS = 1.0
"""Below this a share of a step is Python's own pace, and nothing to chase."""
_SLOW_RANK = 1.2


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything rules look at."""

    times: StepTimes
    ranks: tuple[StepTimes, ...]
    trace: Trace
    loader: dict[str, Any] | None
    pipeline: Pipeline | None
    load: Load | None
    model: LoaderModel | None
    best: Prediction | None
    verdict: DataVerdict
    optimizer: str = ""
    framework: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    rule: str
    what: Sentence
    why: Sentence
    threshold: Sentence
    predicted: float | None = None
    """Milliseconds a step would take."""
    low: float | None = None
    high: float | None = None
    change: Change | None = None
    """What `--apply` can try; None where only the user can act."""
    where: str = ""
    """The user's line."""


Rule = Callable[[Facts], Iterator[Advice]]


def all_advice(facts: Facts) -> list[Advice]:
    """What every rule says: what can be tried first, of that what promises most; what promises no figure last."""
    found = [advice for rule in RULES for advice in rule(facts)]
    return sorted(found, key=lambda one: (one.change is None, one.predicted or 1e12))


def workers(facts: Facts) -> Iterator[Advice]:
    pipeline, best = facts.pipeline, facts.best
    if pipeline is None or best is None or facts.verdict.bound not in ("input", "transfer"):
        return
    before = pipeline.workers
    if best.workers == before or best.ms > (1 - GAIN) * facts.times.bare:
        return
    yield Advice(
        "workers",
        words.WORKERS.of(before=before, after=best.workers),
        words.WORKERS_WHY.of(make=pipeline.make, rest=facts.times.bare - facts.times.parts["data"])
        if best.workers
        else words.NO_WORKERS_WHY.of(make=pipeline.make, receive=pipeline.receive or 0.0),
        words.WORKERS_RULE.of() if best.workers else words.NO_WORKERS_RULE.of(),
        best.ms,
        best.low,
        best.high,
        Change("loader", {"num_workers": best.workers}, {"num_workers": before}, loader_place(pipeline.loader)),
        _line(pipeline.loader.get("source")),
    )


def parallel_workers(facts: Facts) -> Iterator[Advice]:
    """Of a MindSpore pipeline, of which only the delivery is seen: the interval spans what is possible."""
    loader = facts.loader
    if loader is None or loader.get("framework") != "mindspore" or facts.verdict.bound != "input":
        return
    # MindSpore refuses more than there are cores.
    cores = int(facts.load.allowed) if facts.load is not None else 2
    before = loader.get("num_workers") or 1
    after = min(max(2 * before, 4), cores)
    if after <= before:
        return
    rest = facts.times.bare - facts.times.parts["data"]
    likely = max(rest, facts.times.bare * before / after)
    yield Advice(
        "parallel_workers",
        words.PARALLEL.of(before=before, after=after),
        words.PARALLEL_WHY.of(stages=[one["stage"] for one in loader["stages"]], make=facts.times.bare, rest=rest),
        words.PARALLEL_RULE.of(),
        likely,
        rest,
        facts.times.bare,
        Change("loader", {"num_parallel_workers": after}, {"num_parallel_workers": before}, loader_place(loader)),
        _line(loader.get("source")),
    )


def prefetch(facts: Facts) -> Iterator[Advice]:
    times, model, pipeline = facts.times, facts.model, facts.pipeline
    if model is None or pipeline is None or not pipeline.workers or times.p99 <= 1.5 * times.p50:
        return
    spent = facts.trace.steps["spent"].astype(np.float64)
    together = np.corrcoef(spent[1:, 0], spent[1:].sum(axis=1))[0, 1] if len(spent) > 4 else 0.0
    if not together > 0.8:
        return
    deeper = min((model.predict(pipeline.workers, ahead) for ahead in (4, 8)), key=lambda one: one.ms)
    if deeper.ms > (1 - GAIN) * times.bare or (facts.best is not None and facts.best.ms < deeper.ms):
        return
    yield Advice(
        "prefetch",
        words.PREFETCH.of(before=model.prefetch, after=deeper.prefetch),
        words.PREFETCH_WHY.of(ratio=times.p99 / times.p50, corr=float(together)),
        words.PREFETCH_RULE.of(),
        deeper.ms,
        deeper.low,
        deeper.high,
        Change(
            "loader",
            {"prefetch_factor": deeper.prefetch},
            {"prefetch_factor": model.prefetch},
            loader_place(pipeline.loader),
        ),
        _line(pipeline.loader.get("source")),
    )


def persistent(facts: Facts) -> Iterator[Advice]:
    times, pipeline = facts.times, facts.pipeline
    if pipeline is None or not pipeline.workers or pipeline.loader.get("persistent_workers") or times.epochs < 3:
        return
    per_epoch = times.steps / times.epochs
    share = times.epoch_ms / (times.epoch_ms + per_epoch * times.mean)
    if share > 0.05:
        yield Advice(
            "persistent_workers",
            words.PERSISTENT.of(),
            words.PERSISTENT_WHY.of(ms=times.epoch_ms, steps=per_epoch),
            words.PERSISTENT_RULE.of(),
            where=_line(pipeline.loader.get("source")),
        )


def stage(facts: Facts) -> Iterator[Advice]:
    pipeline = facts.pipeline
    if pipeline is None or facts.verdict.bound not in ("input", "saturated"):
        return
    heavy = [one for one in pipeline.stages if one.share > 0.5 and one.depth > 0 and one.where]
    if not heavy:
        return
    deepest = max(heavy, key=lambda one: one.depth)
    low = facts.times.bare - facts.times.parts["data"]
    least = max(low, facts.times.bare * (1 - deepest.share))
    yield Advice(
        "stage",
        words.STAGE.of(stage=deepest.name),
        words.STAGE_WHY.of(stage=deepest.name, share=deepest.share, ms=deepest.ms),
        words.STAGE_RULE.of(),
        least,
        low,
        facts.times.bare,
        where=deepest.where,
    )


def samples(facts: Facts) -> Iterator[Advice]:
    pipeline = facts.pipeline
    if pipeline is not None and pipeline.slow:
        yield Advice(
            "samples",
            words.SAMPLES.of(indices=[one.index for one in pipeline.slow]),
            words.SAMPLES_WHY.of(ms=pipeline.slow[0].ms, usual=pipeline.sample_ms),
            words.SAMPLES_RULE.of(),
            where=_line(pipeline.loader.get("source")),
        )


def between(facts: Facts) -> Iterator[Advice]:
    """Time spent outside of what trains: the gap, and what happens to gradients."""
    times = facts.times
    for part, what, why, rule in (
        ("gap", words.GAP, words.GAP_WHY, words.GAP_RULE),
        ("gradients", words.GRADIENTS, words.GRADIENTS_WHY, words.GRADIENTS_RULE),
    ):
        ms = times.parts[part]
        if times.share(part) > 0.05 and ms > _NOTABLE_MS:
            least = times.bare - ms
            yield Advice(part, what.of(), why.of(ms=ms), rule.of(), least, least, times.bare)


def optimizer(facts: Facts) -> Iterator[Advice]:
    times = facts.times
    if facts.framework != "pytorch" or facts.optimizer not in ("Adam", "AdamW", "SGD", "Adagrad"):
        return
    if times.share("optimizer") > 0.10 and times.parts["optimizer"] > _NOTABLE_MS:
        rest = times.bare - times.parts["optimizer"]
        yield Advice(
            "optimizer",
            words.OPTIMIZER.of(optimizer=facts.optimizer),
            words.OPTIMIZER_WHY.of(optimizer=facts.optimizer, share=times.share("optimizer")),
            words.OPTIMIZER_RULE.of(),
            # A fused update reads and writes each tensor once instead of a dozen times: 2 to 4 times faster for Adam.
            rest + times.parts["optimizer"] * (0.9 if facts.optimizer == "SGD" else 0.4),
            rest + times.parts["optimizer"] * 0.2,
            times.bare,
            Change("knob", {"fused": True}),
        )


def periodic(facts: Facts) -> Iterator[Advice]:
    times, period = facts.times, facts.times.period
    if period is not None and period.ms > 0.02 * period.every * times.p50:
        least = times.bare - period.ms / period.every
        yield Advice(
            "periodic",
            words.PERIODIC.of(every=period.every),
            words.PERIODIC_WHY.of(every=period.every, ms=period.ms, segment=words.SEGMENTS[period.segment]),
            words.PERIODIC_RULE.of(),
            least,
            least,
            times.bare,
        )


def compiling(facts: Facts) -> Iterator[Advice]:
    times = facts.times
    first = facts.trace.steps["spent"][0]
    if times.first_ms > max(1000.0, 5 * times.p50) and float(first[8]) / 1e3 > 0.5 * times.first_ms:
        why = words.FIRST_WHY.of(first=times.first_ms / 1e3, ratio=times.first_ms / times.p50)
        yield Advice("first_step", words.FIRST.of(), why, words.FIRST_RULE.of())
    later = times.compiled_later
    if len(later) > 2:
        seconds = times.compile_ms / 1e3 - float(first[8]) / 1e6
        why = words.RECOMPILED_WHY.of(count=len(later), step=later[0], seconds=seconds)
        yield Advice("recompiled", words.RECOMPILED.of(), why, words.RECOMPILED_RULE.of())


def straggler(facts: Facts) -> Iterator[Advice]:
    """A rank that makes the others wait; by its own segments, for the step times of all ranks are equal."""
    if len(facts.ranks) < 2:
        return
    for segment in ("data", "transfer", "forward", "loss", "optimizer", "gap"):
        taken = {one.rank: one.parts[segment] for one in facts.ranks}
        slowest = max(taken, key=lambda rank: taken[rank])
        usual = float(np.median([ms for rank, ms in taken.items() if rank != slowest]))
        more = taken[slowest] - usual
        if taken[slowest] > _SLOW_RANK * usual and more > max(_NOTABLE_MS, GAIN * facts.times.bare):
            yield Advice(
                "straggler",
                words.STRAGGLER.of(rank=slowest, segment=words.SEGMENTS[segment]),
                words.STRAGGLER_WHY.of(rank=slowest, ms=taken[slowest], usual=usual, segment=words.SEGMENTS[segment]),
                words.STRAGGLER_RULE.of(),
                facts.times.bare - more,
                facts.times.bare - more,
                facts.times.bare,
            )


RULES: tuple[Rule, ...] = (
    workers,
    parallel_workers,
    prefetch,
    persistent,
    stage,
    samples,
    between,
    optimizer,
    periodic,
    compiling,
    straggler,
)


def loader_place(loader: dict[str, Any]) -> dict[str, Any]:
    """Which loader of the program: its line, and the how-manieth made there."""
    return {**(loader.get("source") or {}), "nth": loader.get("nth", 0), "loader": loader.get("loader", 0)}


def _line(source: dict[str, Any] | None) -> str:
    return f"{source['file']}:{source['line']}" if source else ""
