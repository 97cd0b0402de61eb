"""How long the server waits for who says nothing, and for how many at once.

A connection that asks for nothing, or for something one letter a minute, holds a descriptor that a page or a trainee
may need. uvicorn waits for the first request for ever; here it is given some seconds, and so is each part of a body.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 10.0
BODY_SECONDS = 30.0
MOST_CONNECTIONS = 700
"""Five hundred open pages, and room for their requests; a process has a thousand descriptors on most systems."""


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type, unused-ignore]
    """uvicorn's own, for those who come to ask something."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override, unused-ignore]
        if len(self.connections) >= MOST_CONNECTIONS:
            transport.abort()
            return
        super().connection_made(transport)
        self.loop.call_later(HEAD_SECONDS, self._hang_up_on_silence)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.transport is not None:  # type: ignore[redundant-expr, unused-ignore]
            super().connection_lost(exc)

    def _hang_up_on_silence(self) -> None:
        transport = self.transport
        if self.cycle is None and not transport.is_closing() and transport.get_protocol() is self:
            transport.abort()


def body_in_time(receive: Any) -> Any:
    """The parts of a request's body, each of which must come in time."""
    whole = False

    async def receiving() -> Any:
        nonlocal whole
        if whole:
            return await receive()  # from here on it only tells of a client that left
        message = await asyncio.wait_for(receive(), BODY_SECONDS)
        whole = not message.get("more_body", False)
        return message

    return receiving
