"""The debugger inside one training process: what an adapter sees becomes facts in the run directory.

    adapter ─ rows ─► frame ─ end of step ─► watchpoints ─► hits ─► verdict ─► run directory
                                                              └─► pause, dump, stop

A session writes nothing until training really begins, so a process that only imports torch (a launcher, a worker)
leaves no trace. Our own failures are counted, shown once, and never reach the user's code.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from misstep.adapters.base import Adapter, Place, UncompiledRuns, Update
from misstep.adapters.registry import adapter_for
from misstep.adapters.step.frame import Catalog, Frame
from misstep.capture.crash.recorder import Recorder, begin_recorder
from misstep.capture.ending import Ending
from misstep.capture.extensions import Extensions
from misstep.capture.facts import FactsFile
from misstep.capture.keep.keeper import Keeper
from misstep.capture.keep.ledger import ledger_of
from misstep.capture.keep.previous import ReplayWants
from misstep.capture.live.entry import LiveEntry
from misstep.capture.replay.replays import Replays
from misstep.capture.step.between import Between
from misstep.capture.step.closeness import CLOSE, Closeness
from misstep.capture.step.conclude import Conclusion
from misstep.capture.step.judge import Judge, gradient_norm
from misstep.capture.step.lookup import live_tensor
from misstep.capture.step.outcome import StepOutcome
from misstep.capture.step.plan import Plan
from misstep.capture.step.record import begin_record
from misstep.capture.step.subscriptions import Subscriptions
from misstep.capture.trace import StepTrace
from misstep.capture.troubles import Troubles
from misstep.core.address import Address
from misstep.core.dumps import DumpSpec, asks_for_dump, parse_dump
from misstep.core.finding import Verdict
from misstep.core.levels import Level
from misstep.core.run import Step
from misstep.core.stats import Array
from misstep.core.watching.evaluate import DryRun
from misstep.core.watching.watch import Action, Hit, Watchpoint
from misstep.core.watching.watchtext import watchpoint
from misstep.settings import Settings
from misstep.store.writing.writer import EndReason, RunWriter

if TYPE_CHECKING:
    from misstep.capture.keep.dump import Dumper
    from misstep.capture.live.controller import Controller


class Session:
    """Watches one process; use it as a context manager, or let it end with the process."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings.load()
        self.catalog = Catalog()
        self.frame = Frame()
        self.step = 1
        self.stepping = False
        self.shows_loss = True
        self.rank = 0
        self.adapters: list[Adapter] = []
        self.writer: RunWriter | None = None
        self.first_verdict: Verdict | None = None
        self._troubles = Troubles(self)
        self._ending = Ending(self)
        self.between_steps = Between(self).evaluated
        self.plan = Plan(level=self.settings.level, steps=self.settings.steps, budget=self.settings.budget)
        self.ledger = ledger_of(self.settings.memory_mb)
        """Every tensor that is held, whoever holds it."""
        self.judge = Judge(self.settings, self.catalog, self._array, self.ledger)
        self.evaluator, self.evidence = self.judge.evaluator, self.judge.evidence
        self.on_step: list[Callable[[StepOutcome], None]] = []
        """Called with what became of every finished step (the recorder is one)."""
        self.extensions = Extensions(self)
        """What the frameworks in use add."""
        self.entry = LiveEntry(self)
        """Where the live debugger comes in."""
        self.dumper: Dumper | None = None
        """Keeps whole tensors; there once somebody asks for some."""
        self.keeper = Keeper(self, self._array)
        """What somebody will want to see of this step after the framework let go of it."""
        self.replays = Replays(self)
        """Runs a bad step again."""
        self.recorder: Recorder | None = None
        """The flight recorder; there once training began."""
        self.initial_frame: Frame | None = None
        """The weights before the first step, while somebody may look at them."""
        self.facts = FactsFile(self)
        """How the program trains."""
        self.trace = StepTrace(self)
        self._conclusion = Conclusion(self)
        self.subscriptions = Subscriptions(self)
        self.wants = self.subscriptions.wants
        self._closeness = Closeness(self)
        self._step_began = time.perf_counter()
        self.frame.begin(1)
        self.catalog.on_tensor = self.subscriptions.tensor_added
        if asks_for_dump(self.settings, self.evaluator.watchpoints):
            self._dumping()

    # ── what a user calls ─────────────────────────────────────────────────────────────────────────────────────

    def use(self, adapter: Adapter) -> Session:
        """Attach a framework; training is noticed by itself."""
        if adapter not in self.adapters:
            self.adapters.append(adapter)
            self.extensions.add(adapter)
            adapter.attach(self)
            if self._closeness.wanted(1) == "op":
                self._closeness.set(adapter, "op")
            if self.recorder is not None:
                self.recorder.witness(adapter)
        return self

    def watch(
        self,
        condition: str,
        *,
        on: str | None = None,
        then: Action = "note",
        limit: int | None = None,
        **parameters: Any,
    ) -> Watchpoint:
        """Ask a question of every matching tensor, from the next step on: `watch("max > 6e4", on="*:output")`."""
        return self.add_watchpoint(watchpoint(condition, on=on, then=then, limit=limit, **parameters))

    def dump(self, pattern: str, *, steps: str = "") -> DumpSpec:
        """Keep whole tensors, from the next step on; every step unless some are named.

        >>> session.dump("encoder.*:output", steps="100:110")
        >>> session.dump("decoder/*@5")             # every operator of that module, at step 5
        """
        return self.add_dump(parse_dump(pattern, steps=steps))

    def add_dump(self, spec: DumpSpec) -> DumpSpec:
        added = self._dumping().add(spec)
        self.subscriptions.stale = True
        if self.writer is not None:
            self.writer.event("dump", **self._dumping().facts(added))
        return added

    def end_dump(self, id: int) -> None:
        """Keep nothing more for this dump; what was kept stays."""
        if self.dumper is not None:
            self.dumper.remove(id)
            self.subscriptions.stale = True

    def add_watchpoint(self, watch: Watchpoint) -> Watchpoint:
        added = self.evaluator.add(watch)
        self.subscriptions.stale = True
        if added.then == "dump":
            self._dumping()
        if added.then == "pause" and self.writer is not None:
            self.entry.open()
        if self.writer is not None:
            self.writer.watchpoint("add" if watch.id == 0 else "update", added)
        return added

    def delete_watchpoint(self, id: int) -> None:
        for watch in self.evaluator.watchpoints:
            if watch.id == id and self.writer is not None:
                self.writer.watchpoint("delete", watch)
        self.evaluator.remove(id)
        self.subscriptions.stale = True

    @property
    def watchpoints(self) -> tuple[Watchpoint, ...]:
        return self.evaluator.watchpoints

    def evaluate_now(self) -> list[Hit]:
        """Every watchpoint against the tensors that are there now."""
        return self.judge.hits_now(self._present(), self.rank)

    def dry_run(self, watch: Watchpoint) -> DryRun:
        """What a watchpoint would say of the tensors that are there now; nothing is recorded."""
        return self.judge.dry_run(watch, self._present(), self.rank)

    @property
    def controller(self) -> Controller | None:
        """The live debugger's hand; there once somebody came."""
        return self.entry.controller

    @property
    def modes(self) -> UncompiledRuns | None:
        return self.extensions.modes

    @property
    def run_directory(self) -> Path | None:
        return None if self.writer is None else self.writer.directory

    def tensor(self, address: str | Address) -> Array:
        """The values of a tensor of the step under way, without a copy where possible."""
        wanted = Address.parse(address) if isinstance(address, str) else address
        return live_tensor(wanted, self.catalog, self.frame, self.adapters, self.keeper.values)

    def detach(self) -> None:
        """Take misstep out of the program; what was recorded stays."""
        self.end("detached")

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, SystemExit):
            self.failed(error)
            self.end("failed")
        else:
            self.end("finished")

    def failed(self, error: BaseException) -> None:
        """The user's program ends with this exception."""
        self._ending.failed(error)

    def exiting(self, code: object, frame: FrameType | None) -> None:
        """The user's program calls sys.exit."""
        self._ending.exiting(code, frame)

    def end(self, reason: EndReason = "finished", exit_code: int | None = None) -> None:
        """Write the end and take the hooks out; safe to call twice."""
        self._ending.end(reason, exit_code)

    @property
    def ended(self) -> bool:
        return self._ending.over

    # ── what an adapter tells (Listener) ──────────────────────────────────────────────────────────────────────

    def going_live(self, adapter: Adapter) -> None:
        if self.writer is None:
            self.rank, world = adapter.rank()
            self.writer, info = begin_record(self.settings, self.adapters, rank=self.rank, world_size=world)
            self.rank = self.writer.rank
            self.extensions.run_began()
            for watch in self.evaluator.watchpoints:
                self.writer.watchpoint("add", watch)
            if self.dumper is not None:
                for spec in self.dumper.specs.values():
                    self.writer.event("dump", **self.dumper.facts(spec))
            self.entry.going_live(world_size=world, command=info.command)
            self.recorder = begin_recorder(self)
            if self.recorder is not None:
                self.on_step.append(self.recorder.step_done)
        self.subscriptions.refresh(self.step)
        self.replays.going_live(adapter)
        self._closeness.set(adapter, self._closeness.wanted(self.step))
        if self._closeness.level not in CLOSE:
            self.entry.first_pause()
        self._step_began = time.perf_counter()

    def initial(self, adapter: Adapter, frame: Frame) -> None:
        self.subscriptions.refresh(self.step)
        head, summary = frame.finish()
        for row, number in enumerate(frame.tensors):
            tensor = frame.refs[row]() if frame.refs[row] is not None else None
            if tensor is not None:
                self.evidence.remember(number, tensor)
        if self.dumper is not None:
            self.dumper.initial(frame)
        self._conclusion.conclude(Step(0, captured=self._closeness.level, time=time.time()), frame, head, summary)
        self.initial_frame = frame
        self.entry.first_pause()
        self.initial_frame = None
        self._step_began = time.perf_counter()

    def at_node(self, place: Place) -> None:
        if self.controller is not None:
            self.controller.at_node(place)

    def before_update(self, adapter: Adapter) -> None:
        """Gradients are complete: the last moment at which a bad step can be run again as it was."""
        self.replays.before_update(adapter)

    def after_update(self, adapter: Adapter) -> None:
        """Weights have moved."""
        self.replays.after_update(adapter)

    def step_done(self, adapter: Adapter, update: Update) -> None:
        began = time.perf_counter()
        self.facts.step_done(adapter, update, self.step)
        self.trace.step_done(adapter, update, self.step)
        own = adapter.take_cost()
        total, level = began - self._step_began, self._closeness.level
        said = self.plan.spent(self.step, level, own=own, total=total)
        if not said and not self.frame.tensors and self._conclusion.passes_by(update, level, total, began):
            self.step += 1
            if self.entry.next_look <= began:
                self.entry.look(began)
            self._next_step(began)
            return
        self._ending.in_a_step = True
        try:
            self._end_step(adapter, update, began, total, said)
        finally:
            self._ending.in_a_step = False

    def _end_step(self, adapter: Adapter, update: Update, began: float, total: float, said: str) -> None:
        level = self._closeness.level
        head, summary = self.frame.finish()
        step = Step(
            number=self.step,
            loss=update.loss,
            seconds=total,
            learning_rate=update.learning_rate,
            loss_scale=update.loss_scale,
            overflow=update.overflow,
            left=update.left,
            overhead=self.plan.overhead,
            captured=level,
            losses=update.losses,
            gradient_norm=gradient_norm(self.catalog.graph.tensors, head, summary) if level in CLOSE else None,
            optimizer=update.optimizer,
            time=time.time(),
        )
        rerun = self.replays.take()
        if update.overflow:
            outcome = self._conclusion.skip(step, self.frame, head, summary, adapter)
        else:
            outcome = self._conclusion.conclude(step, self.frame, head, summary, rerun)
            self.step += 1
        outcome = outcome.with_hit(self.replays.step_done(step))
        if said and self.writer is not None:
            self.writer.event("level", text=said, interval=self.plan.interval)
        waited = time.perf_counter()
        self.entry.look(waited)
        if self.controller is not None and not self.ended:
            self.controller.step_boundary(outcome)
        waited = time.perf_counter() - waited
        if self.ended:
            return
        # What this call cost belongs to the next step's account; what a person waited does not.
        self._next_step(began + waited)

    def _next_step(self, began: float) -> None:
        self.frame.begin(self.step)
        self.evidence.begin_step()
        self.keeper.let_go()
        if self.dumper is not None:
            self.dumper.begin_step()
        if self.subscriptions.stale or self.dumper is not None:
            self.subscriptions.refresh(self.step)
        self.shows_loss = self._closeness.shows_loss(self.step)
        self._closeness.begin_step(self.step)
        self._step_began = began

    def exception(self, adapter: Adapter, error: BaseException, where: str) -> None:
        if isinstance(error, StopIteration | GeneratorExit):
            return
        self._ending.tell_exception(error, where)

    def trouble(self, where: str, error: BaseException) -> None:
        self._troubles.tell(where, error)

    @property
    def troubles(self) -> dict[str, int]:
        """How often something of ours failed, by place."""
        return self._troubles.counts

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def expects_capsule(self) -> bool:
        """Whether training begins with a step out of a file: an adapter must be live before it calls anything."""
        return bool(self.settings.capsule)

    @property
    def captured(self) -> Level:
        """The level at which the step under way is watched."""
        return self._closeness.level

    def _array(self, tensor: Any) -> Array:
        return adapter_for(tensor).array(tensor)

    def _dumping(self) -> Dumper:
        if self.dumper is None:
            # Imported here: a training that dumps nothing does not pay for it.
            from misstep.capture.keep.dump import dumper_for

            self.dumper = dumper_for(self, self._array)
            self.subscriptions.stale = True
        return self.dumper

    def replay_wants(self, frame: Frame) -> ReplayWants:
        """Who is to be called when a tensor passes in a replay of the step, which fills this frame."""
        return self.subscriptions.in_replay(frame)

    def _present(self) -> Frame:
        """The rows there are to look at: of the step under way, or the initial weights before the first."""
        return self.initial_frame if self.initial_frame is not None else self.frame
