"""Where training waits: the state machine of control/machine.py put between two threads.

    training thread ── at_node, step_boundary ──► Control ◄── orders ── link thread ◄── hub
                  └── while it waits, and at every boundary, it serves what touches tensors and watchpoints (serving.py)

One rule keeps this simple: whatever touches the user's objects runs on the training thread, either while that waits or
at the end of the step under way. The link thread only decides, answers from its own books and keeps the heartbeat.

    Controller(settings, session).attach_link(…) → initial_pause() → (at_node … step_boundary)* → close()
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from misstep.adapters.base import Place, TrainingStopped
from misstep.capture.live.debuggee import Debuggee
from misstep.capture.live.digest import Digests
from misstep.capture.live.edits import Edits
from misstep.capture.live.inspect import Look
from misstep.capture.live.link import Link
from misstep.capture.live.patience import Patience
from misstep.capture.live.requests import Requests
from misstep.capture.step.lookup import nearest_node
from misstep.capture.step.outcome import StepOutcome
from misstep.control.goals import Spot, StepFacts
from misstep.control.machine import Control, Decision
from misstep.core.watching.watch import Hit
from misstep.errors import ControlError
from misstep.protocol.views import Reason, hit_view, number
from misstep.protocol.wire import (
    LINK_PROTOCOL,
    Accepted,
    AskTensor,
    Bye,
    Digest,
    Earliest,
    Edit,
    FromHub,
    Gather,
    GraphGrew,
    Hits,
    Introduce,
    Meet,
    Note,
    Order,
    Record,
    Stand,
    Standing,
    StepDone,
    Wish,
)
from misstep.sentences.hits import AT
from misstep.sentences.words import spoken
from misstep.settings import Settings

STOPPED_BY_USER = 130
"""The exit code of a training somebody ended in the debugger: as if interrupted from the keyboard."""


class Controller:
    """The debugger's hand on one training process."""

    def __init__(self, settings: Settings, session: Debuggee, *, world_size: int = 1) -> None:
        self.settings = settings
        self.session = session
        self.world_size = world_size
        self.control = Control()
        self.control.nearest = lambda node: nearest_node(node, session.catalog.graph)
        self.link: Link | None = None
        self.on_wants_nodes: Callable[[bool], None] = lambda wanted: None
        """Called when somebody begins or ceases to need every node: the session sets its `stepping` here."""
        self.look = Look(session)
        self.edits = Edits(session)
        self._digests = Digests(session)
        self._initial: Digest | None = None
        self.cond = threading.Condition()
        """Held by whoever asks or changes the control; told when it changed, or when there is something to serve."""
        self._telling = threading.Lock()
        """Two threads tell where we are; what was found out first is said first."""
        self.requests = Requests(self)
        self._told_rev = 0
        self._wanted_nodes = False
        self._told_nodes = 0
        self._patience = Patience(settings.grace_seconds)
        self._closed = False
        self._pid = os.getpid()

    def attach_link(self, *, world_size: int | None = None, command: tuple[str, ...] = ()) -> None:
        """Report to the hub of the settings, or to one that comes later; call when the run directory is known."""
        if self.link is not None:
            return
        self.world_size = world_size if world_size is not None else self.world_size
        self._command = command
        self.link = Link(
            introduce=self._introduce,
            received=self._received,
            changed=self._link_changed,
            address=self.settings.hub,
            token=self.settings.token,
            run_directory=self.session.run_directory,
            heartbeat_seconds=self.settings.heartbeat_seconds,
        )
        if self.settings.hub:
            self.link.start()

    @property
    def wants_nodes(self) -> bool:
        return self._wanted_nodes

    @property
    def compiled(self) -> bool:
        """Whether the steps of this training are compiled code."""
        return self.session.modes is not None and bool(self.session.modes.compiled)

    # ── the training thread ──

    def initial_pause(self) -> None:
        """Before the first step: wait for a debugger when the settings say so."""
        initial = self.session.initial_frame
        if self.world_size > 1 and initial is not None:
            # Only who knows that replicas began equal can say later that gradients were not averaged.
            self._initial = self._digests.of_step(initial)
            self._tell_initial()
        if self.settings.pause_at_start:
            with self.cond:
                decision = self.control.starting(pause=True)
            self._after(decision)

    def _tell_initial(self) -> None:
        if self._initial is not None and self.link is not None and self.control.step == 0:
            self.link.tell_step(StepDone(0, digest=self._initial))

    def at_node(self, place: Place) -> None:
        """May block. Called only while `wants_nodes`."""
        if self._closed or os.getpid() != self._pid:
            return
        node = self.session.catalog.graph.nodes[place.node]
        spot = Spot(node.name, place.phase, place.when, place.kind, node.type, place.call, node.source)
        self.look.hold()
        with self.cond:
            self.control.compiled = self.compiled
            decision = self.control.at_node(spot)
        if decision != "go":
            self._after(decision)

    def step_boundary(self, outcome: StepOutcome) -> None:
        """A step ended. May block; raises TrainingStopped when somebody ended the training."""
        if self._closed or os.getpid() != self._pid:
            return
        facts, hits = StepFacts.of(outcome.step), outcome.hits
        now = time.monotonic()
        link = self.link
        if link is not None:
            if link.started:
                self._tell(link, facts, hits)
            else:
                link.look_for_hub(now)
        with self.cond:
            decision = self.control.step_boundary(facts, hit=self._pausing(hits), now=now)
        self.requests.serve()
        if decision != "go":
            self._after(decision)
        self.look.let_go()
        self._refresh_wants()

    def close(self, reason: str = "finished", exit_code: int | None = None) -> None:
        """The training is over, or goes on without us; safe to call twice."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        with self.cond:
            self.control.end(reason)
            self.cond.notify_all()
        self.push()
        self.requests.give_up()
        if self.link is not None:
            self.link.close(Bye(reason, exit_code))

    def _after(self, decision: Decision) -> None:
        """Wait as long as must be, then go on, stop or let go."""
        if decision in ("wait", "ask"):
            self._wait(decision)
        self.push()
        if self.control.phase == "terminating":
            self.close("stopped", STOPPED_BY_USER)
            self.session.end("stopped", STOPPED_BY_USER)
            raise TrainingStopped(STOPPED_BY_USER)
        if self.control.phase == "detached" and not self._closed:
            self._closed = True
            self._set_wants(False)
            if self.link is not None:
                self.link.close(Bye("detached"))
            self.session.detach()

    def _wait(self, decision: Decision) -> None:
        announced = False
        self.push()
        if decision == "ask":
            self._ask()
        while True:
            if self.control.phase == "paused" and not announced:
                announced = True
                self.look.standing_still(self.control.step_of)
                self._journal("paused")
            self.push()
            self.requests.serve()
            with self.cond:
                if self.control.must_wait and not self.requests.waiting and self._hub_or_grace():
                    self.cond.wait(timeout=1.0 if self._linked() else 0.2)
                if not self.control.must_wait:
                    break
        if announced:
            self._journal("running")
        self._refresh_wants()

    def _ask(self) -> None:
        """Tell the hub that all ranks should pause here; without one there is nobody to agree with."""
        wish = self.control.wish
        if not self._linked():
            with self.cond:
                self.control.release()
        elif wish is not None and self.link is not None:
            self.link.send(Wish(self.control.step, wish))

    def _hub_or_grace(self) -> bool:
        """False when the debugger has been gone for too long; training then goes on by itself. Holds the lock."""
        if self._linked():
            self._patience.found()
            return True
        now = time.monotonic()
        if self.link is not None:
            self.link.look_for_hub(now)
        if self.control.held or self.control.wish is not None:
            self.control.release()
            return True
        run = self.session.run_directory.name if self.session.run_directory else "last"
        reason = self.control.reason.text if self.control.reason else ""
        if not self._patience.is_over(now, reason=reason, run=run):
            return True
        self.control.go_on(f"no debugger came within {self._patience.grace:g} s")
        return False

    def _tell(self, link: Link, facts: StepFacts, hits: Sequence[Hit]) -> None:
        digest = self._digests.of_step() if self.world_size > 1 and link.connected else None
        link.tell_step(
            StepDone(
                facts.step,
                number(facts.loss),
                facts.seconds,
                number(facts.learning_rate),
                number(facts.gradient_norm),
                facts.epoch,
                digest,
            )
        )
        if hits:
            views = tuple(hit_view(hit) for hit in hits)
            link.tell_hits(lambda serial: Hits(serial, views))
        graph = self.session.catalog.graph
        if len(graph.nodes) + len(graph.edges) != self._told_nodes:
            self._told_nodes = len(graph.nodes) + len(graph.edges)
            link.send(GraphGrew(len(graph.nodes), len(graph.edges)), urgent=False)

    def _pausing(self, hits: Sequence[Hit]) -> Reason | None:
        if not hits:
            return None
        pausing = {watch.id for watch in self.session.watchpoints if watch.then == "pause"}
        for hit in hits:
            if hit.watchpoint in pausing:
                rank = self.session.rank
                return Reason("watchpoint", AT.of(address=hit.address, why=hit.reason), hit.watchpoint, hit.id, rank)
        return None

    def _journal(self, state: str) -> None:
        writer = self.session.writer
        if writer is not None:
            reason = self.control.reason if state == "paused" else None
            text = "" if reason is None else spoken(reason.text, reason.text_zh)
            writer.event("state", state=state, step=self.control.present, text=text)

    # ── the link thread ──

    def _received(self, words: FromHub) -> None:
        if isinstance(words, Accepted):
            with self.cond:
                self.control.coordinated = words.coordinated
        elif isinstance(words, Order):
            self._order(words)
        elif isinstance(words, Edit | AskTensor | Record):
            self.requests.take(words)
        elif isinstance(words, Gather):
            with self.cond:
                earliest = self.control.rendezvous()
            self.send(Earliest(words.meeting, earliest))
        elif isinstance(words, Meet):
            with self.cond:
                self.control.meet(words.step, words.reason)
                self.cond.notify_all()
            self.push()

    def _order(self, order: Order) -> None:
        try:
            with self.cond:
                if self.requests.take_order(order):
                    return
                text = self.control.obey(order.command, now=time.monotonic())
                self.cond.notify_all()
        except ControlError as error:
            now = {"rev": self.control.rev, "phase": self.control.phase}
            self.requests.answer(order.id, error.code, str(error), now)
            return
        self.push()  # before the answer, so that whoever asked finds the new state when the answer comes
        self.requests.answer(order.id, result={"rev": self.control.rev, "text": text})

    def _link_changed(self, connected: bool) -> None:
        if connected:
            self._told_nodes = 0
            self._tell_initial()
            # Steps that ended between the introduction and its acceptance were told to nobody.
            with self._telling:
                self._told_rev = self.control.rev
                self.send(Stand(self.standing()))
        with self.cond:
            if not connected:
                self.control.coordinated = False
                if self.control.held or self.control.wish is not None:
                    self.control.release()
            self.cond.notify_all()

    # ── telling ──

    def _introduce(self) -> Introduce:
        directory = self.session.run_directory
        return Introduce(
            proto=LINK_PROTOCOL,
            run=directory.name if directory else f"pid-{os.getpid()}",
            directory=str(directory) if directory else "",
            rank=self.session.rank,
            world_size=self.world_size,
            host=socket.gethostname(),
            pid=os.getpid(),
            standing=self.standing(),
            command=self._command,
            started=time.time(),
            watchpoints=self.edits.views(),
        )

    def standing(self) -> Standing:
        with self.cond:
            control = self.control
            return Standing(
                phase=control.phase,
                rev=control.rev,
                step=control.step,
                place=None if control.spot is None or control.phase != "paused" else control.spot.view(),
                reason=control.reason,
                goal=control.goal_text(),
                granularity=control.granularity,
                queued=(*control.queued(), *self.requests.queued()),
                memory_bytes=self.session.ledger.bytes,
                memory_limit=self.session.ledger.limit_bytes,
                compiled=self.compiled,
            )

    def push(self) -> None:
        """Tell where we are, when it changed; and whether nodes are wanted."""
        self._refresh_wants()
        with self._telling:
            if self.control.rev != self._told_rev and self._linked():
                self._told_rev = self.control.rev
                self.send(Stand(self.standing(), self.edits.views() if self.control.phase == "paused" else ()))

    def _refresh_wants(self) -> None:
        self._set_wants(self.control.wants_nodes and not self._closed)

    def _set_wants(self, wanted: bool) -> None:
        if wanted != self._wanted_nodes:
            self._wanted_nodes = wanted
            self.on_wants_nodes(wanted)

    def _linked(self) -> bool:
        return self.link is not None and self.link.connected

    def send(self, words: Any) -> None:
        if self.link is not None:
            self.link.send(words)

    def note(self, level: Literal["info", "warning"], text: str) -> None:
        """For whoever is connected."""
        self.send(Note(level, text))
