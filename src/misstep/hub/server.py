"""Starting and stopping a hub: uvicorn on a thread of its own, beside whatever else the process does."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from misstep.errors import MisstepError, need
from misstep.hub.security import LOOPBACK, Guard, new_token

STOP_SECONDS = 5.0


class RunningHub:
    """A hub at work; `url` is what to open, `link` and `token` what trainees need."""

    def __init__(self, url: str, link: str, token: str, thread: threading.Thread) -> None:
        self.url = url
        self.link = link
        self.token = token
        self._thread = thread
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def page(self) -> str:
        """The address to open in a browser; the fragment never leaves it."""
        return f"{self.url}/#token={self.token}"

    def environment(self) -> dict[str, str]:
        """What a trainee needs to find this hub."""
        return {"MISSTEP_HUB": self.link, "MISSTEP_TOKEN": self.token}

    def wait(self) -> None:
        """Until the hub ends."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def stop(self) -> None:
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(STOP_SECONDS)

    def __enter__(self) -> RunningHub:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start_hub(
    directory: Path | str = "missteps",
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    link_port: int = 0,
    token: str = "",
    expose: bool = False,
    names: tuple[str, ...] = (),
    prefix: str = "",
    idle_seconds: float = 0.0,
    things: Sequence[Path | str] = (),
) -> RunningHub:
    """Run a hub over a folder of runs, in the background.

    >>> with start_hub("missteps") as hub: print(hub.page)

    `expose` is needed for any address but loopback; `names` are further host names to answer to; with `idle_seconds`
    the hub ends by itself after so long without a live run or a client. `things` are dumps and checkpoints to open
    that lie elsewhere.
    """
    if host not in LOOPBACK and not expose:
        raise MisstepError(
            f"{host} can be reached from other machines: whoever has the token could stop training and read weights."
            "  To do it all the same:  misstep ui --host ADDRESS --expose"
        )
    need("uvicorn", "for the hub", extra="ui")
    need("starlette", "for the hub", extra="ui")
    token = token or new_token()
    listening = _listen(host, port)
    number = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    hosts = LOOPBACK | {host} | set(names) | ({socket.gethostname()} if expose else set())
    ready: list[RunningHub | BaseException] = []
    told = threading.Event()

    def serve() -> None:
        try:
            asyncio.run(_serve())
        except BaseException as error:
            ready.append(error)
            told.set()

    async def _serve() -> None:
        import uvicorn

        from misstep.hub.app import make_app
        from misstep.hub.hub import Hub

        hub = Hub(Path(directory).absolute(), token, things=[Path(one) for one in things])
        hub.http = f"http://{shown}:{number}"
        link = await hub.start(link_host=host, link_port=link_port)
        config = uvicorn.Config(
            make_app(hub, Guard(token, hosts=frozenset(hosts)), prefix=prefix),
            log_level="warning",
            access_log=False,
            ws_max_size=1 << 20,
            ws_ping_interval=15.0,
            lifespan="off",
            h11_max_incomplete_event_size=64 << 10,
            timeout_graceful_shutdown=1,
        )
        server = _quiet_server(config)
        running.link = link
        running._loop, running._stop = asyncio.get_running_loop(), asyncio.Event()
        task = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started and not task.done():
            await asyncio.sleep(0.005)
        ready.append(running)
        told.set()
        watch = asyncio.create_task(_until_idle(hub, idle_seconds)) if idle_seconds else None
        stopping = asyncio.create_task(running._stop.wait())
        await asyncio.wait([task, stopping, *([watch] if watch else [])], return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await hub.stop()
        await asyncio.wait([task], timeout=STOP_SECONDS)
        for left in (stopping, watch):
            if left is not None:
                left.cancel()

    thread = threading.Thread(target=serve, name="misstep-hub", daemon=True)
    running = RunningHub(f"http://{shown}:{number}", "", token, thread)
    thread.start()
    told.wait()
    if isinstance(ready[0], BaseException):
        raise MisstepError(f"the hub could not start: {ready[0]}") from ready[0]
    return running


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise MisstepError(f"cannot listen on {host}:{port}: {error.strerror}; choose another:  --port 0") from None
    listening.listen(256)
    return listening


async def _until_idle(hub: object, seconds: float) -> None:
    from misstep.hub.hub import Hub

    assert isinstance(hub, Hub)
    busy = time.monotonic()
    while time.monotonic() - busy < seconds:
        if hub.bus.clients or any(run.ranks for run in hub.live.values()):
            busy = time.monotonic()
        await asyncio.sleep(min(1.0, seconds / 4))


def _quiet_server(config: Any) -> Any:
    """uvicorn's server without its signal handlers: signals belong to whoever started us."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Server(config)


def warn_exposed(url: str) -> None:
    print(
        f"misstep: the hub listens on {url}: everybody who can reach it and has the token can stop training and read"
        " weights. The connection is not encrypted; an SSH tunnel is the safer way.",
        file=sys.stderr,
    )
