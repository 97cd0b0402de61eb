"""`misstep advise`: everything there is to say of a run's speed, as one record. What was not measured is part of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from misstep.errors import PerformanceError
from misstep.performance.changes import Change
from misstep.performance.loader_model import WORST_FIT, Prediction, loader_model
from misstep.performance.pipeline import Load, Pipeline, load_of, pipeline_of
from misstep.performance.rules import Advice, Facts, all_advice
from misstep.performance.steps import FEWEST, StepTimes, step_times
from misstep.performance.verdict import DataVerdict, best_workers, data_verdict
from misstep.sentences.speed import advice as words
from misstep.sentences.text import Sentence
from misstep.store.layout import rank_paths
from misstep.store.reading.reader import Run
from misstep.store.tracefile import Trace, read_trace


@dataclass(frozen=True, slots=True)
class SpeedReport:
    run: str
    times: tuple[StepTimes, ...]
    """Of each rank."""
    pipeline: Pipeline | None
    loader: dict[str, Any] | None
    """The loader's arguments and the user's line, also where its batches are not told of."""
    load: Load | None
    verdict: DataVerdict
    predictions: tuple[Prediction, ...]
    advice: tuple[Advice, ...]
    unknown: tuple[Sentence, ...]
    """What was not measured, and what that leaves open."""
    nothing: Sentence | None
    """Said where no rule found anything."""

    @property
    def slowest(self) -> StepTimes | None:
        """The rank whose own work takes longest: the others wait for it."""
        return max(self.times, key=lambda one: one.bare, default=None)


def speed_report(run: Run) -> SpeedReport:
    """What the trace of a run says; of one that still runs, so far."""
    traces = {rank: read_trace(rank_paths(run.path, rank).trace) for rank in run.ranks}
    traces = {rank: trace for rank, trace in traces.items() if len(trace.steps)}
    if not traces:
        raise PerformanceError(words.NO_TRACE.of(run=run.name))
    times = tuple(one for rank, trace in traces.items() if (one := step_times(trace.steps, rank)) is not None)
    if not times:
        steps = max(len(trace.steps) for trace in traces.values())
        verdict = DataVerdict("unknown", words.TOO_FEW.of(steps=steps, fewest=FEWEST))
        return SpeedReport(run.name, (), None, None, None, verdict, (), (), (), None)
    slowest = max(times, key=lambda one: one.bare)
    return _report(run, times, slowest, traces[slowest.rank])


def expected_step(run: Run, change: Change) -> float | None:
    """What this change would make of a step of this very run, by the model of its loader; None when that is silent."""
    if change.kind != "loader" or not {"num_workers", "prefetch_factor"} & set(change.values):
        return None
    traces = {rank: read_trace(rank_paths(run.path, rank).trace) for rank in run.ranks}
    times = [one for rank, trace in traces.items() if (one := step_times(trace.steps, rank)) is not None]
    if not times:
        return None
    slowest = max(times, key=lambda one: one.bare)
    trace = traces[slowest.rank]
    pipeline = pipeline_of(trace, [event.facts for event in run.events("loader", slowest.rank)], None)
    model = loader_model(slowest, pipeline, load_of(trace.loads)) if pipeline is not None else None
    if model is None:
        return None
    return model.predict(change.values.get("num_workers", model.workers), change.values.get("prefetch_factor")).ms


def _report(run: Run, times: tuple[StepTimes, ...], slowest: StepTimes, trace: Trace) -> SpeedReport:
    loaders = [event.facts for event in run.events("loader", slowest.rank)]
    told = [event.facts for event in run.events("stages", slowest.rank)]
    pipeline = pipeline_of(trace, loaders, told[-1] if told else None, run.info.directory)
    loader = pipeline.loader if pipeline is not None else (loaders[0] if loaders else None)
    load = load_of(trace.loads)
    model = loader_model(slowest, pipeline, load) if pipeline is not None else None
    best = best_workers(model, load.allowed if load is not None else 4) if model is not None else None
    verdict = data_verdict(slowest, pipeline, load, best)
    last = run.last_step
    facts = Facts(
        slowest,
        times,
        trace,
        loader,
        pipeline,
        load,
        model,
        best,
        verdict,
        optimizer=last.optimizer if last is not None else "",
        framework=str(loader.get("framework", "")) if loader else _framework(run),
    )
    advice = tuple(all_advice(facts))
    predictions: list[Prediction] = []
    if model is not None:
        most = int(
            max(4, min(8, load.allowed * 2 if load is not None else 4), model.workers, best.workers if best else 0)
        )
        predictions = [model.predict(count) for count in range(most + 1)]
        if model.workers:
            predictions += [model.predict(model.workers, ahead) for ahead in (4, 8)]
        predictions += [model.predict(model.workers, batch=factor) for factor in (0.5, 2.0)]
    compute = sum(slowest.share(part) for part in ("forward", "loss", "backward", "optimizer"))
    return SpeedReport(
        run=run.name,
        times=times,
        pipeline=pipeline,
        loader=loader,
        load=load,
        verdict=verdict,
        predictions=tuple(predictions),
        advice=advice,
        unknown=tuple(_unknown(run, facts)),
        nothing=None if advice else words.NOTHING.of(step=slowest.bare, compute=min(1.0, compute)),
    )


def _unknown(run: Run, facts: Facts) -> list[Sentence]:
    said: list[Sentence] = []
    if facts.loader is None:
        said.append(words.NO_LOADER.of())
    elif facts.pipeline is None:
        said.append(words.NO_BATCHES.of(framework=facts.framework))
    elif facts.model is None:
        said.append(words.NO_MODEL.of(percent=WORST_FIT))
    if facts.load is None:
        said.append(words.NO_LOAD.of())
    elif facts.load.external > 0.3:
        said.append(words.DISTURBED.of(others=facts.load.external))
    if facts.times.whole:
        said.append(words.ONE_FIGURE.of())
    torch = run.info.versions.get("torch", "")
    if torch and "+cpu" not in torch:
        said.append(words.THE_HOST.of())
    return said


def _framework(run: Run) -> str:
    return "pytorch" if "torch" in run.info.versions else "mindspore" if "mindspore" in run.info.versions else ""
