"""What the live debugger costs, and how fast it answers.

    python bench/debugger.py            a table
    python bench/debugger.py --json     one object: {"control": …, "rows": [{"case", "value", "unit"}]}

Ratios are of the training process's CPU time a step, the two variants taking turns in blocks so that a busy machine
slows both; the hub is a process of its own, as users have it. `control` is one variant against itself in the same
arrangement: what noise alone gives. The hub's case has fifty trainees that are only links, but real ones: the same
socket, the same messages, the same acknowledgements.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import socket
import statistics
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from measure import Rows, bench, options

Row = dict[str, Any]


def main() -> None:
    arguments = options(__doc__)
    arguments.add_argument("--quick", action="store_true", help="fewer rounds, a smaller tensor")
    bench(arguments, everything)


def everything(given: argparse.Namespace) -> tuple[float, Rows]:
    with tempfile.TemporaryDirectory(prefix="misstep-bench-debugger-") as folder:
        control, rows = training(Path(folder), quick=given.quick)
        rows += tile(Path(folder), quick=given.quick)
        many = 10 if given.quick else 50
        rows += crowd(Path(folder), trainees=many, clients=many)
        rows += crowd(Path(folder), trainees=many, clients=many, hits=400, rounds=1, name="burst")
    return control, rows


def row(case: str, value: float, unit: str) -> Row:
    return {"case": case, "value": round(value, 4), "unit": unit}


# ── a torch training: connected and idle, many watchpoints, pause ──


def training(folder: Path, *, quick: bool) -> tuple[float, list[Row]]:
    import torch

    from misstep.capture.process import attach
    from misstep.client import Debugger
    from misstep.core.watching.watchtext import watchpoint

    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(60)])  # 120 weights and as many gradients
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(128, 128)

    def step() -> None:
        loss = model(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    hub = HubProcess(folder)
    session = attach(model, optimizer, dir=str(folder), name="bench", hub=hub.link, token=hub.token, recommended=False)
    for _ in range(5):
        step()
    controller = session.controller
    assert controller is not None
    link = controller.link
    assert link is not None
    wait_for(lambda: link.connected)

    def linked(on: bool) -> None:
        controller.link = link if on else None

    blocks = 6 if quick else 20
    control, idle = in_turn(step, lambda: linked(False), lambda: linked(True), blocks=blocks)
    linked(True)
    tensors = len(session.catalog.graph.tensors)
    watches = [watchpoint(f"abs_mean > {1e6 + number}", on=f"{number % 60}.*") for number in range(1000)]
    added: list[Any] = []

    def watched(on: bool) -> None:
        if on and not added:
            added.extend(session.add_watchpoint(watch) for watch in watches)
        elif not on:
            for watch in added:
                session.delete_watchpoint(watch.id)
            added.clear()
        step()  # the plan is made anew once, which is not what a step costs

    _, many = in_turn(step, lambda: watched(False), lambda: watched(True), blocks=blocks)
    watched(False)

    nodes_passed, milliseconds = pauses(hub, session, step, Debugger, times=5 if quick else 20)
    session.end("finished")
    hub.stop()
    return control, [
        row("connected and idle, against not connected", idle, "x"),
        row(f"1,000 watchpoints on {tensors} tensors, against none", many, "x"),
        row("nodes passed between the order to pause and the pause, most", max(nodes_passed), "nodes"),
        row("from pause to paused, as a client sees it, median", statistics.median(milliseconds), "ms"),
    ]


class HubProcess:
    """A hub in a process of its own, as users have it: in this one it would compete with the training it watches."""

    def __init__(self, folder: Path) -> None:
        spawn = multiprocessing.get_context("spawn")
        mine, its = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(folder, its))
        self._process.start()
        self._end = mine
        self.url, self.link, self.token = mine.recv()

    def stop(self) -> None:
        self._end.send("stop")
        self._process.join(30)


def _serve(folder: Path, pipe: Any) -> None:
    from misstep.hub import start_hub

    hub = start_hub(folder)
    pipe.send((hub.url, hub.link, hub.token))
    pipe.recv()
    hub.stop()


def in_turn(
    step: Callable[[], None], first: Callable[[], None], second: Callable[[], None], *, blocks: int, size: int = 8
) -> tuple[float, float]:
    """(first against itself, second against first): medians over blocks that take turns."""
    times: list[list[float]] = [[], [], []]
    for _ in range(blocks):
        for place, arrange in enumerate((first, second, first)):
            arrange()
            for _ in range(size):
                start = time.process_time()
                step()
                times[place].append(time.process_time() - start)
    one, other, again = (statistics.median(each) for each in times)
    return again / one, other / ((one + again) / 2)


def pauses(
    hub: Any, session: Any, step: Callable[[], None], debugger: Any, *, times: int
) -> tuple[list[int], list[float]]:
    """Pause a training from another thread, again and again: (nodes passed after the order, milliseconds) of each."""
    ended = threading.Event()
    controller = session.controller
    passed = [0]
    at_node = controller.at_node

    def counting(place: Any) -> None:
        passed[0] += controller.control.phase == "pausing"
        at_node(place)

    controller.at_node = counting

    nodes: list[int] = []
    taken: list[float] = []

    def client() -> None:
        try:
            with debugger("bench", hub.url, hub.token) as debug:
                debug.wait("running")
                for _ in range(times):
                    passed[0] = 0
                    start = time.perf_counter()
                    debug.pause()
                    debug.wait("paused")
                    taken.append(1000 * (time.perf_counter() - start))
                    nodes.append(passed[0])
                    debug.go()
                    debug.wait("running")
        finally:
            ended.set()

    # Training stays on the thread it began on: the adapter listens there.
    thread = threading.Thread(target=client, daemon=True)
    thread.start()
    while not ended.is_set():
        step()
    thread.join(30)
    controller.at_node = at_node
    return nodes, taken


# ── a tile of a large tensor ──


def tile(folder: Path, *, quick: bool) -> list[Row]:
    import torch

    from misstep.capture.session import Session
    from misstep.client import Debugger
    from misstep.hub import start_hub
    from misstep.settings import Settings

    side = 4096 if quick else 16384
    large = torch.nn.Linear(side, side, bias=False)
    with torch.no_grad():
        large.weight.fill_(0.5)
    hub = start_hub(folder)
    given = {"dir": str(folder), "name": "large", "hub": hub.link, "token": hub.token, "pause_at_start": True}
    settings = Settings(given)
    from misstep.adapters.registry import adapter_for

    session = Session(settings)
    adapter = adapter_for(large)
    session.use(adapter)
    adapter.adopt(large)

    times: list[float] = []
    grown: list[float] = []

    def client() -> None:
        wait_for(lambda: session.controller is not None and session.controller.control.phase == "paused", seconds=200)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with Debugger("large", hub.url, hub.token) as debug:
            debug.wait("paused")
            for number in range(30):
                start = time.perf_counter()
                got = debug.tile("weight:param", row=(number * 97) % (side - 256), column=(number * 31) % (side - 256))
                times.append(1000 * (time.perf_counter() - start))
                assert got.shape == (256, 256)
            grown.append((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
            debug.command("continue", rev=None)

    thread = threading.Thread(target=client, daemon=True)
    thread.start()
    large(torch.zeros(1, side)).sum().backward()
    thread.join(60)
    session.end("finished")
    hub.stop()
    size = side * side * 4 / 2**30
    return [
        row(f"256x256 tile of a {size:.3g} GiB tensor, median", statistics.median(times), "ms"),
        row(f"256x256 tile of a {size:.3g} GiB tensor, worst of 30", max(times), "ms"),
        row("peak memory added by 30 tiles", grown[0], "MiB"),
    ]


# ── many trainees, many browsers ──


def crowd(
    folder: Path, *, trainees: int, clients: int, hits: int = 8, rounds: int = 10, name: str = "sim"
) -> list[Row]:
    """Every hit of every trainee must reach every client: as events, or asked for where a client could not follow."""
    from misstep.capture.live.link import Link
    from misstep.hub import start_hub
    from misstep.protocol.views import HitView
    from misstep.protocol.wire import LINK_PROTOCOL, Bye, Hits, Introduce, Standing, StepDone

    hub = start_hub(folder)
    links: list[Link] = []
    for number in range(trainees):

        def introduce(token: str, run: str = f"{name}-{number}") -> Introduce:
            return Introduce(LINK_PROTOCOL, token, run, "", 0, 1, socket.gethostname(), 1, Standing("running", 1, 0))

        link = Link(
            introduce=introduce,
            received=lambda words: None,
            changed=lambda connected: None,
            address=hub.link,
            token=hub.token,
        )
        link.start()
        links.append(link)
    wait_for(lambda: all(link.connected for link in links))
    expected = trainees * hits * rounds
    counted: list[int] = []
    ready = threading.Barrier(2)
    runs = [f"{name}-{number}" for number in range(trainees)]
    gaps: list[int] = []
    browsers = threading.Thread(
        target=lambda: counted.extend(asyncio.run(_browsers(hub, runs, clients, expected, ready, gaps)))
    )
    browsers.start()
    ready.wait(60)
    start = time.perf_counter()
    for turn in range(rounds):
        for number, link in enumerate(links):
            link.tell_step(StepDone(turn + 1, 0.5, 0.01))
            views = tuple(
                HitView(turn * hits + at + 1, 1, f"a:output@{turn + 1}#0", "a", "output", 0, turn + 1, 0, f"{number}")
                for at in range(hits)
            )
            link.tell_hits(lambda serial, views=views: Hits(serial, views))  # type: ignore[misc]
    browsers.join(300)
    taken = time.perf_counter() - start
    for link in links:
        link.close(Bye("finished"))
    hub.stop()
    what = f"{trainees} trainees with {hits * rounds} hits each to {clients} browsers"
    return [
        row(f"hits lost, {what}", clients * expected - sum(counted), "hits"),
        row(f"hits delivered, {what}", sum(counted) / taken, "hits/s"),
        row(f"browsers that could not follow and asked for the rest, {what}", len(gaps), "times"),
    ]


async def _browsers(
    hub: Any, runs: list[str], clients: int, expected: int, ready: threading.Barrier, gaps: list[int]
) -> list[int]:
    from websockets.asyncio.client import connect
    from websockets.exceptions import ConnectionClosed

    from misstep.protocol import messages as m

    async def one(started: asyncio.Semaphore) -> int:
        """One page. Cut off because it did not keep up, it comes back and resumes, as a real one does."""
        seen: set[tuple[str, int]] = set()
        session, seq = "", 0
        while True:
            async with connect(
                hub.url.replace("http", "ws") + "/api/v1/live",
                subprotocols=[m.SUBPROTOCOL],
                additional_headers={"X-Misstep-Token": hub.token},
                compression=None,
                proxy=None,
                open_timeout=60,
            ) as browser:
                resume = m.Resume(session, seq) if session else None
                await browser.send(m.encode(m.Hello(m.PROTOCOL, resume=resume)).decode())
                await browser.send(m.encode(m.Subscribe("s", ("hits", "steps", "state"))).decode())
                try:
                    while len(seen) < expected:
                        for event in m.read_server(await asyncio.wait_for(browser.recv(), 60)):
                            if isinstance(event, m.Welcome):
                                session = event.session
                            elif isinstance(event, m.Ack):
                                started.release()
                            elif isinstance(event, m.HitNews):
                                seq = max(seq, event.seq)
                                seen.add((event.run, event.hit.id))
                            elif isinstance(event, m.Reset):
                                gaps.append(event.since)
                                for run in runs:
                                    told = await asyncio.to_thread(_hits_since, hub, run, event.since)
                                    seen.update((run, hit) for hit in told)
                    return len(seen)
                except TimeoutError:
                    return len(seen)
                except ConnectionClosed:
                    continue

    started = asyncio.Semaphore(0)
    tasks = [asyncio.create_task(one(started)) for _ in range(clients)]
    for _ in tasks:
        await started.acquire()
    await asyncio.to_thread(ready.wait)
    done = await asyncio.gather(*tasks, return_exceptions=True)
    return [count if isinstance(count, int) else 0 for count in done]


def _hits_since(hub: Any, run: str, seq: int) -> list[int]:
    request = urllib.request.Request(
        f"{hub.url}/api/v1/runs/{run}/hits?since={seq}&limit=100000", headers={"X-Misstep-Token": hub.token}
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        return [hit["id"] for hit in json.load(answer)["hits"]]


def wait_for(holds: Callable[[], Any], *, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("the benchmark waited too long")
        time.sleep(0.01)


if __name__ == "__main__":
    main()
