"""The addresses under /api/v1: a request in, a payload out. What they mean is written in protocol/payloads.py.

Data that cannot change any more (a step that ended, a graph of that revision) carries an ETag and may be kept by the
browser; everything else is asked for again.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from typing import Any, get_args
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from misstep.errors import (
    AddressError,
    CompareError,
    ConditionError,
    ControlError,
    FormatError,
    MisstepError,
    RunError,
    RunNotFound,
    TensorUnavailable,
)
from misstep.hub.answers import curves, hits, nodes, tensors
from misstep.hub.answers import request as asked
from misstep.hub.answers.graph import graph_columns
from misstep.hub.hub import Hub
from misstep.protocol import messages as m
from misstep.protocol.payloads import Failure, WatchList
from misstep.protocol.schema import schema
from misstep.protocol.tensor_payloads import CompareMode, Unavailable
from misstep.sentences.text import only_english
from misstep.store.reading.reader import Run

Handler = Callable[[Hub, Request], Awaitable[Response]]
_JSON = msgspec.json.Encoder(enc_hook=only_english)
_GRAPHS: WeakKeyDictionary[Run, tuple[str, bytes]] = WeakKeyDictionary()
"""The last graph sent of each open run, by its tag."""


def routes(hub: Hub) -> list[Route]:
    """Every address, bound to this hub."""
    get: dict[str, Handler] = {
        "/runs": _runs,
        "/runs/{run}": _run,
        "/runs/{run}/graph": _graph,
        "/runs/{run}/scalars": _scalars,
        "/runs/{run}/stats": _stats,
        "/runs/{run}/steps/{step:int}": _step,
        "/runs/{run}/hits": _hits,
        "/runs/{run}/watchpoints": _watchpoints,
        "/runs/{run}/node": _node,
        "/runs/{run}/search": _search,
        "/runs/{run}/sources": _sources,
        "/runs/{run}/tensor": _tensor,
        "/runs/{run}/compare": _compare,
        "/runs/{run}/npy": _npy,
        "/runs/{run}/state": _state,
        "/conditions": _conditions,
        "/schema": _schema,
        "/snapshot": _snapshot,
    }
    post: dict[str, Handler] = {"/runs/{run}/command": _command, "/runs/{run}/watchpoints": _edit}
    return [
        *(Route(f"/api/v1{path}", bound(hub, handler), methods=["GET"]) for path, handler in get.items()),
        *(Route(f"/api/v1{path}", bound(hub, handler), methods=["POST"]) for path, handler in post.items()),
    ]


def bound(hub: Hub, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """A handler of this hub, its errors translated to HTTP."""

    async def answer(request: Request) -> Response:
        hub.last_busy = asyncio.get_running_loop().time()
        try:
            return await handler(hub, request)
        except MisstepError as error:
            return failure(error)
        except (ValueError, msgspec.MsgspecError) as error:
            return json_response(Failure("bad_request", str(error)[:500]), status=400)

    return answer


def failure(error: MisstepError) -> Response:
    """An error of the domain as HTTP: translated here and nowhere else."""
    if isinstance(error, TensorUnavailable):
        known = error.reason if error.reason in ("not_captured", "not_watched", "freed", "too_large") else "unknown"
        known = error.reason if error.reason in ("other_rank", "running", "no_such_step") else known
        return json_response(Unavailable(error.address, known, str(error)), status=404)  # type: ignore[arg-type]
    if isinstance(error, ControlError):
        status = {"stale_state": 409, "not_paused": 409, "not_running": 409, "not_found": 404, "timeout": 504}
        return json_response(
            Failure(error.code, str(error), getattr(error, "params", {}) or {}), status=status.get(error.code, 400)
        )
    missing, asked_wrongly = (RunNotFound, RunError), (AddressError, ConditionError, CompareError, FormatError)
    status_of: dict[type, int] = dict.fromkeys(missing, 404) | dict.fromkeys(asked_wrongly, 400)
    return json_response(Failure(type(error).__name__, str(error)), status=status_of.get(type(error), 500))


def json_response(payload: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(_JSON.encode(payload), status, headers, "application/json")


def tagged(request: Request, tag: str, make: Callable[[], Any], *, forever: bool = False) -> Response:
    """An answer that a browser which has it already need not load again."""
    etag = f'"{tag}"'
    keep = "private, max-age=31536000, immutable" if forever else "private, no-cache"
    headers = {"etag": etag, "cache-control": keep}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return json_response(make(), headers=headers)


def is_of(request: Request, run: Run) -> bool:
    """Whether the address names this very run, not only its name: a name can be recorded anew, and what a browser
    keeps for ever it never asks for again."""
    return request.query_params.get("of") == f"{run.info.started:.0f}"


async def _runs(hub: Hub, request: Request) -> Response:
    return json_response(await asyncio.to_thread(hub.runs, max(0, asked.integer(request, "newest", 0))))


async def _run(hub: Hub, request: Request) -> Response:
    return json_response(hub.detail(_name(request)))


async def _graph(hub: Hub, request: Request) -> Response:
    run, rank = hub.reader(_name(request)), asked.integer(request, "rank", 0)
    # What is finished stays as it is, so it can be read in a thread, while whoever asks for less gets it at once.
    finished = not run.alive
    graph = await asyncio.to_thread(run.graph, rank) if finished else run.graph(rank)
    tag = f"g{rank}-{run.info.started:.0f}-{len(graph.nodes)}-{len(graph.edges)}-{len(graph.tensors)}"
    if finished:
        await asyncio.to_thread(_graph_once, run, rank, tag)
    return tagged(request, tag, lambda: _graph_once(run, rank, tag))


def _graph_once(run: Run, rank: int, tag: str) -> msgspec.Raw:
    """A graph of 50,000 operators takes a second to gather: every tab and reload gets what was made for the first."""
    known = _GRAPHS.get(run)
    if known is None or known[0] != tag:
        known = _GRAPHS[run] = (tag, _JSON.encode(graph_columns(run, rank)))
    return msgspec.Raw(known[1])


async def _scalars(hub: Hub, request: Request) -> Response:
    run = hub.reader(_name(request))
    tags = request.query_params.getlist("tag") or ["loss"]
    rank, points = asked.integer(request, "rank", min(run.ranks, default=0)), asked.integer(request, "points", 2000)
    timed = request.query_params.get("time") == "1"
    return json_response([curves.scalars(run, tag, rank, points=points, timed=timed) for tag in tags[:50]])


async def _stats(hub: Hub, request: Request) -> Response:
    run = hub.reader(_name(request))
    first, _, last = request.query_params.get("steps", "").partition(":")
    return json_response(
        curves.history(
            run,
            asked.text(request, "address"),
            first=int(first) if first else None,
            last=int(last) if last else None,
            points=asked.integer(request, "points", 2000),
        )
    )


async def _step(hub: Hub, request: Request) -> Response:
    run, step, rank = hub.reader(_name(request)), request.path_params["step"], asked.integer(request, "rank", 0)
    ended = run.step(step, rank) is not None or step == 0
    only = [name for name in request.query_params.get("columns", "").split(",") if name]
    tag = f"s{rank}-{step}-{ended}-{run.info.started:.0f}"
    return tagged(
        request, tag, lambda: curves.step_table(run, step, rank, only=only), forever=ended and is_of(request, run)
    )


async def _hits(hub: Hub, request: Request) -> Response:
    query = request.query_params
    return json_response(
        hits.hit_list(
            hub.hits(_name(request), since=asked.integer(request, "since", 0)),
            watchpoint=int(query["watchpoint"]) if query.get("watchpoint") else None,
            step=int(query["step"]) if query.get("step") else None,
            node=query.get("node", ""),
            birth=query.get("birth", ""),
            offset=asked.integer(request, "offset", 0),
            limit=asked.integer(request, "limit", 1000),
        )
    )


async def _watchpoints(hub: Hub, request: Request) -> Response:
    name = _name(request)
    live = hub.live.get(name)
    first = live.rank_views()[0] if live is not None and live.rank_views() else None
    return json_response(
        WatchList(hub.watchpoints(name), first.memory_bytes if first else 0, first.memory_limit if first else 0)
    )


async def _node(hub: Hub, request: Request) -> Response:
    name = _name(request)
    step = asked.integer(request, "step", -1)
    return json_response(
        nodes.node_info(
            hub.reader(name),
            asked.text(request, "name"),
            asked.integer(request, "rank", 0),
            step if step >= 0 else None,
            hits=hub.hits(name),
        )
    )


async def _search(hub: Hub, request: Request) -> Response:
    name = _name(request)
    run = hub.reader(name)
    return json_response(
        await asyncio.to_thread(
            nodes.search_nodes,
            run,
            request.query_params.get("q", ""),
            asked.integer(request, "rank", 0),
            limit=asked.integer(request, "limit", 200),
            offset=asked.integer(request, "offset", 0),
            hits=hub.hits(name),
            watch=run.watchpoints,
        )
    )


async def _sources(hub: Hub, request: Request) -> Response:
    run = hub.reader(_name(request))
    limit, offset = asked.integer(request, "limit", 500), asked.integer(request, "offset", 0)
    return json_response(nodes.source_list(run, asked.integer(request, "rank", 0), limit=limit, offset=offset))


async def _tensor(hub: Hub, request: Request) -> Response:
    header, data = await tensors.tensor(
        hub,
        _name(request),
        asked.text(request, "address"),
        slice=request.query_params.get("slice", ""),
        want=asked.wants(request),
        previous=request.query_params.get("previous") == "1",
    )
    kept = header.origin == "stored" and header.step is not None and is_of(request, hub.reader(_name(request)))
    return asked.binary(request, header, data, forever=kept)


async def _compare(hub: Hub, request: Request) -> Response:
    query = request.query_params
    mode = query.get("mode", "difference")
    if mode not in get_args(CompareMode):
        raise AddressError(f"cannot show {mode!r}; there are {', '.join(get_args(CompareMode))}")
    header, data = await tensors.compare(
        hub,
        _name(request),
        asked.text(request, "a"),
        query.get("b", "prev"),
        mode=mode,  # type: ignore[arg-type]
        atol=asked.real(request, "atol", 1e-8),
        rtol=asked.real(request, "rtol", 1e-5),
        slice=query.get("slice", ""),
        want=asked.wants(request),
    )
    return asked.binary(request, header, data)


async def _npy(hub: Hub, request: Request) -> Response:
    address, array = await tensors.array(
        hub, _name(request), asked.text(request, "address"), slice=request.query_params.get("slice", "")
    )
    file = io.BytesIO()
    plain = array if array.dtype.kind in "fiubc" else array.astype(np.float32)
    np.save(file, plain, allow_pickle=False)
    return asked.attachment(file.getvalue(), f"{address}.npy")


async def _state(hub: Hub, request: Request) -> Response:
    return json_response(hub.state(_name(request)))


async def _conditions(hub: Hub, request: Request) -> Response:
    return json_response(hits.conditions(request.query_params.get("lang", "en")))


async def _schema(hub: Hub, request: Request) -> Response:
    return json_response(schema())


async def _snapshot(hub: Hub, request: Request) -> Response:
    """Where everything stands now, and the number to go on from, for a client that lost the thread."""
    return json_response(
        {
            "session": hub.bus.session,
            "seq": hub.bus.seq,
            "runs": hub.live_runs(),
            "states": [run.state() for run in hub.live.values() if run.ranks],
        }
    )


async def _command(hub: Hub, request: Request) -> Response:
    command = await asked.body(request, m.Command)
    return json_response(await hub.command(msgspec.structs.replace(command, run=_name(request))))


async def _edit(hub: Hub, request: Request) -> Response:
    edit = await asked.body(request, m.WatchEdit)
    return json_response(await hub.edit(msgspec.structs.replace(edit, run=_name(request))))


def _name(request: Request) -> str:
    return str(request.path_params["run"])
