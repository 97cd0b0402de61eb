"""The addresses that change the list of runs: what people say of them, and deleting those nobody needs."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from misstep.errors import MisstepError
from misstep.hub.answers import request as asked
from misstep.hub.answers.run_routes import bound, json_response
from misstep.hub.hub import Hub
from misstep.protocol.payloads import LabelEdit, Refusal, Removal, Removed

MOST_AT_ONCE = 5000


def routes(hub: Hub) -> list[Route]:
    """These addresses, bound to this hub."""
    return [
        Route("/api/v1/labels", bound(hub, _label), methods=["POST"]),
        Route("/api/v1/removals", bound(hub, _remove), methods=["POST"]),
    ]


async def _label(hub: Hub, request: Request) -> Response:
    edit: LabelEdit = await asked.body(request, LabelEdit)
    return json_response([hub.label(name, edit) for name in edit.runs[:MOST_AT_ONCE]])


async def _remove(hub: Hub, request: Request) -> Response:
    """One after the other: what cannot be deleted is told, and does not keep the rest."""
    wanted: Removal = await asked.body(request, Removal)
    removed: list[str] = []
    refused: list[Refusal] = []
    for name in wanted.runs[:MOST_AT_ONCE]:
        try:
            await asyncio.to_thread(hub.remove, name)
            removed.append(name)
        except (MisstepError, OSError) as error:
            refused.append(Refusal(name, error.args[0] if isinstance(error, MisstepError) else str(error)))
    return json_response(Removed(tuple(removed), tuple(refused)))
