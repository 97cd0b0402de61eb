"""Who may talk to the hub: whoever has the token, from a page we served, on a name we answer to.

A web page that can stop a training or read weights must not be reachable from another site (Origin), by DNS rebinding
(Host) or by guessing (a random token, compared in constant time). The token comes in the URL's fragment, which
browsers never send to anybody, and buys a session: a cookie that is not the token, that no script can read, and that is
replaced by another every hour. Whoever steals one has it for so long, and can neither start a trainee nor a session.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

COOKIE = "misstep_session"
SESSION_SECONDS, ROTATED_SECONDS, OVERLAP_SECONDS = 24 * 3600.0, 3600.0, 60.0
"""A session ends after a day without a request; each cookie is good for an hour, and a minute more for answers under
way."""
MOST_SESSIONS = 200
HEADER = "x-misstep-token"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def new_token() -> str:
    return secrets.token_urlsafe(32)


def same(given: str, token: str) -> bool:
    """Whether two secrets are equal, in a time that tells nothing."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())


class Sessions:
    """The cookies that are good now; of each only its digest is kept."""

    def __init__(self) -> None:
        self._ends: dict[bytes, float] = {}
        self._stale: dict[bytes, float] = {}
        """When each is to be replaced."""

    def new(self) -> str:
        now = time.monotonic()
        for digest in [digest for digest, end in self._ends.items() if end < now]:
            self._forget(digest)
        while len(self._ends) >= MOST_SESSIONS:
            self._forget(next(iter(self._ends)))
        cookie = secrets.token_urlsafe(32)
        digest = _digest(cookie)
        self._ends[digest], self._stale[digest] = now + SESSION_SECONDS, now + ROTATED_SECONDS
        return cookie

    def admits(self, cookie: str) -> bool:
        return self._ends.get(_digest(cookie), 0.0) > time.monotonic()

    def renewed(self, cookie: str) -> str | None:
        """Another cookie for one that has served its hour; None while it is still fresh."""
        digest, now = _digest(cookie), time.monotonic()
        if self._stale.get(digest, now + 1) > now:
            return None
        self._ends[digest] = min(self._ends[digest], now + OVERLAP_SECONDS)
        self._stale[digest] = now + SESSION_SECONDS
        return self.new()

    def _forget(self, digest: bytes) -> None:
        self._ends.pop(digest, None)
        self._stale.pop(digest, None)


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode("utf-8", "surrogatepass")).digest()


class Guard:
    """Judges requests by their headers; header names are lower case."""

    def __init__(self, token: str, *, hosts: frozenset[str] = LOOPBACK) -> None:
        self.token = token
        self.hosts = hosts
        """Names we answer to; loopback always, others only when asked for."""
        self.sessions = Sessions()

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
        if given:
            return same(given, self.token)
        return self.session_of(headers) is not None

    def session_of(self, headers: Mapping[str, str]) -> str | None:
        """The cookie of a session of ours that a request brings."""
        return next((one for one in _cookies(headers.get("cookie", "")) if self.sessions.admits(one)), None)

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
