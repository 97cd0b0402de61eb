"""Whether training goes on or waits: a state machine that knows neither threads nor sockets nor clocks.

      running ──pause──► pausing ──next node or boundary──► paused ──continue──► running
         │                                                   │  ▲
         │                       step, until, next, run_to   ▼  │ goal reached, or a hit
         └────────────────────────────────────────────────► stepping
      any ──terminate──► terminating ──► ended            any ──detach──► detached

Facts come in (a node was passed, a step ended, a command arrived) and a decision comes out. Every change that could
make somebody's command wrong raises `rev`; a command that carries an older one is refused.

With several ranks a pause must find all of them at the end of the same step, or one would wait inside a collective
for a peer that stands still. A rank that wants to pause therefore *asks*: every rank tells the earliest boundary it
can still stop at (`rendezvous`) and holds there, and all run on to the latest of those (`meet`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from misstep.control.goals import AtStep, Goal, NextNode, Soon, Spot, StepFacts, ToNode, Until, to_node
from misstep.core.address import Role
from misstep.errors import ControlError, StaleCommand
from misstep.protocol.messages import Command
from misstep.protocol.views import ControlPhase, Granularity, QueuedView, Reason
from misstep.sentences import control as texts
from misstep.sentences.words import PHASES, word

Decision = Literal["go", "wait", "ask", "stop", "detach"]
"""ask: wait until the hub has named the step at which all ranks meet."""


class Control:
    """The state of one rank. Its owner calls every method under one lock."""

    def __init__(self, *, step: int = 0, granularity: Granularity = "module") -> None:
        self.phase: ControlPhase = "running"
        self.rev = 1
        self.step = step
        """The last step that ended; the one under way is one more."""
        self.spot: Spot | None = None
        self.reason: Reason | None = None
        self.granularity: Granularity = granularity
        self.goal: Goal | None = None
        self.coordinated = False
        """Whether pauses that one rank decides alone must be agreed with others first."""
        self.wish: Reason | None = None
        self.held = False
        self.nearest: Callable[[str], str] = lambda node: ""
        """For a node that was never met: '; did you mean decoder.2?', and nothing for one that was."""
        self.compiled = False
        """A step is one piece of compiled code: a pause waits for its end."""
        self.queue: list[tuple[Command, float]] = []
        """Commands that wait until the present goal is reached, and when they were typed."""
        self._standing = False

    # ── what the training thread tells ──

    def starting(self, *, pause: bool) -> Decision:
        """Before the first step."""
        if pause:
            self._pause(Reason("start", texts.BEFORE_FIRST.of()))
        return self._decision()

    def at_node(self, spot: Spot) -> Decision:
        self.spot = spot
        if self.phase in ("terminating", "detached"):
            return self._decision()
        goal = self.goal
        if isinstance(goal, Soon) and not self.compiled:
            self._pause(Reason("user", texts.ON_REQUEST.of()))
        elif isinstance(goal, NextNode) and self._is_next(spot):
            self._reach(Reason("node", texts.NODE_RAN.of(node=spot.node, phase=word(PHASES, spot.phase))))
        elif isinstance(goal, ToNode) and goal.matches(spot):
            self._reach(Reason("node", texts.REACHED.of(goal=goal.said())))
        return self._decision()

    def step_boundary(self, facts: StepFacts, *, hit: Reason | None = None, now: float = 0.0) -> Decision:
        """A step ended; `hit` when a watchpoint that pauses tripped in it."""
        self.step = facts.step
        self.spot = None
        if self.phase in ("terminating", "detached"):
            return self._decision()
        goal, wish = self.goal, hit
        if wish is None and isinstance(goal, Until) and goal.holds(facts, now=now):
            wish = Reason("until", texts.HOLDS.of(condition=goal.text, step=facts.step))
        if isinstance(goal, AtStep) and facts.step >= goal.step:
            self._reach(
                hit or goal.reason or Reason("step", texts.STEP_ENDED.of(step=facts.step)), keep_queue=hit is None
            )
        elif wish is not None and (self.coordinated or self.held):
            self.wish = wish
            self._become("pausing")
        elif wish is not None:
            self._reach(wish, keep_queue=hit is None)
        elif isinstance(goal, Soon):
            self._pause(Reason("user", texts.ON_REQUEST.of()))
        elif isinstance(goal, ToNode) and facts.step >= goal.limit:
            near = self.nearest(goal.node)
            self._pause(Reason("step_end", texts.NOT_MET.of(node=goal.node, step=facts.step, nearest=near)))
        elif isinstance(goal, NextNode) and facts.step >= goal.limit:
            self._reach(Reason("step_end", texts.STEP_ENDED.of(step=facts.step)))
        return self._decision()

    @property
    def must_wait(self) -> bool:
        """True while the training thread has to stand still; once it may go, it goes."""
        if self._standing and not (self.phase == "paused" or self.held or self.wish is not None):
            self._standing = False
        return self._standing

    @property
    def wants_nodes(self) -> bool:
        """True while somebody needs to hear of every node."""
        if isinstance(self.goal, AtStep):
            # The last step before a pause is seen node by node, so that its tensors can be held for looking at.
            return self.step + 1 >= self.goal.step
        return isinstance(self.goal, Soon | NextNode | ToNode) or self.phase == "terminating"

    @property
    def walks(self) -> bool:
        """True while somebody goes from node to node."""
        return isinstance(self.goal, NextNode | ToNode)

    @property
    def present(self) -> int:
        """The step training stands in: the one that just ended, or the one under way."""
        return self.step if self.spot is None else self.step + 1

    def step_of(self, role: Role) -> int:
        """The step whose values a tensor of this role has now: until the optimizer ran, weights are the old ones."""
        updated = self.spot is None or (self.spot.phase == "optimizer" and self.spot.when == "after")
        return self.present if updated or role not in ("param", "buffer") else self.step

    # ── what a client, through the hub, asks ──

    def obey(self, command: Command, *, now: float = 0.0) -> str:
        """Carry a command out, or queue it while training is on its way elsewhere; a sentence about it comes back."""
        self.check(command)
        if command.op == "granularity":
            self.granularity = command.granularity or "module"
            self.rev += 1
            # A step is watched as closely as it was when it began.
            since = texts.NODES_ARE if self.spot is None else texts.NODES_WILL_BE
            return since.of(kind=texts.KINDS[self.granularity])
        if command.op == "pause":
            return self._ask_pause()
        if command.op in ("continue", "terminate", "detach"):
            return self._leave(command.op)
        goal = self._goal(command, now=now)
        if self.phase in ("stepping", "pausing"):
            if len(self.queue) >= 100:
                raise ControlError(texts.QUEUE_FULL.of(), code="denied")
            self.queue.append((command, now))
            self.rev += 1
            return texts.QUEUED.of(goal=goal.said())
        self._head_for(goal)
        return texts.ON_THE_WAY.of(goal=goal.said())

    def rendezvous(self) -> int:
        """The earliest boundary this rank can still stop at. It holds there until `meet` names the step."""
        if self.phase in ("terminating", "detached", "ended"):
            return self.step
        here = self._at_boundary
        if not (here and self.phase == "paused"):
            self.held = True
        return self.step if here else self.step + 1

    def meet(self, step: int, reason: Reason) -> None:
        """All ranks pause at the end of this step."""
        here = self._at_boundary
        self.held = False
        own, self.wish = self.wish, None
        if self.phase in ("terminating", "detached", "ended"):
            return
        if here and self.step >= step:
            if self.phase != "paused":
                self._pause(own or reason)
            return
        self.queue.clear()
        self.goal = AtStep(step, own or reason)
        self._become("pausing")

    def release(self) -> None:
        """Nobody will name a meeting step (the hub is lost): a wish is fulfilled alone, a hold is let go."""
        self.held = False
        own, self.wish = self.wish, None
        if own is not None:
            self._pause(own)

    def go_on(self, text: str) -> None:
        """Continue without having been told to: the debugger is gone."""
        if self.phase in ("paused", "pausing", "stepping"):
            self._leave("continue")
            self.reason = Reason("end", text)

    def end(self, text: str = "") -> None:
        if self.phase not in ("ended", "detached"):
            self.goal, self.wish, self.held = None, None, False
            self.queue.clear()
            self.reason = Reason("end", text)
            self._become("ended")

    def goal_text(self) -> str:
        return "" if self.goal is None else self.goal.said()

    def queued(self) -> tuple[QueuedView, ...]:
        return tuple(QueuedView(command.id, command.op, _text(command)) for command, _ in self.queue)

    def check(self, command: Command) -> None:
        """Raise when the sender saw another state than this, or training is over."""
        if command.rev is not None and command.rev != self.rev:
            state = texts.STATES[self.phase]
            raise StaleCommand(texts.STALE.of(now=self.rev, yours=command.rev, state=state))
        if self.phase in ("ended", "detached", "terminating"):
            raise ControlError(
                texts.TRAINING_IS_OVER.of(op=command.op, state=texts.STATES[self.phase]), code="not_running"
            )

    # ── inside ──

    def _ask_pause(self) -> str:
        if self.phase == "paused":
            raise ControlError(texts.ALREADY_PAUSED.of(), code="not_running")
        if self.phase != "pausing":
            self.queue.clear()
            self.goal = Soon()
            self._become("pausing")
        return texts.PAUSING_AT_STEP.of() if self.compiled else texts.PAUSING_AT_NODE.of()

    def _leave(self, op: str) -> str:
        if op == "continue" and self.phase == "running":
            raise ControlError(texts.ALREADY_RUNNING.of(), code="not_paused")
        self.goal, self.reason, self.wish, self.held = None, None, None, False
        self.queue.clear()
        if op == "continue":
            self._become("running")
            return texts.RUNNING.of()
        self._become("terminating" if op == "terminate" else "detached")
        return texts.ENDING.of() if op == "terminate" else texts.DETACHING.of()

    def _goal(self, command: Command, *, now: float) -> Goal:
        if command.op == "step":
            if not 1 <= command.count < 2**31:
                raise ControlError(texts.STEP_COUNT.of(count=command.count), code="bad_request")
            return AtStep(self.step + command.count)
        if command.op == "until":
            return Until(command.condition, now=now)
        if command.op in ("next", "pynative"):
            return NextNode(self.step + 1, pynative=command.op == "pynative")
        if command.op == "run_to":
            return to_node(command, limit=self.step + 1)
        raise ControlError(texts.UNSUPPORTED.of(op=command.op), code="unsupported")

    def _head_for(self, goal: Goal) -> None:
        self.goal, self.reason = goal, None
        self._become("stepping")

    def _reach(self, reason: Reason, *, keep_queue: bool = True) -> None:
        """The goal is reached: the next queued command takes over, or training pauses."""
        if keep_queue and self.queue:
            command, typed = self.queue.pop(0)
            self._head_for(self._goal(command, now=typed))
            return
        self._pause(reason)

    def _pause(self, reason: Reason) -> None:
        self.goal, self.reason, self.wish = None, reason, None
        self.queue.clear()
        self._become("paused")

    def _become(self, phase: ControlPhase) -> None:
        self.phase = phase
        self.rev += 1

    def _is_next(self, spot: Spot) -> bool:
        """A node that has run and has something to show: its output, or in backward the gradients it made."""
        return spot.when == "after" and (spot.kind != "operator" or self.granularity == "operator")

    @property
    def _at_boundary(self) -> bool:
        """Whether the training thread stands at the end of a step, and not inside one."""
        return self.must_wait and self.spot is None

    def _decision(self) -> Decision:
        """The answer to the training thread, which stands still from now on unless it is told to go."""
        if self.phase == "terminating":
            return "stop"
        if self.phase == "detached":
            return "detach"
        if self.phase == "paused":
            self._standing = True
            return "wait"
        if self.spot is None and (self.held or self.wish is not None):
            self._standing = True
            return "ask"
        self._standing = False
        return "go"


def _text(command: Command) -> str:
    detail = {"step": str(command.count), "until": command.condition, "run_to": command.node}.get(command.op, "")
    return f"{command.op} {detail}".strip()
