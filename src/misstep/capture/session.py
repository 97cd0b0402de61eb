"""The debugger inside one training process: what an adapter sees becomes facts in the run directory.

    adapter ─ rows ─► frame ─ end of step ─► watchpoints ─► hits ─► verdict ─► run directory
                                                              └─► pause, dump, stop

A session writes nothing until training really begins, so a process that only imports torch (a launcher, a worker)
leaves no trace. Our own failures are counted, shown once, and never reach the user's code.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from misstep.adapters.base import LEVELS, Adapter, Level, Place, TrainingStopped, Update, adapter_for
from misstep.adapters.frame import Catalog, Frame
from misstep.capture.dumpspec import DumpSpec, asks_for_dump, parse_dump
from misstep.capture.evidence import EvidenceRoom, ReplayWants, RowEvidence, both
from misstep.capture.facts import run_info
from misstep.capture.keepsakes import Keepsakes
from misstep.capture.plan import Plan
from misstep.capture.present import live_tensor
from misstep.capture.recorder import Recorder, begin_recorder
from misstep.capture.replay import Replays
from misstep.capture.verdict import find_verdict
from misstep.core.address import Address
from misstep.core.evaluate import DryRun, Evaluator
from misstep.core.finding import Verdict
from misstep.core.graph import Edge, Node, TensorKey
from misstep.core.recommend import recommended
from misstep.core.run import HUB_FILE, Step
from misstep.core.stats import DTYPE_NAMES, Array, TensorStats
from misstep.core.watch import Action, Hit, Watchpoint
from misstep.core.watchtext import parse_watch, watchpoint
from misstep.settings import Settings
from misstep.store.runs import new_run_directory
from misstep.store.writer import RunWriter

if TYPE_CHECKING:
    from misstep.capture.controller import Controller
    from misstep.capture.dump import Dumper

_MOST_TROUBLES_TOLD = 3
"""Kinds of own failures shown in the terminal; one fault of ours often shows in many places."""


class Session:
    """Watches one process; use it as a context manager, or let it end with the process."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings.load()
        self.catalog = Catalog()
        self.frame = Frame()
        self.wants: dict[int, Callable[[int, Any], None]] = {}
        self.step = 1
        self.stepping = False
        self.rank = 0
        self.adapters: list[Adapter] = []
        self.writer: RunWriter | None = None
        self.hits: list[Hit] = []
        """Of the last finished step."""
        self.first_verdict: Verdict | None = None
        self.troubles: dict[str, int] = {}
        self.ended = False
        self.plan = Plan(level=self.settings.level, steps=self.settings.steps, budget=self.settings.budget)
        self.evaluator = Evaluator(self._watchpoints(), most_hits=self.settings.hits_per_watchpoint)
        self.evidence = EvidenceRoom(self.evaluator, limit_mb=self.settings.memory_mb / 2, array=self._array)
        self.on_step: list[Callable[[Step, Array, Array], None]] = []
        """Called with the facts and rows of every finished step (the recorder is one)."""
        self.explainers: list[Callable[[BaseException], dict[str, Any]]] = []
        """Asked for more facts about an exception of the user's program; they may write findings."""
        self.controller: Controller | None = None
        """The live debugger's hand; there once training began."""
        self.dumper: Dumper | None = None
        """Keeps whole tensors; there once somebody asks for some."""
        self.keepsakes = Keepsakes(self, self._array)
        """What somebody will want to see of this step after the framework let go of it."""
        self.replays = Replays(self)
        """Runs a bad step again."""
        self.recorder: Recorder | None = None
        """The flight recorder; there once training began."""
        self._wants_stale = True
        self._level: Level = "off"
        self._initial_frame: Frame | None = None
        self._world_size = 1
        self._command: tuple[str, ...] = ()
        self._next_look = 0.0
        self._step_began = time.perf_counter()
        self._pid = os.getpid()
        self._refused_told = 0
        self.frame.begin(1)
        self.catalog.on_tensor = self._tensor_added
        if asks_for_dump(self.settings, self.evaluator.watchpoints):
            self._dumping()

    # ── what a user calls ─────────────────────────────────────────────────────────────────────────────────────

    def use(self, adapter: Adapter) -> Session:
        """Attach a framework; training is noticed by itself."""
        if adapter not in self.adapters:
            self.adapters.append(adapter)
            adapter.attach(self)
            if self._level_for(1) == "op":
                self._set_level(adapter, "op")
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
        """Ask a question of every matching tensor, from the next step on.

        >>> session.watch("gradient_vanishing", on="encoder.*:grad", abs_mean_lt=1e-9)
        >>> session.watch("max > 6e4", on="*:output", then="dump")
        """
        return self.add_watchpoint(watchpoint(condition, on=on, then=then, limit=limit, **parameters))

    def dump(self, pattern: str, *, steps: str = "") -> DumpSpec:
        """Keep whole tensors, from the next step on; every step unless some are named.

        >>> session.dump("encoder.*:output", steps="100:110")
        >>> session.dump("decoder/*@5")             # every operator of that module, at step 5
        """
        return self.add_dump(parse_dump(pattern, steps=steps))

    def add_dump(self, spec: DumpSpec) -> DumpSpec:
        added = self._dumping().add(spec)
        self._wants_stale = True
        if self.writer is not None:
            self.writer.event("dump", **self._dumping().facts(added))
        return added

    def end_dump(self, id: int) -> None:
        """Keep nothing more for this dump; what was kept stays."""
        if self.dumper is not None:
            self.dumper.remove(id)
            self._wants_stale = True

    def add_watchpoint(self, watch: Watchpoint) -> Watchpoint:
        added = self.evaluator.add(watch)
        self._wants_stale = True
        if added.then == "dump":
            self._dumping()
        if added.then == "pause" and self.controller is None and self.writer is not None:
            self._connect()
        if self.writer is not None:
            self.writer.watchpoint("add" if watch.id == 0 else "update", added)
        return added

    def delete_watchpoint(self, id: int) -> None:
        for watch in self.evaluator.watchpoints:
            if watch.id == id and self.writer is not None:
                self.writer.watchpoint("delete", watch)
        self.evaluator.remove(id)
        self._wants_stale = True

    @property
    def watchpoints(self) -> tuple[Watchpoint, ...]:
        return self.evaluator.watchpoints

    def evaluate_now(self) -> list[Hit]:
        """Every watchpoint against the tensors that are there now."""
        frame = self._present()
        head, summary = frame.finish()
        return self.evaluator.evaluate(
            frame.step, self.rank, head, summary, self._evidence_for(head, summary, frame.step)
        )

    def dry_run(self, watch: Watchpoint) -> DryRun:
        """What a watchpoint would say of the tensors that are there now; nothing is recorded."""
        frame = self._present()
        head, summary = frame.finish()
        evidence = self._evidence_for(head, summary, frame.step)
        return self.evaluator.would_hit(watch, head, summary, evidence, rank=self.rank, step=frame.step)

    @property
    def run_directory(self) -> Path | None:
        return None if self.writer is None else self.writer.directory

    def tensor(self, address: str | Address) -> Array:
        """The values of a tensor of the step under way, without a copy where possible."""
        wanted = Address.parse(address) if isinstance(address, str) else address
        return live_tensor(wanted, self.catalog, self.frame, self.adapters, self.keepsakes.values)

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
        if not getattr(error, "__misstep_told__", False):
            self._tell_exception(error, "")
        if self.recorder is not None:
            self.recorder.failed(error)

    def exiting(self, code: object, frame: FrameType | None) -> None:
        """The user's program calls sys.exit."""
        if self.recorder is not None and not self.ended:
            self.recorder.exiting(code, frame)

    def end(self, reason: str = "finished", exit_code: int | None = None) -> None:
        """Write the end and take the hooks out; safe to call twice."""
        if self.ended or os.getpid() != self._pid:
            return
        self.ended = True
        if self.controller is not None:
            self.controller.close(reason, exit_code)
        for adapter in self.adapters:
            try:
                adapter.detach()
            except Exception as error:
                self.trouble("at the end", error)
        if self.dumper is not None:
            self.dumper.close()
        if self.writer is not None:
            self._write_news()
            for where, count in self.troubles.items():
                self.writer.event("warning", text=f"misstep itself failed {count} times {where}")
            self.writer.end(reason, exit_code)  # type: ignore[arg-type]
            self.writer.close()
        if self.recorder is not None:
            self.recorder.close(reason, exit_code)

    # ── what an adapter tells (Listener) ──────────────────────────────────────────────────────────────────────

    def going_live(self, adapter: Adapter) -> None:
        if self.writer is None:
            self.rank, world = adapter.rank()
            directory = new_run_directory(self.settings.dir, self.settings.name)
            info = run_info(directory, self.settings, self.adapters, world_size=world)
            self.writer = RunWriter(
                directory, self.rank, info, stats_mb=self.settings.stats_mb, pack_mb=self.settings.pack_mb
            )
            self.rank = self.writer.rank
            for watch in self.evaluator.watchpoints:
                self.writer.watchpoint("add", watch)
            if self.dumper is not None:
                for spec in self.dumper.specs.values():
                    self.writer.event("dump", **self.dumper.facts(spec))
            self._world_size, self._command = world, info.command
            pausing = any(watch.then == "pause" for watch in self.evaluator.watchpoints)
            if self.settings.hub or self.settings.pause_at_start or pausing:
                self._connect()
            self.recorder = begin_recorder(self)
            if self.recorder is not None:
                self.on_step.append(self.recorder.step_done)
        self._refresh_wants()
        self.replays.going_live(adapter)
        self._set_level(adapter, self._level_for(self.step))
        if self._level not in ("module", "op"):
            self._first_pause()
        self._step_began = time.perf_counter()

    def initial(self, adapter: Adapter, frame: Frame) -> None:
        self._refresh_wants()
        head, summary = frame.finish()
        for row, number in enumerate(frame.tensors):
            tensor = frame.refs[row]() if frame.refs[row] is not None else None
            if tensor is not None:
                self.evidence.remember(number, tensor)
        if self.dumper is not None:
            self.dumper.initial(frame)
        self._judge(Step(0, captured=self._level, time=time.time()), head, summary, frame)
        self._initial_frame = frame
        self._first_pause()
        self._initial_frame = None
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
        own = adapter.take_cost()
        total = began - self._step_began
        level = self._level
        said = self.plan.spent(self.step, level, own=own, total=total)
        head, summary = self.frame.finish()
        step = Step(
            number=self.step,
            loss=update.loss,
            seconds=total,
            learning_rate=update.learning_rate,
            loss_scale=update.loss_scale,
            overflow=update.overflow,
            overhead=self.plan.overhead,
            captured=level,
            losses=update.losses,
            gradient_norm=self._gradient_norm(head, summary),
            optimizer=update.optimizer,
            time=time.time(),
        )
        if update.overflow:
            self._skip(step, adapter)
        else:
            self._judge(step, head, summary, self.frame)
            self.step += 1
        self.replays.step_done(step)
        if said and self.writer is not None:
            self.writer.event("level", text=said, interval=self.plan.interval)
        waited = time.perf_counter()
        self._look_for_debugger()
        if self.controller is not None and not self.ended:
            self.controller.step_boundary(step, () if update.overflow else self.hits)
        waited = time.perf_counter() - waited
        if self.ended:
            return
        self.frame.begin(self.step)
        self.evidence.begin_step()
        self.keepsakes.let_go()
        if self.dumper is not None:
            self.dumper.begin_step()
        self._refresh_wants()
        wanted = self._level_for(self.step)
        if wanted != self._level:
            for each in self.adapters:
                self._set_level(each, wanted)
        # What this call cost belongs to the next step's account; what a person waited does not.
        self._step_began = began + waited

    def exception(self, adapter: Adapter, error: BaseException, where: str) -> None:
        if isinstance(error, StopIteration | GeneratorExit):
            return
        self._tell_exception(error, where)

    def trouble(self, where: str, error: BaseException) -> None:
        if self.settings.strict:
            raise error
        count = self.troubles[where] = self.troubles.get(where, 0) + 1
        if count == 1 and len(self.troubles) <= _MOST_TROUBLES_TOLD:
            print(
                f"misstep: an error of its own {where}, training goes on: {type(error).__name__}: {error}"
                "  (MISSTEP_STRICT=1 shows the traceback)",
                file=sys.stderr,
            )
            if self.writer is not None:
                self.writer.event("warning", text=f"{where}: {type(error).__name__}: {error}")

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────

    def _watchpoints(self) -> list[Watchpoint]:
        watchpoints = list(recommended(cheap=True)) if self.settings.recommended else []
        on_nan = self.settings.on_nan
        if on_nan != "note":
            watchpoints = [
                replace(watch, then=on_nan) if watch.condition == "tensor_overflow" else watch for watch in watchpoints
            ]
        for text in filter(str.strip, self.settings.watch.split(";")):
            watch = parse_watch(text)
            if watch.then == "note" and " then " not in text:
                watch = replace(watch, then=self.settings.then)
            watchpoints.append(watch)
        return [replace(watch, id=0) for watch in watchpoints]

    def _set_level(self, adapter: Adapter, level: Level) -> None:
        adapter.set_level(level)
        self._level = level
        self.replays.arm(adapter, level)

    @property
    def captured(self) -> Level:
        """The level at which the step under way is watched."""
        return self._level

    def _array(self, tensor: Any) -> Array:
        return adapter_for(tensor).array(tensor)

    def _tensor_added(self, number: int) -> None:
        address = self.catalog.address(number)
        node = self.catalog.graph.nodes[self.catalog.graph.tensors[number].node]
        self.evaluator.tensor_added(number, address, node.type)
        self._wants_stale = True
        wants = [self.keepsakes.tensor_added(number)]
        if self.dumper is not None:
            wants.append(self.dumper.tensor_added(number, address, node.type))
        for want in filter(None, wants):
            self.wants[number] = both(self.wants[number], want) if number in self.wants else want

    def _refresh_wants(self) -> None:
        """Who is to be called when which tensor passes in the next step."""
        dumper, stale, self._wants_stale = self.dumper, self._wants_stale, False
        if dumper is not None:
            watching = [watch.id for watch in self.evaluator.watchpoints if watch.then == "dump" and watch.enabled]
            stale = dumper.changed(self.step, watching, stale=stale)
        if stale:
            self.wants.clear()
            self.wants.update(self.evidence.wants())
            for number, want in self.keepsakes.wants().items():
                self.wants[number] = both(self.wants[number], want) if number in self.wants else want
            for number, want in dumper.wants(self.step).items() if dumper is not None else ():
                self.wants[number] = both(self.wants[number], want) if number in self.wants else want

    def _dumping(self) -> Dumper:
        if self.dumper is None:
            # Imported here: a training that dumps nothing does not pay for it.
            from misstep.capture.dump import dumper_for

            self.dumper = dumper_for(self, self._array)
            self._wants_stale = True
        return self.dumper

    def replay_wants(self, frame: Frame) -> ReplayWants:
        """Who is to be called when a tensor passes in a replay of the step, which fills this frame."""
        earlier: dict[int, Any] = {}
        keepsakes = self.keepsakes.replay_want(frame, earlier)
        askers = (keepsakes,) if self.dumper is None else (keepsakes, self.dumper.replay_want)
        return ReplayWants(askers, earlier)

    def _level_for(self, step: int) -> Level:
        """As the plan says, and closer where a dump, or somebody who walks from node to node, needs it."""
        asked: list[Level] = [self.plan.level_for(step)]
        if self.dumper is not None:
            asked.append(self.dumper.level_for(step) or "off")
        if self.stepping and self.controller is not None:
            asked.append("op" if self.controller.control.granularity == "operator" else "module")
        closest = max(asked, key=LEVELS.index)
        if closest != asked[0]:
            self.plan.force(step, closest)
        return closest

    def _judge(self, step: Step, head: Array, summary: Array, frame: Frame) -> None:
        """Watchpoints, verdict and record of a finished step."""
        evidence = self._evidence_for(head, summary, step.number)
        self.hits = hits = self.evaluator.evaluate(step.number, self.rank, head, summary, evidence)
        verdict = None
        if self.first_verdict is None and any(hit.stats is not None and not hit.stats.finite for hit in hits):
            verdict = self.replays.complete(find_verdict(self.catalog, frame, head, summary, rank=self.rank))
        if self.writer is not None:
            self._write_news()
            keep = bool(hits) or (self.dumper is not None and self.dumper.keeps_rows(step.number))
            self.writer.step(step, head, summary, keep=keep)
            for hit in hits:
                self.writer.hit(hit)
            if verdict is not None:
                self.writer.verdict(verdict)
            if len(self.evidence.refused) > self._refused_told:
                self._refused_told = len(self.evidence.refused)
                self.writer.event(
                    "warning",
                    text=f"no room for the previous value of {self._refused_told} tensors within"
                    f" memory_mb={self.settings.memory_mb}; their change is not watched",
                )
            self.writer.flush()
        if verdict is not None:
            self.first_verdict = verdict
        for listener in self.on_step:
            listener(step, head, summary)
        self._act(hits, frame, verdict)

    def _evidence_for(self, head: Array, summary: Array, step: int) -> Callable[[int], RowEvidence]:
        def evidence(row: int) -> RowEvidence:
            shape = self.catalog.graph.shapes[int(head["shape"][row])]
            stats = TensorStats.of(summary[row], dtype=DTYPE_NAMES[int(head["dtype"][row])], shape=shape)
            return self.evidence.of(row, stats, step)

        return evidence

    def _present(self) -> Frame:
        """The rows there are to look at: of the step under way, or the initial weights before the first."""
        return self._initial_frame if self._initial_frame is not None else self.frame

    def _connect(self) -> None:
        """Let the live debugger in once somebody asks for it: a hub of the settings, or one that came later."""
        # Imported here: its message types cost more to load than everything else in the trainee together.
        from misstep.capture.controller import Controller

        self.controller = Controller(self.settings, self, world_size=self._world_size)
        self.controller.on_wants_nodes = self._want_nodes
        self.controller.attach_link(command=self._command)

    def _look_for_debugger(self) -> None:
        """At most once a second: has somebody written the address of a hub into the run directory?"""
        now = time.monotonic()
        if self.controller is None and now >= self._next_look and self.writer is not None:
            self._next_look = now + 1.0
            if (self.writer.directory / HUB_FILE).exists():
                self._connect()

    def _want_nodes(self, wanted: bool) -> None:
        self.stepping = wanted

    def _first_pause(self) -> None:
        if self.controller is not None and self.step == 1:
            self.controller.initial_pause()

    def _act(self, hits: list[Hit], frame: Frame, verdict: Verdict | None) -> None:
        """Dump what hits ask for, then stop if one says so."""
        if self.dumper is not None:
            self.dumper.step_ends(hits, frame)
        actions = {watch.id: watch.then for watch in self.evaluator.watchpoints} if hits else {}
        if verdict is not None and not any(actions.get(hit.watchpoint) == "dump" for hit in hits):
            self.keepsakes.settle(verdict, frame)
        stopping = next((hit for hit in hits if actions.get(hit.watchpoint) == "stop"), None)
        if stopping is not None:
            print(f"misstep: stopping: {stopping.address}: {stopping.reason}", file=sys.stderr)
            self.end("stopped")
            raise TrainingStopped(3)

    def _skip(self, step: Step, adapter: Adapter) -> None:
        """A gradient scaler found an overflow and did not update: the step number stays, and nobody is alarmed."""
        if self.writer is not None:
            why = self.replays.overflow(adapter)
            self._write_news()
            self.writer.event("skipped", step=step.number, loss=step.loss, loss_scale=step.loss_scale, **why)
            self.writer.flush()
        if self.recorder is not None:
            self.recorder.skipped()

    def _gradient_norm(self, head: Array, summary: Array) -> float | None:
        if self._level not in ("module", "op"):
            return None
        roles = self.catalog.graph.tensors
        rows = [row for row, number in enumerate(head["tensor"].tolist()) if roles[number].role == "grad"]
        if not rows:
            return None
        picked = summary[rows]
        if (picked["nan"] + picked["pos_inf"] + picked["neg_inf"]).any():
            return float("nan")
        return float(np.sqrt(np.square(picked["l2"]).sum()))

    def _write_news(self) -> None:
        writer = self.writer
        if writer is None:
            return
        for new in self.catalog.news():
            if isinstance(new, Node):
                writer.add_node(new)
            elif isinstance(new, TensorKey):
                writer.add_tensor(new)
            elif isinstance(new, Edge):
                writer.add_edge(new)
            else:
                writer.add_shape(new)

    def _tell_exception(self, error: BaseException, where: str) -> None:
        error.__misstep_node__ = where  # type: ignore[attr-defined]
        if self.writer is not None:
            self._write_news()
            facts = {"type": type(error).__name__, "text": str(error)[:4000], "node": where, "step": self.step}
            for explain in self.explainers:
                facts.update(explain(error))
            self.writer.event("exception", **facts)
            self.writer.flush()
