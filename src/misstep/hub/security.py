"""Who may talk to the hub: whoever has the token, from a page we served, on a name we answer to.

A web page that can stop a training or read weights must not be reachable from another site (Origin), by DNS rebinding
(Host) or by guessing (a random token, compared in constant time). The token comes in the URL's fragment, which
browsers never send to anybody, and becomes a cookie that scripts of other sites cannot use.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

COOKIE = "misstep_token"
HEADER = "x-misstep-token"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def new_token() -> str:
    return secrets.token_urlsafe(32)


def same(given: str, token: str) -> bool:
    """Whether two secrets are equal, in a time that tells nothing."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())


class Guard:
    """Judges requests by their headers; header names are lower case."""

    def __init__(self, token: str, *, hosts: frozenset[str] = LOOPBACK) -> None:
        self.token = token
        self.hosts = hosts
        """Names we answer to; loopback always, others only when asked for."""

    def refusal(self, headers: Mapping[str, str], *, writes: bool) -> tuple[int, str] | None:
        """(status, why) for a request that must not pass; None for one that may.

        `writes`: a request that changes something, or a WebSocket. Those need an Origin of our own when they have one.
        """
        host = headers.get("host", "")
        if host_name(host) not in self.hosts:
            return 421, f"this hub does not answer to the name {host[:100]!r}"
        origin = headers.get("origin", "")
        if origin and not self._ours(origin, host):
            return 403, "requests from other sites are refused"
        if not self.admits(headers):
            return 401, "the token is missing or wrong; open the link that misstep printed"
        crossing = headers.get("sec-fetch-site") not in (None, "same-origin")
        if writes and crossing and not origin and not headers.get(HEADER):
            return 403, "requests from other sites are refused"
        return None

    def admits(self, headers: Mapping[str, str]) -> bool:
        given = headers.get(HEADER, "") or _bearer(headers.get("authorization", ""))
        words = [given] if given else _cookies(headers.get("cookie", ""))
        return any(same(word, self.token) for word in words)

    def _ours(self, origin: str, host: str) -> bool:
        parts = urlsplit(origin)
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def host_name(host: str) -> str:
    """`127.0.0.1:8080` → `127.0.0.1`, `[::1]:80` → `::1`."""
    if host.startswith("["):
        return host[1 : host.find("]")].lower() if "]" in host else ""
    return host.rsplit(":", 1)[0].lower() if host.count(":") <= 1 else ""


def _bearer(value: str) -> str:
    return value[7:].strip() if value.lower().startswith("bearer ") else ""


def _cookies(value: str) -> list[str]:
    """Browsers keep cookies per host, not per port: every hub has a name of its own, and any of them may be ours."""
    try:
        cookies = SimpleCookie(value)
    except CookieError:
        return []
    return [one.value for name, one in cookies.items() if name.startswith(COOKIE)][:20]
