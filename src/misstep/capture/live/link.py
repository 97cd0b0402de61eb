"""The trainee's end of the socket to the hub: one thread that connects, reconnects, sends what waits and reads orders.

Training never waits for it. What may be superseded (steps) is kept short, tensors are dropped when too much waits,
and hits are kept until the hub has seen them, across any number of lost connections. The thread exists only once a
hub is known: from the settings, or from a `hub.json` that a hub started later has left in the run directory.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from misstep.protocol.handshake import ANSWER_BYTES, Caller
from misstep.protocol.wire import (
    Accepted,
    Beat,
    Frames,
    FromHub,
    Hits,
    Introduce,
    Refused,
    Seen,
    StepDone,
    WireError,
    Words,
    frame,
    read_from_hub,
)
from misstep.store.hubcard import read_card

STEPS_WAITING = 512
BYTES_WAITING = 64 << 20
"""Of tensors on their way; more is refused, so that a slow hub costs the trainee no memory."""
LOOK_SECONDS = 1.0
_SOON = 0.1
"""How long what is not urgent may wait for company: waking a thread at every step would cost a fast training."""


class Link:
    """A connection that comes and goes; every method may be called from any thread."""

    def __init__(
        self,
        *,
        introduce: Callable[[], Introduce],
        received: Callable[[FromHub], None],
        changed: Callable[[bool], None],
        address: str = "",
        token: str = "",
        run_directory: Path | None = None,
        heartbeat_seconds: float = 2.0,
    ) -> None:
        self.connected = False
        self.dropped: dict[str, int] = {}
        self.step = 0
        self._introduce, self._received, self._changed = introduce, received, changed
        self._given = (address, token) if address else None
        self._directory = run_directory
        self._heartbeat_seconds = heartbeat_seconds
        self._lock = threading.Lock()
        self._out: deque[bytes] = deque()
        self._steps: deque[bytes] = deque()
        self._unseen: dict[int, bytes] = {}
        self._unsent: deque[int] = deque()
        self._serial = 0
        self._bytes_waiting = 0
        self._thread: threading.Thread | None = None
        self._closing = False
        self._wake_read, self._wake_write = -1, -1
        self._next_look = 0.0
        self._pid = os.getpid()

    @property
    def started(self) -> bool:
        return self._thread is not None

    def start(self) -> None:
        """Connect in the background, now and whenever the connection is lost."""
        if self._thread is None and not self._closing:
            self._wake_read, self._wake_write = os.pipe()
            os.set_blocking(self._wake_read, False)
            os.set_blocking(self._wake_write, False)
            self._thread = threading.Thread(target=self._run, name="misstep-link", daemon=True)
            self._thread.start()

    def look_for_hub(self, now: float) -> None:
        """At most once a second, see whether a hub has come; cheap enough for every step."""
        if self._thread is not None or now < self._next_look or self._closing:
            return
        self._next_look = now + LOOK_SECONDS
        if self._known():
            self.start()

    def send(self, words: Words, data: bytes | memoryview = b"", *, urgent: bool = True) -> bool:
        """Put a message on its way; False when its data were too much for what already waits."""
        if not self.connected or os.getpid() != self._pid:
            return False
        packed = frame(words, data)
        with self._lock:
            if len(data) and self._bytes_waiting + len(packed) > BYTES_WAITING:
                self._drop("tensor")
                return False
            self._out.append(packed)
            self._bytes_waiting += len(packed)
        if urgent:
            self._wake()
        return True

    def tell_step(self, words: StepDone) -> None:
        self.step = words.step
        if not self.connected:
            return
        packed = frame(words)
        with self._lock:
            self._steps.append(packed)
            if len(self._steps) > STEPS_WAITING:
                self._steps.popleft()
                self._drop("step")

    def tell_hits(self, make: Callable[[int], Hits]) -> None:
        """Hits are kept until the hub has seen them; without a hub ever met, the run directory alone has them."""
        if not self.started:
            return
        with self._lock:
            self._serial += 1
            self._unseen[self._serial] = frame(make(self._serial))
            self._unsent.append(self._serial)
        self._wake()

    def close(self, last: Words | None = None) -> None:
        """Say goodbye and end the thread; waits a moment for what is still to be sent."""
        if last is not None:
            self.send(last)
        self._closing = True
        self._wake()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=2.0)

    # ── the thread ──

    def _run(self) -> None:
        pause = 0.05
        while not self._closing:
            if any(self._converse(*known) for known in self._known()):
                pause = 0.05
            if not self._closing:
                self._rest(pause)
                pause = min(2 * pause, 1.0)

    def _known(self) -> list[tuple[str, str]]:
        """(address, token): of a hub that left its card in the run directory, and of the settings."""
        found = [self._given] if self._given is not None else []
        if self._directory is not None:
            card = read_card(self._directory)
            if card is not None and card.link:
                found.insert(0, (card.link, card.token))
        return list(dict.fromkeys(found))

    def _converse(self, address: str, token: str) -> bool:
        """One connection, from its beginning to its end; False when there was none."""
        try:
            connection = connect(address)
        except OSError:
            return False
        try:
            connection.settimeout(5.0)
            if not _sure_of_each_other(connection, token):
                return False
            connection.sendall(frame(self._introduce()))
            frames = Frames()
            first = self._first(connection, frames)
            if not isinstance(first[0], Accepted):
                return False
            with self._lock:
                self._unsent = deque(self._unseen)
                self._out.clear()
                self._steps.clear()
                self._bytes_waiting = 0
            self.connected = True
            self._changed(True)
            for words in first:
                self._received(words)
            self._talk(connection, frames)
            return True
        except (OSError, WireError):
            return self.connected
        finally:
            connection.close()
            if self.connected:
                self.connected = False
                self._changed(False)

    def _first(self, connection: socket.socket, frames: Frames) -> list[FromHub]:
        while True:
            data = connection.recv(65536)
            if not data:
                return [Refused("the hub closed the connection")]
            words = [read_from_hub(header) for header, _ in frames.feed(data)]
            if words:
                return words

    def _talk(self, connection: socket.socket, frames: Frames) -> None:
        connection.setblocking(False)
        poller = select.poll()  # not select(): a training with a thousand open files would break it
        poller.register(self._wake_read, select.POLLIN)
        sending = memoryview(b"")
        last_sent = last_heard = time.monotonic()
        while True:
            if not sending:
                sending = memoryview(self._next())
            if self._closing and not sending:
                return
            poller.register(connection, select.POLLIN | select.POLLOUT if sending else select.POLLIN)
            ready = dict(poller.poll(1000 * _SOON))
            state = ready.get(connection.fileno(), 0)
            now = time.monotonic()
            if self._wake_read in ready:
                self._drain()
            if state & ~select.POLLOUT:
                data = connection.recv(1 << 18)
                if not data:
                    return
                last_heard = now
                for header, _ in frames.feed(data):
                    self._take(read_from_hub(header))
            if sending and state & select.POLLOUT:
                sending = sending[connection.send(sending) :]
                last_sent = now
            if now - last_sent > self._heartbeat_seconds:
                last_sent = now
                self.send(Beat(self.step, dict(self.dropped)), urgent=False)
            if now - last_heard > max(15.0, 8 * self._heartbeat_seconds):
                return  # half open: the hub's machine is gone without a word

    def _take(self, words: FromHub) -> None:
        if isinstance(words, Seen):
            with self._lock:
                for serial in [known for known in self._unseen if known <= words.serial]:
                    del self._unseen[serial]
        else:
            self._received(words)

    def _next(self) -> bytes:
        """Hits first, then everything else in its order, steps last."""
        with self._lock:
            parts = [self._unseen[serial] for serial in self._unsent if serial in self._unseen]
            self._unsent.clear()
            parts += self._out
            parts += self._steps
            self._out.clear()
            self._steps.clear()
            self._bytes_waiting = 0
        return b"".join(parts)

    def _drop(self, kind: str) -> None:
        self.dropped[kind] = self.dropped.get(kind, 0) + 1

    def _wake(self) -> None:
        if self._wake_write >= 0:
            try:
                os.write(self._wake_write, b"x")
            except (BlockingIOError, OSError):
                pass  # the pipe is full: it will wake anyway

    def _drain(self) -> None:
        try:
            os.read(self._wake_read, 4096)
        except BlockingIOError:
            pass

    def _rest(self, seconds: float) -> None:
        poller = select.poll()
        poller.register(self._wake_read, select.POLLIN)
        if poller.poll(1000 * seconds):
            self._drain()


def _sure_of_each_other(connection: socket.socket, token: str) -> bool:
    """Nothing is told to who does not know the token, not even that there is one."""
    caller = Caller(token)
    connection.sendall(caller.hello)
    answer = b""
    while len(answer) < ANSWER_BYTES:
        data = connection.recv(ANSWER_BYTES - len(answer))
        if not data:
            return False
        answer += data
    reply = caller.reply(answer)
    if reply is None:
        return False
    connection.sendall(reply)
    return True


def connect(address: str) -> socket.socket:
    """A socket to `host:port`, or to `unix:/path`."""
    if address.startswith("unix:"):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(2.0)
            connection.connect(address[5:])
        except OSError:
            connection.close()
            raise
        return connection
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise OSError(f"not an address: {address!r}; it looks like 127.0.0.1:8765")
    connection = socket.create_connection((host.strip("[]") or "127.0.0.1", int(port)), timeout=2.0)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
