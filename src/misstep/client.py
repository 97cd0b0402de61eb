"""A debugger in Python: `misstep.connect(run)` finds the hub of a run and gives its verbs, for notebooks and tests.

    debug = misstep.connect("last")
    debug.pause(); debug.wait("paused")
    debug.tensor("encoder.0:output", slice="0,:5")
    debug.watch("gradient_vanishing on encoder.*:grad", abs_mean_lt=1e-9)
    debug.run_to("decoder.2"); debug.wait("paused"); debug.go()

Every command carries the revision last seen, so two clients cannot race each other without noticing. Where no hub
serves the run yet, one is started in the background; it ends by itself when nobody needs it any more.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from misstep.core.address import Address
from misstep.core.slices import Array
from misstep.errors import ControlError, StaleCommand, need
from misstep.hubaccess import HubAccess, array_of, card_of, hub_of
from misstep.protocol import messages as m
from misstep.protocol.payloads import DryRun, HitList, SearchResult
from misstep.protocol.tensor_payloads import ComparisonHeader, TensorHeader
from misstep.protocol.views import HitView, WatchpointView
from misstep.sentences.words import spoken
from misstep.settings import Settings
from misstep.store.reading.reader import Run
from misstep.store.runs import resolve

WAIT_SECONDS = 60.0
_ids = itertools.count(1)


def connect(run: str = "last", *, directory: str | None = None, wait_seconds: float = 20.0) -> Debugger:
    """A debugger for a live run (or a reader's view of a finished one)."""
    base = directory if directory is not None else Settings.load().dir
    path = resolve(run, base)
    debugger = Debugger(path.name, *hub_of(path, wait_seconds=wait_seconds), directory=path)
    if Run(path).alive:
        # A run that was started without a hub finds this one at the end of its step under way.
        debugger.wait("running", "pausing", "paused", "stepping", "terminating", "ended", seconds=wait_seconds)
    return debugger


class Debugger:
    """One client of one run."""

    def __init__(self, run: str, url: str, token: str, *, directory: Path | None = None) -> None:
        sync = need("websockets.sync.client", "to talk to the hub", extra="ui")
        self.run = run
        self.hub = HubAccess(run, url, token)
        self._directory = directory
        self.hits: list[HitView] = []
        """Everything that hit since the connection was made, in the order it was told."""
        self.events: list[m.ServerMessage] = []
        self._state: m.State | None = None
        self._answers: dict[str, Any] = {}
        self._known: set[tuple[int, int]] = set()
        """(rank, id) of the hits told."""
        self._began = 0
        """The step at which we came; what hit before is in hit_list()."""
        self._changed = threading.Condition()
        self._seq, self._session = 0, ""
        self._closed = False
        self._sync: Any = sync
        self._socket = self._open()
        self._thread = threading.Thread(target=self._listen, name="misstep-client", daemon=True)
        self._thread.start()
        self._request(m.Subscribe(_id(), m.CHANNELS, run))
        with self._changed:
            if self._state is None:
                self._state = msgspec.convert(self.hub.get("state"), m.State)
            self._began = self._state.step

    # ── control ──

    @property
    def state(self) -> m.State:
        """Where the run is, as far as we were told."""
        with self._changed:
            assert self._state is not None
            return self._state

    @property
    def url(self) -> str:
        """Of the hub; the page of the run is there too."""
        return self.hub.url

    def go(self) -> Any:
        return self.command("continue")

    def pause(self) -> Any:
        return self.command("pause")

    def step(self, count: int = 1) -> Any:
        return self.command("step", count=count)

    def until(self, condition: str) -> Any:
        return self.command("until", condition=condition)

    def next(self) -> Any:
        return self.command("next")

    def run_to(self, node: str, *, phase: Any = None, when: Any = None, call: int | None = None) -> Any:
        return self.command("run_to", node=node, phase=phase, when=when, call=call)

    def pynative(self, steps: str = "") -> Any:
        """Run steps of compiled MindSpore code in PyNative too ('3:5'); without any, walk through the next one."""
        return self.command("pynative", steps=steps)

    def recheck(self) -> Any:
        return self.command("recheck")

    def stop(self) -> Any:
        """End the training; its own clean-up runs."""
        return self.command("terminate")

    def detach(self) -> Any:
        """Let the training go on without misstep."""
        return self.command("detach")

    def reset(self, step: int) -> Any:
        """Show a finished run as it was at this step."""
        return self.command("reset", count=step)

    def granularity(self, granularity: Any) -> Any:
        """What `next` stops at: modules or operators."""
        return self.command("granularity", granularity=granularity)

    def command(self, op: Any, *, rev: int | None = -1, rank: int | None = None, **arguments: Any) -> Any:
        """Any command; `rev` is the revision seen unless given, None to insist whatever happened meanwhile."""
        seen = self.state.rev if rev == -1 else rev
        answer = self._request(m.Command(_id(), op, self.run, seen, rank, **arguments))
        # The answer may overtake the news of what it did; a wait() right after must not see the state of before.
        self._wait(
            lambda: True if self._closed or self.state.rev >= answer.rev else None, "the new state", WAIT_SECONDS
        )
        return answer.result

    def wait(self, *phases: str, seconds: float = WAIT_SECONDS) -> m.State:
        """Until the run is in one of these phases (paused unless said)."""
        wanted = phases or ("paused",)
        what = " or ".join(wanted)
        found: m.State = self._wait(lambda: self.state if self.state.phase in wanted else None, what, seconds)
        return found

    def wait_step(self, step: int, *, seconds: float = WAIT_SECONDS) -> int:
        """Until the run has finished this step."""
        found: int = self._wait(lambda: self._steps() if self._steps() >= step else None, f"step {step}", seconds)
        return found

    def wait_hit(self, count: int = 1, *, seconds: float = WAIT_SECONDS) -> list[HitView]:
        """Until so many hits were told."""
        found: list[HitView] = self._wait(
            lambda: list(self.hits) if len(self.hits) >= count else None, f"{count} hits", seconds
        )
        return found

    # ── watchpoints ──

    def watch(self, condition: str, *, on: str | tuple[str, ...] = (), then: Any = "pause", **parameters: Any) -> Any:
        """Add a watchpoint: a condition's name, an expression, or a whole line; its number and settings come back."""
        spec = self._spec(condition, on, then, parameters)
        return msgspec.convert(self._edit("add", spec=spec), WatchpointView)

    def dry_run(self, condition: str, *, on: str | tuple[str, ...] = (), **parameters: Any) -> DryRun:
        """What a watchpoint would do on the tensors that are there now."""
        return msgspec.convert(self._edit("dry_run", spec=self._spec(condition, on, "pause", parameters)), DryRun)

    def change(self, watchpoint: int, condition: str, *, on: Any = (), then: Any = "pause", **parameters: Any) -> Any:
        return self._edit("update", watchpoint=watchpoint, spec=self._spec(condition, on, then, parameters))

    def unwatch(self, watchpoint: int) -> Any:
        return self._edit("remove", watchpoint=watchpoint)

    def enable(self, watchpoint: int, enabled: bool = True) -> Any:
        return self._edit("enable" if enabled else "disable", watchpoint=watchpoint)

    def recommend(self) -> Any:
        return self._edit("recommend")

    def watch_scope(self, watchpoint: int, scope: str, *, watched: bool = True) -> Any:
        """Let every node below a scope join or leave a watchpoint."""
        return self._edit("watch_scope" if watched else "unwatch_scope", watchpoint=watchpoint, scope=scope)

    def dump(self, *patterns: str, steps: str = "", rank: int | None = None) -> Any:
        """Keep whole tensors that fit, at these steps, or of the next step."""
        return self._edit("dump", spec=m.WatchSpec(on=patterns), scope=steps, rank=rank)

    def watchpoints(self) -> list[WatchpointView]:
        return msgspec.convert(self.hub.get("watchpoints")["watchpoints"], list[WatchpointView])

    # ── looking ──

    def tensor(self, address: str | Address, slice: str = "") -> Array:
        """The values of a tensor, or of a slice of it."""
        header, data = self.hub.binary("tensor", TensorHeader, address=str(address), slice=slice, want=["raw"])
        return array_of(header, data)

    def look(self, address: str | Address, slice: str = "", want: tuple[str, ...] = ("stats",)) -> TensorHeader:
        """Statistics, a histogram, the next bad element: everything but the values."""
        header, _ = self.hub.binary("tensor", TensorHeader, address=str(address), slice=slice, want=list(want))
        return header

    def tile(self, address: str | Address, *, slice: str = "", row: int = 0, column: int = 0, pool: int = 1) -> Array:
        want = [f"tile:{row},{column},256,256", f"pool:{pool}"]
        header, data = self.hub.binary("tensor", TensorHeader, address=str(address), slice=slice, want=want)
        return array_of(header, data)

    def compare(
        self, a: str | Address, b: str | Address = "prev", *, slice: str = "", atol: float = 1e-8, rtol: float = 1e-5
    ) -> ComparisonHeader:
        """How far two tensors are apart; b is an address, `run!address`, or `prev`."""
        header, _ = self.hub.binary(
            "compare", ComparisonHeader, a=str(a), b=str(b), slice=slice, atol=atol, rtol=rtol, want=["stats"]
        )
        return header

    def search(self, query: str, *, limit: int = 200) -> SearchResult:
        return msgspec.convert(self.hub.get("search", q=query, limit=limit), SearchResult)

    def hit_list(self, **narrowed: Any) -> HitList:
        """Hits the run has had, live or recorded."""
        return msgspec.convert(self.hub.get("hits", **narrowed), HitList)

    def get(self, what: str, **query: Any) -> Any:
        """Any other address of the run, as plain data: graph, node, steps/7, sources …"""
        return self.hub.get(what, **query)

    def close(self) -> None:
        self._closed = True
        self._socket.close()
        self._thread.join(5.0)

    def __enter__(self) -> Debugger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── inside ──

    def _spec(self, condition: str, on: str | tuple[str, ...], then: Any, parameters: dict[str, Any]) -> m.WatchSpec:
        places = (on,) if isinstance(on, str) else tuple(on)
        return m.WatchSpec(condition, parameters, places, then=then)

    def _edit(self, op: Any, **fields: Any) -> Any:
        return self._request(m.WatchEdit(_id(), op, self.run, **fields)).result

    def _request(self, message: Any, *, seconds: float = WAIT_SECONDS) -> m.Ack:
        self._socket.send(m.encode(message).decode())
        what = f"an answer to {type(message).__name__}"
        answer = self._wait(lambda: self._answers.pop(message.id, None), what, seconds)
        if isinstance(answer, m.Nack):
            stale = answer.code == "stale_state"
            why = spoken(answer.text, answer.text_zh)
            raise StaleCommand(why) if stale else ControlError(why, code=answer.code)
        assert isinstance(answer, m.Ack)
        return answer

    def _wait(self, holds: Callable[[], Any], what: str, seconds: float) -> Any:
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                found = holds()
                if found is not None:
                    return found
                left = deadline - time.monotonic()
                if left <= 0 or self._closed:
                    now = self._state.phase if self._state else "unknown"
                    raise ControlError(f"waited {seconds:g} s for {what}; the run is {now}", code="timeout")
                self._changed.wait(left)

    def _steps(self) -> int:
        seen = [event.step for event in self.events[-500:] if isinstance(event, m.StepNews)]
        return max([self.state.step, *seen])

    def _open(self) -> Any:
        address = self.hub.url.replace("http", "ws", 1) + "/api/v1/live"
        socket = self._sync.connect(
            address,
            subprotocols=[m.SUBPROTOCOL],
            additional_headers={"X-Misstep-Token": self.hub.token},
            max_size=None,
            compression=None,
            proxy=None,
            open_timeout=10,
        )
        resume = m.Resume(self._session, self._seq) if self._session else None
        socket.send(m.encode(m.Hello(m.PROTOCOL, resume=resume)).decode())
        return socket

    def _listen(self) -> None:
        while not self._closed:
            try:
                for data in self._socket:
                    if isinstance(data, str):
                        self._hear(m.read_server(data))
            except Exception:
                pass  # the connection broke; below it is made again
            if self._closed or not self._again():
                break
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _hear(self, messages: list[m.ServerMessage]) -> None:
        for message in messages:
            self._take(message)
            if isinstance(message, m.Reset):
                self._catch_up(message.since)

    def _again(self) -> bool:
        """Connect again and go on where we were; False when the hub stays away."""
        for _ in range(40):
            time.sleep(0.25)
            if self._closed:
                return False
            moved = card_of(self._directory) if self._directory is not None else None
            if moved is not None:
                self.hub = HubAccess(self.run, *moved)
            try:
                self._socket = self._open()
                self._socket.send(m.encode(m.Subscribe(_id(), m.CHANNELS, self.run)).decode())
                return True
            except Exception:
                continue
        return False

    def _take(self, message: m.ServerMessage) -> None:
        with self._changed:
            if isinstance(message, m.Ack | m.Nack):
                self._answers[message.id] = message
            else:
                self._seq = max(self._seq, getattr(message, "seq", 0))
                self.events.append(message)
                del self.events[:-20_000]
            if isinstance(message, m.Welcome):
                self._session = message.session
            elif isinstance(message, m.State) and message.run == self.run:
                self._state = message
            elif isinstance(message, m.HitNews) and message.run == self.run:
                self._add(message.hit)
            self._changed.notify_all()

    def _add(self, hit: HitView) -> None:
        if (hit.rank, hit.id) not in self._known:
            self._known.add((hit.rank, hit.id))
            self.hits.append(hit)

    def _catch_up(self, since: int) -> None:
        """We were too slow, or the hub is another one: the hits we were not told are fetched."""
        page, size = 0, 1000
        while True:
            found = self.hit_list(since=since, offset=page * size, limit=size).hits
            with self._changed:
                for hit in found:
                    if hit.step >= self._began:
                        self._add(hit)
                self._changed.notify_all()
            if len(found) < size:
                return
            page += 1


def _id() -> str:
    return f"c{next(_ids)}"


def events_of(debugger: Debugger, kind: type[Any]) -> Iterator[Any]:
    """The events of one type so far, in order."""
    return (event for event in list(debugger.events) if isinstance(event, kind))
