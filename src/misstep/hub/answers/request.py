"""What a request asks, read with its limits; and answers that are bytes. Shared by every group of addresses."""

from __future__ import annotations

import hashlib
import math
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from misstep.protocol.messages import LARGEST_MESSAGE
from misstep.sentences.text import only_english

LARGEST_BODY = LARGEST_MESSAGE
_JSON = msgspec.json.Encoder(enc_hook=only_english)


async def body(request: Request, kind: type[Any]) -> Any:
    """What was posted, as this type."""
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > LARGEST_BODY:
            raise ValueError("the request is too large")
    return msgspec.json.decode(data, type=kind)


def text(request: Request, name: str) -> str:
    value = request.query_params.get(name, "")
    if not value:
        raise ValueError(f"?{name}= is missing")
    return value[:2000]


def integer(request: Request, name: str, default: int) -> int:
    value = request.query_params.get(name, "")
    if not value:
        return default
    if len(value) > 12:
        raise ValueError(f"?{name}={value[:20]} is no number")
    return max(-1, int(value))


def real(request: Request, name: str, default: float) -> float:
    value = float(request.query_params.get(name, "") or default)
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"?{name}= must be a number from 0")
    return value


def wants(request: Request) -> tuple[str, ...]:
    """What is wanted of a tensor."""
    return tuple(request.query_params.getlist("want"))[:20] or ("stats", "tile:0,0,256,256")


def frame_binary(header: Any, data: bytes | memoryview) -> bytes:
    """u32 header length, JSON header, raw data."""
    told = _JSON.encode(header)
    return b"".join((len(told).to_bytes(4, "little"), told, data))


def binary(request: Request, header: Any, data: bytes | memoryview, *, forever: bool = False) -> Response:
    """A tensor; what can never change may be kept by the browser."""
    framed = frame_binary(header, data)
    headers = {"cache-control": "private, no-cache"}
    if forever:
        headers = {"cache-control": "private, max-age=31536000, immutable"}
        headers["etag"] = f'"{hashlib.blake2b(framed, digest_size=12).hexdigest()}"'
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
    return Response(framed, headers=headers, media_type="application/octet-stream")


def attachment(data: bytes, name: str, *, kind: str = "application/octet-stream") -> Response:
    """A file to keep, under a name that any file system takes."""
    whole = "".join(mark if mark.isalnum() or mark in "._-" else "_" for mark in name)[-150:]
    plain = "".join(mark if mark.isascii() else "_" for mark in whole)
    # A header is ASCII; browsers take the second name, in which Chinese stays Chinese (RFC 6266).
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(whole, safe='')}"
    return Response(data, headers={"content-disposition": disposition}, media_type=kind)
