"""The hub as a web application: the guard in front, the API, the live socket, and the page.

The page is a build (`make web`) inside the package. It works below any path: assets are relative and the server
writes a <base> into the page. Without a build a plain page says how to make one, and the API works all the same.
"""

from __future__ import annotations

import html
import json
import mimetypes
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import gzip
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from misstep.hub import speed, studies
from misstep.hub.answers import crash_routes, diagnosis_routes, label_routes, run_routes, story_routes
from misstep.hub.answers.held import thing_routes
from misstep.hub.hub import Hub
from misstep.hub.live import websocket as sockets
from misstep.hub.patience import body_in_time
from misstep.hub.security import COOKIE, HEADER, Guard, same
from misstep.protocol import messages as m
from misstep.protocol.handshake import proof

STATIC = Path(__file__).resolve().parent / "static"
_PREFIX = re.compile(r"(/[\w.~-]+)*/?")
_POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; worker-src 'self' blob:;"
    " connect-src 'self'{sockets}; frame-ancestors 'self'; base-uri 'self'; form-action 'none'; object-src 'none'"
)
_HOST = re.compile(r"[A-Za-z0-9.-]+(?::\d{1,5})?|\[[0-9A-Fa-f:.]+\](?::\d{1,5})?")
HELLO = "/api/v1/hello"
_NO_BUILD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>misstep</title></head><body>
<h1>misstep</h1><p>The page was not built. In the source tree:</p><pre>make web</pre>
<p>The hub itself works: <code>misstep debug last</code>, <code>/api/v1/runs</code>.</p></body></html>"""


def make_app(hub: Hub, guard: Guard, *, prefix: str = "", static: Path = STATIC) -> Any:
    """The ASGI application of a hub."""
    page = _Page(static, prefix)

    async def live(socket: WebSocket) -> None:
        await sockets.talk(hub, socket)

    async def session(request: Request) -> Response:
        """The page brings the token from the URL's fragment; from now on it is a cookie."""
        given = request.headers.get(HEADER, "")
        if not same(given, hub.token):
            return Response("the token is wrong", 401)
        response = Response(status_code=204)
        response.set_cookie(value=guard.sessions.new(), **_cookie(request.url.port, request.url.scheme, prefix))
        return response

    async def hello(request: Request) -> Response:
        """Proves that this hub knows the token, to who asks before giving it."""
        asked = request.query_params.get("nonce", "")
        if not re.fullmatch(r"[0-9a-f]{64}", asked):
            return Response("a nonce is missing", 400)
        return Response(proof(hub.token, "http", bytes.fromhex(asked), b"").hex(), media_type="text/plain")

    app = Starlette(
        routes=[
            Route("/api/v1/session", session, methods=["POST"]),
            Route(HELLO, hello, methods=["GET"]),
            WebSocketRoute("/api/v1/live", live),
            *run_routes.routes(hub),
            *label_routes.routes(hub),
            *thing_routes.routes(hub),
            *crash_routes.routes(hub),
            *story_routes.routes(hub),
            *diagnosis_routes.routes(hub),
            *studies.routes(hub),
            *speed.routes(hub),
            Route("/{path:path}", page.serve, methods=["GET"]),
        ]
    )
    # Quickest level: most hubs are on this machine, where bytes are cheap; through a tunnel a graph is a tenth as long.
    # Raw numbers of tensors stay as they are: noise does not get shorter.
    raw = (*gzip.DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream")
    return Guarded(gzip.GZipMiddleware(app, compresslevel=1, exclude_content_types=raw), guard, prefix=prefix)


def _cookie(port: int | None, scheme: str, prefix: str) -> dict[str, Any]:
    """How a session is kept: browsers keep cookies per host, not per port, so the name says the port."""
    secure = scheme == "https"
    name = f"{COOKIE}_{port or (443 if secure else 80)}"
    return {"key": name, "httponly": True, "samesite": "strict", "secure": secure, "path": prefix or "/"}


class Guarded:
    """Lets nothing through that the guard refuses; the page itself holds no secret and needs no token."""

    def __init__(self, app: Any, guard: Guard, *, prefix: str = "") -> None:
        self._app, self._guard, self._prefix = app, guard, prefix

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        is_socket = scope["type"] == "websocket"
        writes = is_socket or scope.get("method") not in ("GET", "HEAD")
        refusal = self._guard.refusal(headers, writes=writes)
        open_to_all = not scope["path"].startswith("/api/") or scope["path"] == HELLO
        if refusal is not None and refusal[0] == 401 and not is_socket and open_to_all:
            refusal = None
        if refusal is None and is_socket and m.SUBPROTOCOL not in scope.get("subprotocols", ()):
            refusal = (400, f"the subprotocol {m.SUBPROTOCOL} is missing")
        if refusal is None:
            receive = body_in_time(receive) if writes and not is_socket else receive
            await self._app(scope, receive, send if is_socket else _with_headers(send, self._more(scope, headers)))
        elif is_socket:
            await receive()
            await send({"type": "websocket.close", "code": 4000 + refusal[0], "reason": refusal[1]})
        else:
            body = json.dumps({"code": "denied", "text": refusal[1], "params": {}})
            answer = Response(body, refusal[0], media_type="application/json")
            await answer(scope, receive, _with_headers(send, _policy(headers.get("host", ""))))

    def _more(self, scope: Any, headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
        """Our policy for this host, and a fresh cookie for a session whose own has served its time."""
        more = _policy(headers.get("host", ""))
        held = self._guard.session_of(headers)
        renewed = self._guard.sessions.renewed(held) if held is not None else None
        if renewed is not None:
            port = (scope.get("server") or (None, None))[1]
            response = Response()
            response.set_cookie(value=renewed, **_cookie(port, scope.get("scheme", "http"), self._prefix))
            more += [(name, value) for name, value in response.raw_headers if name == b"set-cookie"]
        return more


def _policy(host: str) -> list[tuple[bytes, bytes]]:
    """What the page may reach: this host and nobody else. Browsers differ in whether 'self' covers its sockets."""
    sockets = f" ws://{host} wss://{host}" if _HOST.fullmatch(host) else ""
    return [(b"content-security-policy", _POLICY.format(sockets=sockets).encode())]


def _with_headers(send: Any, more: list[tuple[bytes, bytes]]) -> Any:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                *message.get("headers", []),
                (b"x-content-type-options", b"nosniff"),
                (b"referrer-policy", b"no-referrer"),
                (b"cross-origin-resource-policy", b"same-origin"),
                *more,
            ]
        await send(message)

    return sending


class _Page:
    """The built front end: known files by their name, and the page itself for every other address."""

    def __init__(self, static: Path, prefix: str) -> None:
        self._static = static
        self._prefix = prefix if _PREFIX.fullmatch(prefix) else ""

    async def serve(self, request: Request) -> Response:
        path = request.path_params["path"]
        file = self._file(path)
        if file is not None:
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            hashed = re.search(r"-[\w-]{8,}\.\w+$", file.name) is not None
            keep = "public, max-age=31536000, immutable" if hashed else "no-cache"
            return FileResponse(file, media_type=kind, headers={"cache-control": keep})
        if path.startswith("api/") or "." in path.rpartition("/")[2]:
            return Response("not found", 404)
        return self._index(request)

    def _file(self, path: str) -> Path | None:
        """Only what lies below the build, whatever dots and links say."""
        if not path or "\0" in path or path == "index.html":
            return None
        try:
            file = (self._static / path).resolve()
            inside = file.is_relative_to(self._static.resolve()) and file.is_file()
        except OSError:
            return None
        return file if inside else None

    def _index(self, request: Request) -> Response:
        index = self._static / "index.html"
        if not index.is_file():
            return HTMLResponse(_NO_BUILD)
        given = request.headers.get("x-forwarded-prefix", "")
        prefix = given if given and _PREFIX.fullmatch(given) else self._prefix
        base = f'<base href="{html.escape(prefix.rstrip("/"), quote=True)}/">'
        text = re.sub(r"<base\b[^>]*>", "", index.read_text(encoding="utf-8"))
        page = text.replace("<head>", f"<head>{base}", 1)
        return HTMLResponse(page, headers={"cache-control": "no-cache"})
