"""The address of a run's speed: its steps in bars, the verdict, advice, and what was measured of it."""

from __future__ import annotations

import asyncio

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from misstep.core.segments import OF_TRAINING, SEGMENTS
from misstep.errors import PerformanceError
from misstep.hub.answers import request as asked
from misstep.hub.answers.run_routes import bound, json_response
from misstep.hub.hub import Hub
from misstep.performance.operators import Profile, profile_of
from misstep.performance.report import SpeedReport, speed_report
from misstep.performance.resident import resident_memory
from misstep.performance.trial import results_of
from misstep.protocol.speed import SpeedAdvice, SpeedOperator, SpeedStage, SpeedTrial, SpeedView
from misstep.sentences.language import Language
from misstep.sentences.speed import advice as words
from misstep.sentences.text import revived, said
from misstep.store.layout import rank_paths
from misstep.store.reading.reader import Run
from misstep.store.tracefile import Records, read_trace

BARS = 160
_MOST_OPERATORS = 24
_SHOWN = (*OF_TRAINING, "compile")


def routes(hub: Hub) -> list[Route]:
    return [Route("/api/v1/runs/{run}/speed", bound(hub, _speed), methods=["GET"])]


async def _speed(hub: Hub, request: Request) -> Response:
    path = hub.reader(str(request.path_params["run"])).path
    lang: Language = "zh" if request.query_params.get("lang", "en").startswith("zh") else "en"
    rank, last = asked.integer(request, "rank", 0), asked.integer(request, "last", 0)
    # A reader of its own: the model of the loader takes a moment, and the hub's reader serves others meanwhile.
    return json_response(await asyncio.to_thread(lambda: speed_view(Run(path), lang, rank, last)))


def speed_view(run: Run, lang: Language, rank: int = 0, last: int = 0) -> SpeedView:
    """Everything the page shows of a run's speed; PerformanceError when there is no trace."""
    report = speed_report(run)
    times = next((one for one in report.times if one.rank == rank), report.slowest)
    shown = times.rank if times is not None else rank
    records = read_trace(rank_paths(run.path, shown).trace).steps[-last:]
    steps, columns = _bars(records)
    pipeline, profile = report.pipeline, _profile(run, shown)
    held = [one.most for one in resident_memory(run) if one.rank == shown]
    return SpeedView(
        rank=shown,
        steps=steps,
        segments=_SHOWN,
        words=tuple(words.SEGMENTS[name].say(lang, {}) for name in _SHOWN),
        spent=columns,
        step=times.bare if times else 0.0,
        p50=times.p50 if times else 0.0,
        p90=times.p90 if times else 0.0,
        p99=times.p99 if times else 0.0,
        first=times.first_ms if times else 0.0,
        compile=times.compile_ms if times else 0.0,
        data_share=times.share("data") if times else 0.0,
        empty=times.empty if times else None,
        period=times.period.every if times and times.period else 0,
        bound=report.verdict.bound,
        verdict=words.VERDICTS[report.verdict.bound].say(lang, {}),
        why=said(report.verdict.why, lang),
        memory_most=max(held, default=0),
        loader=_loader(report),
        make=pipeline.make if pipeline else None,
        workers=pipeline.workers if pipeline else None,
        advice=_advice(report, lang),
        trials=_trials(run, lang),
        stages=tuple(
            SpeedStage(one.name, one.share, one.ms, one.where, one.depth)
            for one in (pipeline.stages if pipeline else ())
        ),
        operators=_operators(profile),
        profiled=profile.steps if profile else 0,
        unknown=tuple(said(one, lang) for one in report.unknown),
        nothing=said(report.nothing, lang) if report.nothing else "",
    )


def _bars(records: Records) -> tuple[tuple[int, ...], tuple[tuple[float, ...], ...]]:
    """Steps in at most so many bars: each is the mean of its steps, the first step left out (it dwarfs the others)."""
    records = records[1:] if len(records) > 8 else records
    parts = [part for part in np.array_split(np.arange(len(records)), min(BARS, len(records))) if len(part)]
    numbers = tuple(int(records["number"][part[0]]) for part in parts)
    spent = records["spent"].astype(np.float64) / 1e3
    means = [spent[part].mean(axis=0) for part in parts]
    columns = [tuple(round(float(mean[SEGMENTS.index(name)]), 4) for mean in means) for name in _SHOWN]
    return numbers, tuple(columns)


def _loader(report: SpeedReport) -> str:
    source = (report.loader or {}).get("source")
    return f"{source['file']}:{source['line']}" if source else ""


def _advice(report: SpeedReport, lang: Language) -> tuple[SpeedAdvice, ...]:
    return tuple(
        SpeedAdvice(
            one.rule,
            said(one.what, lang),
            said(one.why, lang),
            said(one.threshold, lang),
            one.predicted,
            one.low,
            one.high,
            one.where,
            one.change is not None,
        )
        for one in report.advice
    )


def _trials(run: Run, lang: Language) -> tuple[SpeedTrial, ...]:
    """The last trial of every change."""
    latest = {one["name"]: one for one in results_of(run.path)}
    return tuple(
        SpeedTrial(
            one["name"],
            one["predicted"],
            one["before"],
            one["after"],
            bool(one["kept"]),
            said(revived(one["outcome"], one["outcome"]["text"]), lang),
        )
        for one in latest.values()
    )


def _profile(run: Run, rank: int) -> Profile | None:
    try:
        return profile_of(run, rank)
    except PerformanceError:
        return None


def _operators(profile: Profile | None) -> tuple[SpeedOperator, ...]:
    """By operator, line and phase; the rest is left out."""
    if profile is None:
        return ()
    whole = max(profile.self_us, 1e-9)
    merged: dict[tuple[str, str, str], float] = {}
    for one in profile.operators:
        key = (one.name.removeprefix("aten::"), one.phase, one.line or one.module)
        merged[key] = merged.get(key, 0.0) + one.self_us / whole
    ordered = sorted(merged.items(), key=lambda item: -item[1])[:_MOST_OPERATORS]
    return tuple(SpeedOperator(name, share, phase, where) for (name, phase, where), share in ordered)
