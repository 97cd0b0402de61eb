"""The crash page's addresses: the flight records of a run, one of them explained, and the bundle itself.

A bundle never changes once it is written, so that an explanation is made once and kept by the file's name and time.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from misstep.diagnosis.crash.explain import Crash, Ending, explain
from misstep.diagnosis.crash.knowledge import Cause
from misstep.diagnosis.crash.position import Reached
from misstep.errors import ControlError, RunNotFound
from misstep.hub.answers.run_routes import bound, json_response
from misstep.hub.hub import Hub
from misstep.protocol.crash import (
    BatchView,
    CauseView,
    CrashEvent,
    CrashReport,
    CrashSpot,
    FrameView,
    HolderView,
    JournalLine,
    KeptValue,
    KernelThread,
    PassedNode,
    RankEnding,
    ReachedView,
    RecordBrief,
    RecordedStep,
    RecordList,
    ThreadView,
)
from misstep.protocol.views import number
from misstep.sentences.language import Language
from misstep.sentences.text import said
from misstep.store.bundle.open import Bundle, open_bundle
from misstep.store.bundle.write import BundleKind, bundles_of, write_bundle
from misstep.store.reading.reader import Run

KEPT = 8
"""Explanations kept; one is some ten kilobytes."""
_explained: dict[tuple[str, int, int], tuple[CrashReport, tuple[Cause, ...]]] = {}


def routes(hub: Hub) -> list[Route]:
    """Every address of the crash page, bound to this hub."""
    place = "/api/v1/runs/{run}/records"
    return [
        Route(place, bound(hub, _records), methods=["GET"]),
        Route(place, bound(hub, _make), methods=["POST"]),
        Route(f"{place}/{{record}}", bound(hub, _record), methods=["GET"]),
        Route(f"{place}/{{record}}/zip", bound(hub, _download), methods=["GET"]),
    ]


def record_list(run: Run) -> RecordList:
    """The bundles of a run."""
    return RecordList(
        records=tuple(RecordBrief(path.stem, at.st_mtime, at.st_size) for path, at in _with_stat(run.path)),
        can_make=not run.alive,
    )


def crash_report(path: Path, lang: str) -> CrashReport:
    """A bundle explained, causes and events in this language."""
    at = path.stat()
    key = (str(path), at.st_mtime_ns, at.st_size)
    if key not in _explained:
        with open_bundle(path) as bundle:
            crash = explain(bundle)
            while len(_explained) >= KEPT:
                _explained.pop(next(iter(_explained)))
            _explained[key] = (_report(crash, bundle, path.stem, at.st_size), crash.causes)
    report, causes = _explained[key]
    chinese = lang.startswith("zh")
    told = tuple(
        CauseView(cause.id, cause.found_in, cause.matched, words.title, words.why, words.advice)
        for cause in causes
        for words in (cause.words("zh" if chinese else "en"),)
    )
    lang_of_reader: Language = "zh" if chinese else "en"
    events = tuple(msgspec.structs.replace(line, text=said(line.text, lang_of_reader)) for line in report.events)
    return msgspec.structs.replace(report, causes=told, events=events)


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _records(hub: Hub, request: Request) -> Response:
    return json_response(record_list(hub.reader(_run(request))))


async def _record(hub: Hub, request: Request) -> Response:
    path = _bundle(hub, request)
    return json_response(await asyncio.to_thread(crash_report, path, request.query_params.get("lang", "en")))


async def _download(hub: Hub, request: Request) -> Response:
    path = _bundle(hub, request)
    return FileResponse(path, media_type="application/zip", filename=f"{_run(request)}-{path.name}")


async def _make(hub: Hub, request: Request) -> Response:
    """A record of what a run left: somebody killed both the training and whoever would have made one."""
    run = hub.reader(_run(request))
    if run.alive:
        text = f"{run.name} is still running; a record of a live run is made by:  misstep record {run.name}"
        raise ControlError(text, code="bad_request")
    kind: BundleKind = "end" if run.state == "finished" else "crash"
    await asyncio.to_thread(write_bundle, run.path, kind=kind, environment=dict(os.environ))
    return json_response(record_list(run))


def _run(request: Request) -> str:
    return str(request.path_params["run"])


def _bundle(hub: Hub, request: Request) -> Path:
    """The bundle of that name; looked up in the list, so that nothing a client sends becomes part of a path."""
    run, wanted = hub.reader(_run(request)), str(request.path_params["record"])
    found = {path.stem: path for path, _ in _with_stat(run.path)}
    if wanted not in found:
        there = f"there are {', '.join(found)}" if found else f"make one:  misstep record {run.name}"
        raise RunNotFound(f"{run.name} has no flight record {wanted[:40]!r}; {there}", run=run.name)
    return found[wanted]


def _with_stat(run: Path) -> list[tuple[Path, os.stat_result]]:
    return [(path, path.stat()) for path in bundles_of(run)]


# ── a crash as a payload ─────────────────────────────────────────────────────────────────────────────────────────────


def _report(crash: Crash, bundle: Bundle, name: str, size: int) -> CrashReport:
    info = bundle.run.info
    return CrashReport(
        run=crash.run,
        record=name,
        kind=crash.kind,
        time=crash.time,
        bytes=size,
        endings=tuple(_ending(one, culprit=one is crash.culprit) for one in crash.endings),
        causes=(),
        events=tuple(JournalLine(one["kind"], one["rank"], one["time"], one["text"]) for one in crash.events),
        reached=None if crash.reached is None else _reached(crash.reached),
        trail=tuple(one["name"] for one in crash.trail),
        threads=tuple(_threads(crash)),
        machine=crash.machine,
        stacks=dict(crash.stacks),
        kernel_threads=tuple(
            KernelThread(one.get("id", ""), one.get("name", ""), one.get("state", ""), one.get("waits_in", ""))
            for one in crash.kernel_threads
        ),
        steps=tuple(_step(one) for one in crash.steps),
        memory={name: int(size) for name, size in crash.memory.items()},
        limits=dict(crash.limits),
        holders=tuple(_holder(one) for one in crash.holders),
        batch=tuple(BatchView(one["dtype"], tuple(one["shape"]), str(one["digest"])) for one in crash.batch),
        log=crash.log,
        random=dict(crash.random),
        command=tuple(info.command),
        host=info.host,
        started=info.started,
        versions=dict(info.versions),
        device=crash.device,
        git=dict(info.git),
        environment=crash.environment,
        settings=dict(info.settings),
        problems=crash.problems,
        values=tuple(KeptValue(one["address"], one["dtype"], tuple(one["shape"])) for one in crash.values),
        left_out=int(crash.left_out.get("tensors", 0)),
    )


def _ending(one: Ending, *, culprit: bool) -> RankEnding:
    event, spot = one.event, one.spot
    return RankEnding(
        rank=one.rank,
        event=CrashEvent(event.kind, event.name, event.text, event.code, event.seconds, event.memory_killer),
        spot=CrashSpot(spot.step, spot.phase, spot.node, spot.type, spot.source, spot.code, spot.function),
        last_step=one.last_step,
        last_time=one.last_time,
        collective=one.collective,
        waiting_seconds=one.waiting_seconds,
        collectives=one.collectives,
        culprit=culprit,
    )


def _reached(one: Reached) -> ReachedView:
    nodes = tuple(
        PassedNode(node.order, node.node, node.type, node.phase, node.done, node.here, node.source, node.code)
        for node in one.nodes
    )
    return ReachedView(one.first, one.last, one.total, nodes, dict(one.phases))


def _threads(crash: Crash) -> list[ThreadView]:
    """The stack that failed first, then every other thread."""
    others = [ThreadView(str(one.get("thread", "")), False, _frames(one.get("frames", ()))) for one in crash.threads
              if not one.get("main")]  # fmt: skip
    return [ThreadView("MainThread", True, _frames(crash.frames)), *others] if crash.frames else others


def _frames(frames: Any) -> tuple[FrameView, ...]:
    return tuple(
        FrameView(
            str(frame.get("file", "")),
            int(frame.get("line", 0)),
            str(frame.get("function", "")),
            str(frame.get("code", "")),
            bool(frame.get("library", False)),
            {str(name): str(value) for name, value in (frame.get("locals") or {}).items()},
        )
        for frame in frames
    )


def _step(one: dict[str, Any]) -> RecordedStep:
    def value(name: str) -> Any:
        return number(float(one[name])) if one.get(name) is not None else None  # a NaN is a word in the record

    memory = {name: int(size) for name, size in one.get("memory", {}).items()}
    times = float(one.get("time", 0.0)), float(one.get("seconds", 0.0))
    return RecordedStep(int(one["step"]), *times, value("loss"), value("rate"), memory)


def _holder(one: dict[str, Any]) -> HolderView:
    return HolderView(
        str(one.get("name", "")),
        str(one.get("kind", "")),
        int(one.get("bytes", 0)),
        int(one.get("count", 1)),
        str(one.get("dtype", "")),
        tuple(one.get("shape", ())),
    )
