"""Starting and stopping a hub: uvicorn on a thread of its own, beside whatever else the process does."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misstep.errors import MisstepError, need
from misstep.hub.security import LOOPBACK, Guard, new_token

if TYPE_CHECKING:
    import uvicorn

    from misstep.hub.hub import Hub

STOP_SECONDS = 5.0


class RunningHub:
    """A hub at work; `url` is what to open, `link` and `token` what trainees need."""

    def __init__(self, url: str, token: str, serve: Callable[[RunningHub], Coroutine[Any, Any, None]]) -> None:
        self.url = url
        self.link = ""
        self.token = token
        self.started: Future[None] = Future()
        """Done once the hub answers; failed with whatever kept it from that."""
        self.stopping: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serve = serve
        self._thread = threading.Thread(target=self._run, name="misstep-hub", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            if not self.started.done():
                self.started.set_exception(error)

    async def _main(self) -> None:
        self._loop, self.stopping = asyncio.get_running_loop(), asyncio.Event()
        await self._serve(self)

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
        if self._loop is not None and self.stopping is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.stopping.set)
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
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listening.getsockname()[1]}"
    hosts = LOOPBACK | {host} | set(names) | ({socket.gethostname()} if expose else set())

    async def serve(running: RunningHub) -> None:
        from misstep.hub.app import make_app
        from misstep.hub.hub import Hub

        hub = Hub(Path(directory).absolute(), token, things=[Path(one) for one in things])
        hub.http = url
        running.link = await hub.start(link_host=host, link_port=link_port)
        server = _quiet_server(make_app(hub, Guard(token, hosts=frozenset(hosts)), prefix=prefix))
        await _until_stopped(running, hub, server, listening, idle_seconds)

    running = RunningHub(url, token, serve)
    try:
        running.started.result()
    except BaseException as error:
        raise MisstepError(f"the hub could not start: {error}") from error
    return running


async def _until_stopped(
    running: RunningHub, hub: Hub, server: uvicorn.Server, listening: socket.socket, idle_seconds: float
) -> None:
    """Answer until somebody stops the hub, or nobody has wanted it for so long."""
    assert running.stopping is not None
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.005)
    running.started.set_result(None)
    ends: list[asyncio.Task[Any]] = [asyncio.create_task(running.stopping.wait())]
    if idle_seconds:
        ends.append(asyncio.create_task(_until_idle(hub, idle_seconds)))
    await asyncio.wait([serving, *ends], return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    await hub.stop()
    await asyncio.wait([serving], timeout=STOP_SECONDS)
    for end in ends:
        end.cancel()


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


async def _until_idle(hub: Hub, seconds: float) -> None:
    busy = time.monotonic()
    while time.monotonic() - busy < seconds:
        if hub.bus.clients or any(run.ranks for run in hub.live.values()):
            busy = time.monotonic()
        await asyncio.sleep(min(1.0, seconds / 4))


def _quiet_server(app: Any) -> uvicorn.Server:
    """uvicorn without its log and its signal handlers: signals belong to whoever started us."""
    import uvicorn

    from misstep.hub.patience import PatientProtocol

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        http=PatientProtocol,
        ws_max_size=1 << 20,
        ws_ping_interval=15.0,
        lifespan="off",
        h11_max_incomplete_event_size=64 << 10,
        timeout_graceful_shutdown=1,
    )
    return Server(config)


def warn_exposed(url: str) -> None:
    print(
        f"misstep: the hub listens on {url}: everybody who can reach it and has the token can stop training and read"
        " weights. The connection is not encrypted; an SSH tunnel is the safer way.",
        file=sys.stderr,
    )
