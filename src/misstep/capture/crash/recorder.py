"""The flight recorder: the last steps of this process, kept where a killed process leaves them behind.

    training thread ── step_done ──► ring (mapped file): loss, rate, memory, worst rows, generators, batch digests
        adapter ──── cells ────────► ring: which module, phase, collective, line
        stdout, stderr, loggers ───► ring: the tail of the log
    exception, exit, hang, SIGUSR1 ► reports.jsonl: stacks with variables, who holds the memory ──► one bundle (.zip)
    SIGTERM, SIGSEGV, SIGABRT ─────► stacks/: by the fault handler; the bundle is made by `misstep run`, or by whoever
                                     opens the run later, of the same files

What is recorded costs tens of microseconds a step. What explains an end is only collected at the end.
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from misstep import kernels
from misstep.adapters.base import Adapter
from misstep.adapters.recording import Holder, Witness
from misstep.capture.crash import stacks as frames
from misstep.capture.crash.config import Recording, program_config, recording
from misstep.capture.crash.hang import Watch
from misstep.capture.crash.logtail import LogTail
from misstep.capture.crash.machine import MT19937_BYTES, memory_limits, numpy_generator, peak_bytes, resident_bytes
from misstep.capture.crash.native_stacks import kernel_threads, machine_stacks
from misstep.capture.crash.signals import Signals
from misstep.capture.crash.values import Values
from misstep.capture.crash.worst import worst_rows
from misstep.capture.step.outcome import StepOutcome
from misstep.core import cells
from misstep.core.secrets import allowed
from misstep.sentences.journal import NO_FLIGHT_RECORD
from misstep.store.bundle.batch import BatchFile
from misstep.store.bundle.ring import Ring
from misstep.store.bundle.write import BundleKind, write_bundle
from misstep.store.codec import encode, to_json
from misstep.store.journal import seal
from misstep.store.layout import rank_paths
from misstep.store.writing.scrubbed import scrubber

if TYPE_CHECKING:
    from misstep.capture.session import Session

MB = 1 << 20
_PAUSE = 0.02
"""Seconds between two looks at memory and generators: steps of a millisecond must not pay for them each time."""
_EVERY_STEP, _SHARE = 64, 0.005
"""Steps that are recorded whatever it costs; later ones as long as recording takes no more of the time than that.
A step of twenty milliseconds is always recorded, of much shorter ones a few each second; the journal has them all."""
_NOTE_STEPS, _NOTE_SECONDS = 256, 1.0


class Recorder:
    """Records one process; made when training begins, closed when the session ends."""

    def __init__(self, session: Session, plan: Recording) -> None:
        assert session.writer is not None
        self.session = session
        self.plan = plan
        self.run = session.writer.directory
        self.paths = rank_paths(self.run, session.writer.rank)
        budget = int(session.settings.record_mb * MB)
        slots = max(1, session.settings.record_steps)
        self.ring = Ring(self.paths.ring, slots=slots, slot_bytes=min(max(budget // (4 * slots), 2048), 16384))
        self.cells = self.ring.cells
        self._batches = BatchFile(self.paths.batch, limit_bytes=max(budget - self.paths.ring.stat().st_size, 0))
        self._pairs: list[tuple[Adapter, Witness]] = []
        self._values = Values(self._pairs)
        self._files: dict[str, int] = {}
        self._digests: list[dict[str, Any]] = []
        self._modules: set[int] = set()
        self._holders: list[Holder] = []
        self._next_look = 0.0
        self._noted_at = 0
        self._called_at: tuple[CodeType | None, int] = (None, -1)
        """Where the network was called from last: a line number is worth looking up only when it may be another."""
        self._next_note = self._next_batch = self._next_step = self._asked_at = 0.0
        self._rss = 0
        self._failed: BaseException | None = None
        self._exit: int | None = None
        self._pid = os.getpid()
        self.log = LogTail(self.ring)
        self.signals = Signals(self.paths.stacks)
        self._watch = Watch(
            self.cells,
            self.signals,
            hang_seconds=session.settings.hang_seconds,
            paused=lambda: session.controller is not None and session.controller.control.phase == "paused",
            on_hang=lambda seconds: self._guarded("at a hang", lambda: self.hang(seconds)),
            on_asked=lambda: self._guarded("at a signal", self.asked),
        )

    def begin(self) -> None:
        """Everything is in place: listen."""
        for adapter in self.session.adapters:
            self.witness(adapter)
        self._step_begins(self.session.step)
        self._note()
        self.log.install()
        self.signals.install()
        self._watch.start()

    def witness(self, adapter: Adapter) -> None:
        """Hear what this framework can tell."""
        witness = adapter.witness()
        if witness is None:
            return
        self._pairs.append((adapter, witness))

        def on_network(args: Any, kwargs: dict[str, Any], frame: FrameType | None) -> None:
            self._network(adapter, witness, args, kwargs, frame)

        witness.begin(self.cells, on_network)

    # ── while training goes on ────────────────────────────────────────────────────────────────────────────────

    def _network(
        self, adapter: Adapter, witness: Witness, args: Any, kwargs: dict[str, Any], frame: FrameType | None
    ) -> None:
        """A network is about to run: where from, and with which batch."""
        if frame is not None and (frame.f_lasti != self._called_at[1] or frame.f_code is not self._called_at[0]):
            self._called_at = (frame.f_code, frame.f_lasti)
            file = frame.f_code.co_filename
            number = self._files.get(file)
            if number is None:
                number = self._files[file] = len(self._files)
                self._note()
            self.cells[cells.FILE], self.cells[cells.LINE] = number, frame.f_lineno
        now = time.perf_counter()
        if now < self._next_batch or len(self._digests) >= 16:
            return
        batch: list[tuple[str, Any, tuple[int, ...]]] = []
        for tensor in witness.tensors((args, kwargs) if kwargs else args):
            values = adapter.array(tensor) if witness.here(tensor) else None
            batch.append((adapter.dtype_name(tensor), values, tuple(tensor.shape)))
        if batch:
            digests = self._batches.put(self.session.step, batch)
            for (dtype, _, shape), digest in zip(batch, digests):
                self._digests.append({"dtype": dtype, "shape": shape, "digest": digest})
        if self.session.step > _EVERY_STEP:
            self._next_batch = now + (time.perf_counter() - now) / _SHARE

    def step_done(self, outcome: StepOutcome) -> None:
        """The facts of a finished step, into the ring."""
        step = outcome.step
        if step.number == 0 or os.getpid() != self._pid:
            return
        now = time.perf_counter()
        if outcome.hits or step.number <= _EVERY_STEP or now >= self._next_step:
            self._keep(outcome, now)
            # A step that would have passed by was concluded in full for our sake: all of it is our cost.
            began = self._asked_at or now
            self._next_step = now + (time.perf_counter() - began) / _SHARE
        else:
            self._step_begins(step.number + 1)
        self._asked_at = 0.0

    def passes_by(self, number: int, now: float) -> bool:
        """Whether a quiet step is left to the journal, so that steps of a fraction of a millisecond stay that short."""
        if number <= _EVERY_STEP or now >= self._next_step:
            self._asked_at = now
            return False
        self._step_begins(number + 1)
        return True

    def _keep(self, outcome: StepOutcome, now: float) -> None:
        step = outcome.step
        facts: dict[str, Any] = {
            "step": step.number,
            "time": step.time,
            "seconds": round(step.seconds, 6),
            "loss": encode(step.loss),
            "rate": encode(step.learning_rate),
            "level": step.captured,
        }
        if step.loss_scale is not None:
            facts["scale"] = encode(step.loss_scale)
        if now >= self._next_look:
            self._next_look = now + _PAUSE
            self._rss = resident_bytes()
            facts["memory"] = {"rss": self._rss, **self._memory()}
            facts["random"] = self._random()
        if self._digests:
            facts["batch"], self._digests = self._digests, []
        if len(outcome.head):
            facts["rows"] = list(worst_rows(self.session.catalog, outcome.head, outcome.summary))
        if outcome.hits:
            facts["hits"] = [f"{hit.condition} {hit.address}" for hit in outcome.hits[:4]]
        payload = to_json(facts)
        for part in ("rows", "batch", "hits"):
            if len(payload) <= self.ring.room:
                break
            facts.pop(part, None)
            payload = to_json(facts)
        self.ring.put(payload)
        if step.number == 2 or (step.number >= self._noted_at + _NOTE_STEPS and now >= self._next_note):
            self._noted_at, self._next_note = step.number, now + _NOTE_SECONDS
            self._holders = self._who_holds(None, shallow=True)
            self._note()
        self._step_begins(step.number + 1)

    def skipped(self) -> None:
        """An update was left out by a gradient scaler; the program is alive all the same."""
        self._step_begins(self.session.step)

    def _step_begins(self, number: int) -> None:
        self._exit = None  # where the program caught its own exit, it trains on
        self.cells[cells.STEP] = number
        self.cells[cells.STEP_BEGAN] = time.time_ns()

    def _memory(self) -> dict[str, int]:
        return {name: size for _, witness in self._pairs for name, size in witness.memory().items()}

    def _random(self) -> dict[str, str]:
        told = {name: digest for _, witness in self._pairs for name, digest in witness.random().items()}
        told["python"] = f"{hash(random.getstate()) & 0xFFFFFFFFFFFFFFFF:016x}"
        numbers = numpy_generator()
        if numbers:
            told["numpy"] = f"{kernels.digest(numbers, MT19937_BYTES):016x}"
        return told

    def _note(self) -> None:
        """Facts that hold for long: files, limits, holders of memory, and where records are exported to."""
        new = [one for _, witness in self._pairs for one in witness.modules() if one[0] not in self._modules]
        if new:
            with open(self.paths.modules, "ab") as file:
                file.write(b"".join(seal({"id": number, "name": name, "type": kind}) for number, name, kind in new))
            self._modules.update(number for number, _, _ in new)
        self.ring.note(
            {
                "files": list(self._files),
                "export": self.plan.export,
                "limits": memory_limits(),
                "holders": [encode(holder, defaults=True) for holder in self._holders],
                "hang_seconds": self.session.settings.hang_seconds,
            }
        )

    # ── at the end, or when asked ─────────────────────────────────────────────────────────────────────────────

    def failed(self, error: BaseException, where: str = "") -> None:
        """The program ends with this exception: keep what only this process can tell."""
        if self._failed is not None or os.getpid() != self._pid:
            return
        self._failed = error
        self._report(
            "exception",
            type=f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins."),
            text=str(error)[:8000],
            node=where or getattr(error, "__misstep_node__", ""),
            frames=frames.of_exception(error, self._values.tensor),
            threads=[one for one in frames.of_threads(self._values.shape, main_locals=False) if not one["main"]],
            cause=_cause(error),
            holders=self._who_holds(error),
        )

    def exiting(self, code: object, frame: FrameType | None) -> None:
        """The program called sys.exit."""
        if os.getpid() != self._pid:
            return
        self._exit = code if isinstance(code, int) else 0 if code is None else 1
        if self._exit:
            text = "" if isinstance(code, int) else str(code)[:2000]
            self._report("exit", code=self._exit, text=text, frames=frames.of_frame(frame, self._values.tensor))

    def hang(self, seconds: float) -> None:
        """No step has ended for this long; called from the watching thread."""
        self._machine("hang")
        self._report(
            "hang", seconds=round(seconds, 1), threads=frames.of_threads(self._values.shape), holders=self._holders
        )
        path = self.export("hang")
        doing = cells.PHASES[self.cells[cells.PHASE]]
        waits = cells.collective_name(self.cells[cells.COLLECTIVE])
        say = f"step {self.session.step} has not ended for {seconds:.0f} s ({'in ' + waits if waits else doing})"
        print(f"misstep: {say}; flight record: {path}", file=sys.stderr)

    def asked(self) -> Path | None:
        """Somebody wants a record of a training that goes on."""
        self._machine("asked")
        self._report("asked", threads=frames.of_threads(self._values.shape), holders=self._holders)
        return self.export("asked")

    def close(self, reason: str, exit_code: int | None) -> None:
        """The session has ended and its journal is complete."""
        if os.getpid() != self._pid:
            return
        self._watch.stop()
        self.log.release()
        for _, witness in self._pairs:
            witness.end()
        bad = reason == "failed" or bool(exit_code)
        if bad:
            self.export("crash")
        elif self.plan.mode == 2:
            self._report("end", reason=reason)
            self.export("end")
        self.signals.release()
        if not bad:
            self.paths.batch.unlink(missing_ok=True)

    @property
    def exit_code(self) -> int:
        """What sys.exit was called with; 0 when it was not."""
        return self._exit or 0

    def export(self, kind: BundleKind) -> Path | None:
        """One .zip with everything known of the run, ours and the other ranks'."""
        return write_bundle(self.run, kind=kind, environment=dict(os.environ))

    def _machine(self, name: str) -> None:
        """The frames of every thread below Python, beside those the fault handler leaves."""
        self.paths.stacks.joinpath(f"{name}_native.txt").write_text(machine_stacks(), encoding="utf-8")

    def _report(self, kind: str, **facts: Any) -> None:
        here = self.cells
        report = {
            "kind": kind,
            "time": time.time(),
            "step": self.session.step,
            "phase": cells.PHASES[here[cells.PHASE]],
            "collective": cells.collective_name(here[cells.COLLECTIVE]),
            "level": self.session.settings.level,
            "memory": {"rss": resident_bytes(), "peak": peak_bytes(), **self._memory()},
            "threads_of_the_kernel": kernel_threads(),
            "device": {name: fact for _, witness in self._pairs for name, fact in witness.device().items()},
            "random": self._random(),
            "environment": allowed(os.environ),
            **{
                name: [encode(one, defaults=True) for one in fact] if name == "holders" else fact
                for name, fact in facts.items()
            },
        }
        with open(self.paths.reports, "ab") as file:
            file.write(seal(scrubber().plain(report)))

    def _who_holds(self, error: BaseException | None, *, shallow: bool = False) -> list[Holder]:
        variables = [] if shallow else list(frames.variables(error))
        try:
            return [holder for _, witness in self._pairs for holder in witness.holders(variables, search=not shallow)][
                :16
            ]
        except MemoryError:
            return self._holders

    def _guarded(self, where: str, act: Any) -> None:
        try:
            act()
        except Exception as error:
            self.session.trouble(where, error)


def begin_recorder(session: Session) -> Recorder | None:
    """A recorder for a session whose run directory is there; None when it is off or cannot be had."""
    plan = recording(session.settings, rank=session.rank, config=program_config())
    if plan.problem and session.writer is not None:
        session.writer.event("warning", text=plan.problem)
        print(f"misstep: {plan.problem}", file=sys.stderr)
    if not plan.enabled or session.writer is None:
        return None
    try:
        recorder = Recorder(session, plan)
        recorder.begin()
    except OSError as error:
        session.writer.event("warning", text=NO_FLIGHT_RECORD.of(why=error.strerror or str(error)))
        return None
    return recorder


def _cause(error: BaseException) -> str:
    """The exception behind this one, in a line."""
    behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "" if behind is None else f"{type(behind).__name__}: {str(behind)[:500]}"
