"""The addresses about things that lie still: dumps, checkpoints, comparisons. Listed in protocol/things.py.

Whatever reads whole tensors runs on a thread; whatever may read all of them is a job.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from misstep.compare.layers import compare_sources
from misstep.compare.result import Comparison
from misstep.core.slices import parse_slice
from misstep.errors import AddressError, CompareError
from misstep.hub.answers import request as asked
from misstep.hub.answers.graph import columns_of
from misstep.hub.answers.held import comparison as sides
from misstep.hub.answers.held import dumps
from misstep.hub.answers.held.checkpoint_series import series_of
from misstep.hub.answers.held.map_files import Maps
from misstep.hub.answers.held.things import Opened, Things
from misstep.hub.answers.run_routes import bound, json_response
from misstep.hub.hub import Hub
from misstep.hub.jobs import Job, Jobs, Progress
from misstep.protocol.tensor_payloads import CompareMode
from misstep.protocol.things import CheckAsk, ComparisonAsk, MapText, ThingList
from misstep.protocol.window import look, side_by_side
from misstep.store.foreign.source import TensorSource

Handler = Callable[[Hub, Request], Awaitable[Response]]
COMPARISON, CHECK = "comparison", "check"
LONGEST_WAIT = 10.0
LOOK_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class _Two:
    """A comparison with the sources it read, for a second look at a pair."""

    ask: ComparisonAsk
    found: Comparison
    things: tuple[Opened, Opened]
    sources: tuple[TensorSource, TensorSource]


def routes(hub: Hub) -> list[Route]:
    """Every address, bound to this hub."""
    desk = Desk(hub)
    get: dict[str, Handler] = {
        "/things": desk.things,
        "/things/dump": desk.dump,
        "/things/tensor": desk.tensor,
        "/things/npy": desk.npy,
        "/things/checkpoint": desk.checkpoint,
        "/things/series": desk.series,
        "/checks/{id}": desk.hits,
        "/maps/{id}": desk.map_text,
        "/comparisons/{id}": desk.table,
        "/comparisons/{id}/pair": desk.pair,
        "/comparisons/{id}/graph": desk.graph,
        "/comparisons/{id}/map": desk.map_file,
        "/jobs/{id}": desk.job,
    }
    post: dict[str, Handler] = {
        "/checks": desk.check,
        "/maps": desk.keep_map,
        "/comparisons": desk.compare,
        "/jobs/{id}/cancel": desk.cancel,
    }
    return [
        *(Route(f"/api/v1{path}", bound(hub, handler), methods=["GET"]) for path, handler in get.items()),
        *(Route(f"/api/v1{path}", bound(hub, handler), methods=["POST"]) for path, handler in post.items()),
    ]


class Desk:
    """Where things are opened, measured and laid side by side."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._things: Things = hub.things
        self._jobs = Jobs()
        self._maps = Maps(hub.directory)

    # ── one thing ──

    async def things(self, _: Hub, request: Request) -> Response:
        found = await asyncio.to_thread(self._things.briefs)
        live = {name for name, run in self._hub.live.items() if run.ranks}
        for one in found:
            one.live = one.name in live
        return json_response(ThingList(found, str(self._hub.directory), self._things.full))

    async def dump(self, _: Hub, request: Request) -> Response:
        step, rank = asked.integer(request, "step", -1), asked.integer(request, "rank", -1)

        def answer() -> Any:
            opened = self._things.open(asked.text(request, "of"))
            return dumps.dump_table(
                opened,
                opened.run(),
                step=step if step >= 0 else None,
                rank=rank if rank >= 0 else None,
                query=request.query_params.get("q", ""),
                offset=max(0, asked.integer(request, "offset", 0)),
                limit=max(1, asked.integer(request, "limit", dumps.MOST_ROWS)),
            )

        return json_response(await asyncio.to_thread(answer))

    async def tensor(self, _: Hub, request: Request) -> Response:
        def answer() -> Any:
            opened = self._things.open(asked.text(request, "of"))
            entry = opened.entry(asked.text(request, "address"))
            return look(
                opened.array(entry),
                address=str(entry.address),
                slice=request.query_params.get("slice", ""),
                want=asked.wants(request),
                origin="stored",
                step=entry.step,
                rank=entry.rank or 0,
            )

        header, data = await asyncio.to_thread(answer)
        return asked.binary(request, header, data)

    async def npy(self, _: Hub, request: Request) -> Response:
        def answer() -> tuple[str, bytes]:
            opened = self._things.open(asked.text(request, "of"))
            entry = opened.entry(asked.text(request, "address"))
            array = opened.array(entry)
            file = io.BytesIO()
            # numpy's file knows no bfloat16 and no float8; float32 holds every value of them exactly.
            np.save(file, array if array.dtype.kind in "fiubc" else array.astype(np.float32), allow_pickle=False)
            return str(entry.address), file.getvalue()

        address, data = await asyncio.to_thread(answer)
        return asked.attachment(data, f"{address}.npy")

    async def checkpoint(self, _: Hub, request: Request) -> Response:
        def answer() -> Any:
            return sides.checkpoint_view(self._things.open(asked.text(request, "of")))

        return json_response(await asyncio.to_thread(answer))

    async def series(self, _: Hub, request: Request) -> Response:
        name = self._things.found(asked.text(request, "of")).name
        insist = asked.integer(request, "read", 0) == 1
        return json_response(await asyncio.to_thread(lambda: series_of(self._things, name, insist=insist)))

    async def check(self, _: Hub, request: Request) -> Response:
        ask: CheckAsk = await asked.body(request, CheckAsk)
        opened = await asyncio.to_thread(self._things.open, ask.of)

        def work(progress: Progress) -> Any:
            return dumps.hits_found(dumps.check(opened, opened.run(), ask, progress))

        return self._told(self._jobs.start(CHECK, (ask, opened.stamp), work))

    async def hits(self, _: Hub, request: Request) -> Response:
        return json_response(self._jobs.answer(_id(request), CHECK))

    # ── two things ──

    async def keep_map(self, _: Hub, request: Request) -> Response:
        given: MapText = await asked.body(request, MapText)
        return json_response(MapText(given.text, await asyncio.to_thread(self._maps.keep, given.text)))

    async def map_text(self, _: Hub, request: Request) -> Response:
        return json_response(MapText(self._maps.text(_id(request)), _id(request)))

    async def compare(self, _: Hub, request: Request) -> Response:
        ask: ComparisonAsk = await asked.body(request, ComparisonAsk)
        names = self._maps.names(ask.map)

        def opening() -> tuple[tuple[Opened, TensorSource], tuple[Opened, TensorSource]]:
            return self._things.moment(ask.a), self._things.moment(ask.b)

        (one, left), (other, right) = await asyncio.to_thread(opening)

        def work(progress: Progress) -> _Two:
            found = compare_sources(left, right, names=names, progress=progress)
            return _Two(ask, found, (one, other), (left, right))

        return self._told(self._jobs.start(COMPARISON, (ask, one.stamp, other.stamp), work))

    async def table(self, _: Hub, request: Request) -> Response:
        id = _id(request)
        two: _Two = self._jobs.answer(id, COMPARISON)

        def answer() -> Any:
            files = all(one.found.kind == "checkpoint" for one in two.things)
            return sides.comparison_table(
                two.found, id=id, a=two.ask.a, b=two.ask.b, map=two.ask.map, checkpoints=files
            )

        return json_response(await asyncio.to_thread(answer))

    async def pair(self, _: Hub, request: Request) -> Response:
        two: _Two = self._jobs.answer(_id(request), COMPARISON)
        mode = request.query_params.get("mode", "difference")
        if mode not in get_args(CompareMode):
            raise AddressError(f"cannot show {mode!r}; there are {', '.join(get_args(CompareMode))}")

        def answer() -> Any:
            left, right, row = sides.both(two.found, asked.integer(request, "row", -1), *two.sources)
            cut = parse_slice(request.query_params.get("slice", ""), tuple(left.shape))
            return side_by_side(
                cut.of(left),
                cut.of(right),
                names=(str(row.left), str(row.right)),
                mode=mode,  # type: ignore[arg-type]
                atol=asked.real(request, "atol", 1e-8),
                rtol=asked.real(request, "rtol", 1e-5),
                slice=str(cut),
                want=asked.wants(request),
            )

        header, data = await asyncio.to_thread(answer)
        return asked.binary(request, header, data)

    async def graph(self, _: Hub, request: Request) -> Response:
        two: _Two = self._jobs.answer(_id(request), COMPARISON)
        side = request.query_params.get("side", "a")
        if side not in ("a", "b"):
            raise CompareError("the side is a or b")
        at = 0 if side == "a" else 1

        def answer() -> Any:
            opened = two.things[at]
            entries = two.sources[at].entries()
            rank = (entries[0].rank or 0) if entries else 0
            return columns_of(dumps.graph_of(opened, opened.run(), rank), opened.found.name, rank)

        return json_response(await asyncio.to_thread(answer))

    async def map_file(self, _: Hub, request: Request) -> Response:
        two: _Two = self._jobs.answer(_id(request), COMPARISON)
        text = self._maps.text(two.ask.map) if two.ask.map else await asyncio.to_thread(sides.map_of_pairs, two.found)
        return asked.attachment(text.encode(), "map.toml", kind="text/plain; charset=utf-8")

    # ── jobs ──

    async def job(self, _: Hub, request: Request) -> Response:
        """Where it stands; with `wait` the answer comes when it has ended, or after so many seconds."""
        job = self._jobs.get(_id(request))
        until = asyncio.get_running_loop().time() + min(LONGEST_WAIT, asked.real(request, "wait", 0.0))
        while not job.ended.is_set() and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(LOOK_SECONDS)
        return self._told(job)

    async def cancel(self, _: Hub, request: Request) -> Response:
        job = self._jobs.get(_id(request))
        job.cancel()
        return self._told(job)

    def _told(self, job: Job) -> Response:
        return json_response(job.view())


def _id(request: Request) -> str:
    return str(request.path_params["id"])
