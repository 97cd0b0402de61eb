"""Waiting for events of another process: files that appear, ranks that connect. Nothing here looks by the clock."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from misstep.hub import RunningHub
from misstep.protocol import messages as m

SECONDS = 90.0

T = TypeVar("T")


class Wakes(FileSystemEventHandler):
    """Sets an event whenever anything is written in a folder; being read, also by the one who waits, is none."""

    def __init__(self, event: threading.Event) -> None:
        self.event = event

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type not in ("opened", "closed_no_write"):
            self.event.set()


def when(
    happened: Callable[[], T],
    folder: Path,
    process: subprocess.Popen[str],
    *,
    seconds: float = SECONDS,
) -> T:
    """What `happened` gives once it is true; asked whenever a file below the folder changes."""
    changed = threading.Event()
    observer = Observer()
    observer.schedule(Wakes(changed), str(folder), recursive=True)
    observer.start()
    until = time.monotonic() + seconds
    try:
        with at_the_end_of(process, changed.set):
            while not (found := happened()):
                assert process.poll() is None, f"it ended too early:\n{_said(process)}"
                assert changed.wait(until - time.monotonic()), f"waited {seconds:g} s"
                changed.clear()
            return found
    finally:
        observer.stop()
        observer.join()


def connected(
    hub: RunningHub,
    run: str,
    process: subprocess.Popen[str] | None = None,
    *,
    ranks: int = 1,
    seconds: float = SECONDS,
) -> None:
    """Until so many ranks of a run are connected to the hub, as the hub's live socket tells."""
    address = hub.url.replace("http", "ws") + "/api/v1/live"
    until = time.monotonic() + seconds
    options = {"subprotocols": [m.SUBPROTOCOL], "additional_headers": {"X-Misstep-Token": hub.token}}
    with connect(address, proxy=None, max_size=None, **options) as socket, at_the_end_of(process, socket.close):
        for message in (m.Hello(m.PROTOCOL), m.Subscribe("waiting", m.CHANNELS)):
            socket.send(m.encode(message).decode())
        try:
            while True:
                for heard in m.read_server(socket.recv(timeout=max(0.0, until - time.monotonic()))):
                    if isinstance(heard, m.State) and heard.run == run and alive(heard) >= ranks:
                        return
        except ConnectionClosed:
            raise AssertionError(f"it ended before {ranks} ranks were connected:\n{_said(process)}") from None


def alive(state: m.State) -> int:
    return sum(rank.alive for rank in state.ranks)


@contextmanager
def at_the_end_of(process: subprocess.Popen[str] | None, act: Callable[[], object]) -> Iterator[None]:
    """Acts when the process ends, if that is within this block."""
    over = False

    def watch(process: subprocess.Popen[str]) -> None:
        process.wait()
        if not over:
            act()

    if process is not None:
        threading.Thread(target=watch, args=(process,), daemon=True).start()
    try:
        yield
    finally:
        over = True


def _said(process: subprocess.Popen[str] | None) -> str:
    return process.stdout.read() if process is not None and process.stdout is not None else ""
