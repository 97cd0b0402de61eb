"""Events to clients: numbered, kept for a while, and never faster than the reader reads.

    publish ──seq──► ring (for resume) ──► each client's outbox ──► its socket

Two kinds of events: those that matter each (state, hit, watchpoint, alert) wait in order; those that the next one
supersedes (steps, curves, log lines) keep only the latest per run and rank, and what was left out is told as `lag`.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

from misstep.protocol import messages as m

RING_EVENTS = 10_000
RING_SECONDS = 600.0
MUST_WAITING = 20_000
"""Events that matter, waiting for one client. A client so far behind is sent a reset instead of filling our memory."""
POINTS_WAITING = 4096

_CHANNEL: dict[type[m.Event], str] = {
    m.RunNews: "runs",
    m.State: "state",
    m.StepNews: "steps",
    m.Scalars: "scalars",
    m.HitNews: "hits",
    m.WatchNews: "watchpoints",
    m.GraphNews: "graph",
    m.LogLine: "log",
    m.Alert: "state",
    m.CrashNews: "state",
}
_SUPERSEDED = (m.StepNews, m.Scalars, m.GraphNews, m.RunNews)


class Numbered:
    """An event with its number, encoded once for all clients."""

    __slots__ = ("_bytes", "at", "event", "seq")

    def __init__(self, event: m.Event, at: float) -> None:
        self.event, self.seq, self.at = event, event.seq, at
        self._bytes: bytes | None = None

    @property
    def bytes(self) -> bytes:
        if self._bytes is None:
            self._bytes = m.encode(self.event)
        return self._bytes


class Bus:
    """Takes events from runs and hands them to clients. Lives on the event loop."""

    def __init__(self) -> None:
        self.session = secrets.token_hex(8)
        """A new one with every hub: sequence numbers of another hub mean nothing here."""
        self.seq = 0
        self.clients: set[Client] = set()
        self._ring: deque[Numbered] = deque()
        self._forgotten = 0
        """The highest number that the ring no longer has."""

    def publish(self, event: m.Event) -> None:
        self.seq += 1
        event.seq = self.seq
        one = Numbered(event, time.monotonic())
        if not isinstance(event, _SUPERSEDED):
            self._ring.append(one)
            while len(self._ring) > RING_EVENTS or one.at - self._ring[0].at > RING_SECONDS:
                self._forgotten = self._ring.popleft().seq
        for client in list(self.clients):
            client.offer(one)

    def since(self, session: str, seq: int) -> list[Numbered] | None:
        """What a client that saw `seq` has missed; None when that cannot be told any more."""
        if session != self.session or seq < self._forgotten or seq > self.seq:
            return None
        return [one for one in self._ring if one.seq > seq]


class Client:
    """One WebSocket's side of the bus."""

    def __init__(self, *, max_hz: float = 4.0) -> None:
        self.wanted: dict[str, m.Subscribe] = {}
        self.max_hz = max_hz
        self.gap: int | None = None
        """It was too far behind and everything waiting was thrown away: the last number it was sent before that."""
        self._sent = 0
        self._must: deque[Numbered] = deque()
        self._latest: dict[tuple[str, ...], Numbered] = {}
        self._dropped: dict[str, int] = {}
        self._ready = asyncio.Event()
        self._next_superseded = 0.0

    def subscribe(self, wish: m.Subscribe) -> None:
        if len(self.wanted) >= 1000:
            raise ValueError("too many subscriptions")
        self.wanted[wish.id] = wish
        self.max_hz = min(max(wish.max_hz, 0.1), 60.0)

    def offer(self, one: Numbered) -> None:
        event = one.event
        if not self._wants(event):
            return
        if not isinstance(event, _SUPERSEDED):
            self._must.append(one)
            if len(self._must) > MUST_WAITING:
                self._must.clear()
                self._latest.clear()
                self.gap = self._sent if self.gap is None else self.gap
            self._ready.set()
            return
        key = _key(event)
        before = self._latest.get(key)
        if before is not None:
            one = self._merge(before, one)
        self._latest[key] = one
        self._ready.set()

    def replay(self, events: Iterable[Numbered]) -> None:
        """After a resume, regardless of subscriptions, which the client makes again only later."""
        self._must.extend(events)
        self._ready.set()

    def take_gap(self) -> int | None:
        """Where events are missing, once: the client must be told before it is sent anything newer."""
        gap, self.gap = self.gap, None
        return gap

    async def next(self) -> list[bytes]:
        """What to send now; waits until there is something, and superseded things not more often than max_hz."""
        while True:
            await self._ready.wait()
            if self._must or self.gap is not None:
                out = [one.bytes for one in self._must]
                if self.gap is None and self._must:
                    self._sent = self._must[-1].seq
                self._must.clear()
                if not self._latest:
                    self._ready.clear()
                return out
            now = time.monotonic()
            if now >= self._next_superseded:
                break
            self._ready.clear()
            try:
                await asyncio.wait_for(self._ready.wait(), self._next_superseded - now)
            except TimeoutError:
                self._ready.set()
        self._ready.clear()
        self._next_superseded = time.monotonic() + 1.0 / self.max_hz
        out = [one.bytes for one in sorted(self._latest.values(), key=lambda one: one.seq)]
        if self._dropped:
            out.append(m.encode(m.Lag(self._dropped)))
            self._dropped = {}
        self._latest.clear()
        return out

    def _merge(self, before: Numbered, after: Numbered) -> Numbered:
        old, new = before.event, after.event
        if isinstance(old, m.Scalars) and isinstance(new, m.Scalars):
            x, y = (*old.x, *new.x), (*old.y, *new.y)
            if len(x) > POINTS_WAITING:
                self._drop("scalars", len(x) - POINTS_WAITING)
                x, y = x[-POINTS_WAITING:], y[-POINTS_WAITING:]
            return Numbered(msgspec.structs.replace(new, x=x, y=y), after.at)
        if isinstance(new, m.StepNews):
            self._drop("steps", 1)
        return after

    def _drop(self, kind: str, count: int) -> None:
        self._dropped[kind] = self._dropped.get(kind, 0) + count

    def _wants(self, event: m.Event) -> bool:
        channel = _CHANNEL[type(event)]
        run = _run_of(event)
        for wish in self.wanted.values():
            if wish.run and run and wish.run != run:
                continue
            for wanted in wish.ch:
                name, _, tag = wanted.partition(":")
                if name == channel and (not tag or not isinstance(event, m.Scalars) or fnmatchcase(event.tag, tag)):
                    return True
        return False


def _run_of(event: m.Event) -> str:
    return event.run.run if isinstance(event, m.RunNews) else event.run


def _key(event: m.Event) -> tuple[str, ...]:
    rank = str(getattr(event, "rank", ""))
    return (type(event).__name__, _run_of(event), rank, getattr(event, "tag", ""))
