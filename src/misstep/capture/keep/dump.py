"""Whole tensors kept while they pass: by pattern and step, or when a watchpoint trips.

    tensor passes ── wanted by a spec? ──────────► pack, now or through a buffer
                  └─ wanted by a `then dump`? ───► held until the step ends ── tripped? ──► pack
                                                                            └─ let go

A tensor that passes under several names (a container returns its last child's output) lies in the pack once. What
could not be kept is counted, named, and told in the journal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from misstep.adapters.step.frame import Catalog, Frame
from misstep.capture.keep.buffer import DumpBuffer
from misstep.capture.keep.holding import Holding, StepBefore
from misstep.capture.keep.into_pack import IntoPack
from misstep.capture.keep.ledger import Ledger
from misstep.capture.keep.losses import Losses
from misstep.capture.keep.mindspore_config import DumpConfig, read_dump_config
from misstep.capture.step.outcome import StepOutcome
from misstep.core.address import Address
from misstep.core.dumps import MINDSPORE_VARIABLE, DumpSpec, parse_dump
from misstep.core.levels import LEVELS, Level
from misstep.core.stats import Array
from misstep.core.watching.evaluate import Evaluator
from misstep.core.watching.watch import Hit
from misstep.errors import SettingError
from misstep.sentences import journal
from misstep.settings import Settings
from misstep.store.pack import name_of
from misstep.store.writing.writer import RunWriter

Want = Callable[[int, Any], None]
HELD_SHARE, BEFORE_SHARE = 1 / 4, 1 / 8
"""Of memory_mb, that may be held for a possible hit: of the step under way, and of the one before."""


class Dumped(Protocol):
    """What the dumper needs of a session."""

    catalog: Catalog
    frame: Frame
    step: int
    rank: int
    evaluator: Evaluator
    settings: Settings
    ledger: Ledger
    writer: RunWriter | None

    def trouble(self, where: str, error: BaseException) -> None: ...


def dumper_for(owner: Dumped, array: Callable[[Any], Array]) -> Dumper:
    """The dumper of a session, with what its settings and MindSpore's variable ask for."""
    settings = owner.settings
    specs = [parse_dump(text.strip()) for text in filter(str.strip, settings.dump.split(";"))]
    config = None
    if settings.dump_config:
        config = read_dump_config(settings.dump_config)
    elif os.environ.get(MINDSPORE_VARIABLE):
        try:
            config = read_dump_config(os.environ[MINDSPORE_VARIABLE])
        except SettingError as error:  # not written for us: said, and training goes on
            owner.trouble("reading MINDSPORE_DUMP_CONFIG", error)
    dumper = Dumper(owner, array, asynchronous=config is not None and config.asynchronous)
    dumper.config = config
    for number, key in enumerate(owner.catalog.graph.tensors):
        dumper.tensor_added(number, owner.catalog.address(number), owner.catalog.graph.nodes[key.node].type)
    for spec in specs if config is None else [*specs, config.spec]:
        dumper.add(spec)
    return dumper


class Dumper:
    """Everything one rank dumps. All of it runs on the training thread, but for the writing behind a buffer."""

    def __init__(self, owner: Dumped, array: Callable[[Any], Array], *, asynchronous: bool = False) -> None:
        self.specs: dict[int, DumpSpec] = {}
        self.config: DumpConfig | None = None
        """Of MindSpore's file, when there was one: where its layout is to be written, and under which name."""
        self._owner = owner
        self._array = array
        self._fits: dict[int, set[int]] = {}
        self._addresses: list[tuple[Address, str]] = []
        self._names: list[bytes] = []
        self._step, self._moment, self._left = -1, b"", -1
        self._watched: dict[int, frozenset[int]] = {}
        self._active: tuple[int, ...] | None = None
        self._known_to_watch = 0
        """Tensors that came later are held for every watchpoint until the step ends: cheaper than asking for each."""
        self._holding = Holding(array, owner.ledger.account("hits that dump", share=HELD_SHARE))
        self._before = StepBefore(array, owner.ledger.account("the step before", share=BEFORE_SHARE))
        self._losses = Losses()
        self._pack = IntoPack(owner, self._losses, asynchronous=asynchronous or bool(owner.settings.dump_async))
        self._hit_steps: dict[int, int] = {}
        self._hit_last: dict[int, int] = {}
        self._overflows: dict[int, int] = {}
        self._pid = os.getpid()

    @property
    def kept(self) -> int:
        """Tensors stored, those that share memory included."""
        return self._pack.kept

    @property
    def buffer(self) -> DumpBuffer | None:
        """Where tensors wait for the writing thread, once one did."""
        return self._pack.buffer

    # ── what is asked for ─────────────────────────────────────────────────────────────────────────────────────

    def add(self, spec: DumpSpec) -> DumpSpec:
        """Keep what fits, from now on; gives the spec its number."""
        spec = replace(spec, id=spec.id or max(self.specs, default=0) + 1)
        self.specs[spec.id] = spec
        self._fits[spec.id] = {
            number for number, (address, kind) in enumerate(self._addresses) if spec.fits(address, kind)
        }
        self._active = None
        return spec

    def remove(self, id: int) -> None:
        self.specs.pop(id, None)
        self._fits.pop(id, None)
        self._active = None

    def facts(self, spec: DumpSpec) -> dict[str, Any]:
        """What the journal says of a dump."""
        told: dict[str, Any] = {"id": spec.id, "text": str(spec), "saved": spec.saved}
        if self.config is not None and replace(spec, id=0) == self.config.spec:
            told |= {"path": self.config.path, "net_name": self.config.net_name, "config": self.config.plain}
        return told

    def fitting(self, id: int) -> list[Address]:
        """The tensors known so far that a dump keeps."""
        return [self._addresses[number][0] for number in sorted(self._fits.get(id, ()))]

    def level_for(self, step: int) -> Level | None:
        """How closely a step must be looked at for what is asked of it; None when nothing is."""
        # Initial weights are told when the first step is looked at.
        asked = [spec.level for spec in self._here() if spec.includes(step) or (step == 1 and spec.includes(0))]
        return max(asked, key=LEVELS.index, default=None)

    def keeps_rows(self, step: int) -> bool:
        """Whether the statistics of this step were asked for, however sparse the others are kept."""
        return any(spec.saved != "tensor" and spec.includes(step) for spec in self._here())

    def tensor_added(self, number: int, address: Address, node_type: str) -> Want | None:
        """A tensor is about to pass for the first time; what to call then, in the step under way."""
        while len(self._addresses) < number:
            self._addresses.append((Address(""), ""))
            self._names.append(b"")
        self._addresses.append((address, node_type))
        name = name_of(address)
        # Odd names are written in another way, so their step cannot simply stand behind.
        self._names.append(b"" if name.startswith(b"{") else name)
        for id, spec in self.specs.items():
            if spec.fits(address, node_type):
                self._fits[id].add(number)
        return self._want(number, self._owner.step)

    def changed(self, step: int, watching: Iterable[int], *, stale: bool) -> bool:
        """Whether other tensors are wanted than in the step before; `watching` are the watchpoints that dump."""
        self._owner.frame.names_inputs = any(spec.names_inputs(step) for spec in self._here())
        ids = tuple(id for id in watching if self._may_dump(id))
        active = tuple(id for id, spec in self.specs.items() if spec.includes(step))
        if not stale and active == self._active and ids == tuple(self._watched):
            return False
        self._active = active
        self._watched = {id: frozenset(self._owner.evaluator.watched(id)) for id in ids}
        self._known_to_watch = len(self._addresses)
        return True

    def wants(self, step: int) -> dict[int, Want]:
        """By tensor number, what to call when it passes in this step."""
        asked: set[int] = set().union(*self._watched.values())
        for spec in self._here():
            if spec.includes(step):
                asked |= self._fits[spec.id]
        found = {number: self._want(number, step) for number in asked}
        return {number: want for number, want in found.items() if want is not None}

    # ── what passes ───────────────────────────────────────────────────────────────────────────────────────────

    def initial(self, frame: Frame) -> None:
        """The weights before training: step 0."""
        chosen = [spec for spec in self._here() if spec.includes(0) and spec.saved != "statistic" and not spec.overflow]
        for row, number in enumerate(frame.tensors) if chosen else ():
            ref = frame.refs[row]
            tensor = ref() if ref is not None else None
            fitting = [spec for spec in chosen if number in self._fits[spec.id]]
            if tensor is not None and fitting:
                sample = min(spec.sample for spec in fitting)
                self._guarded(self._keep, frame, row, number, self._array(tensor), sample=sample)
        self._pack.begin_step()
        self.tell()

    def step_ends(self, outcome: StepOutcome) -> None:
        """Write what tripped, and say what was lost."""
        hits, frame = outcome.hits, outcome.frame
        present = frame is self._owner.frame
        self._left = frame.step
        for id in self._watched:
            mine = [hit for hit in hits if hit.watchpoint == id]
            if mine:
                self._keep_hits(id, mine, frame)
        for spec in self._here():
            if present and spec.overflow and spec.includes(frame.step):
                self._keep_overflows(spec, frame)
        if not present:  # the initial weights: their rows are not those of the step under way
            self._pack.begin_step()
        self._holding.learn()
        self.tell()

    def begin_step(self) -> None:
        """The step is left: let go of everything held but what a hit in the next may ask for."""
        if self._watched:
            self._guarded(self._before.take, self._left, self._holding)
        else:
            self._before.let_go()
        self._holding.let_go()
        self._pack.begin_step()

    def tell(self) -> None:
        """Write into the journal what could not be kept, by name."""
        writer = self._owner.writer
        if writer is None:
            return
        for sentence in self.config.unmet if self.config is not None else ():
            self._losses.say_once(writer, journal.DUMP_CONFIGURATION.of(what=sentence))
        self._losses.tell(writer, self._owner.step)
        account = self._holding.account
        if account.refused:
            text = journal.NO_ROOM_TO_HOLD.of(count=account.refused, limit=account.limit_bytes / 2**20)
            self._losses.say_once(writer, text, about="room")

    def close(self) -> None:
        """Everything on its way is written before this returns."""
        self._pack.close()
        if os.getpid() == self._pid:
            self.tell()

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────

    def _here(self) -> list[DumpSpec]:
        return [spec for spec in self.specs.values() if spec.on_rank(self._owner.rank)]

    def _want(self, number: int, step: int) -> Want | None:
        new = number >= self._known_to_watch
        hold = any(new or number in numbers for numbers in self._watched.values())
        samples = []
        for spec in self._here():
            if spec.saved != "statistic" and spec.includes(step) and number in self._fits[spec.id]:
                if spec.overflow:
                    hold = True
                else:
                    samples.append(spec.sample)
        if samples:
            return self._keeper(number, min(samples))  # 0, the whole, wins over any sample
        return self._holder(number) if hold else None

    def _holder(self, number: int) -> Want:
        return lambda row, tensor: self._guarded(self._holding.hold, number, tensor)

    def replay_want(self, number: int) -> Want | None:
        """What to call when a tensor passes in a replay of the step: what a hit may ask for is held there too."""
        return self._holder(number) if self._watched and number not in self._holding else None

    def _guarded(self, act: Callable[..., Any], *given: Any, **more: Any) -> None:
        # An exception here would cut short what the adapter does after it; training and capture go on without us.
        try:
            act(*given, **more)
        except Exception as error:
            self._owner.trouble("while dumping", error)

    def _keeper(self, number: int, sample: int) -> Want:
        """What is called for every dumped tensor as it passes: kept short, for small tensors come by the thousand."""
        owner, keep, array = self._owner, self._keep, self._array

        def passes(row: int, tensor: Any) -> None:
            try:
                keep(owner.frame, row, number, array(tensor), sample)
            except Exception as error:
                owner.trouble("while dumping", error)

        return passes

    def _keep(self, frame: Frame, row: int, number: int, values: Array, sample: int = 0) -> None:
        if frame.step != self._step:
            self._step = frame.step
            self._moment = f"@{frame.step}#{self._owner.rank}".encode()
        bare = self._names[number]
        name = bare + self._moment if bare else name_of(self._address(number, frame.step))
        # By tensor, not by row: a replay may put its own rows in the place of the step's.
        self._pack.store(name, values, frame.tensors[frame.same_memory(row)], sample)

    def _address(self, number: int, step: int) -> Address:
        bare = self._addresses[number][0]
        return Address(bare.node, bare.role, bare.slot, step, self._owner.rank, bare.call)

    def _lose(self, name: bytes, why: str) -> None:
        self._pack.lose(name, why)

    # ── holding for a hit ─────────────────────────────────────────────────────────────────────────────────────

    def _keep_hits(self, id: int, hits: Sequence[Hit], frame: Frame) -> None:
        """Everything the watchpoint looks at, of the step in which it tripped, and what the culprits were made of."""
        if not self._may_dump(id):
            return
        self._hit_steps[id] = self._hit_steps.get(id, 0) + 1
        watched = set(self._owner.evaluator.watched(id))
        rows = {hit.order for hit in hits if hit.order < len(frame)}
        inputs = {source for row in rows for source in frame.inputs_of(row) or ()}
        if frame is self._owner.frame:
            rows |= {row for row, number in enumerate(frame.tensors) if number in self._holding and number in watched}
        self._keep_rows(rows, inputs, frame)
        before, self._hit_last[id] = self._hit_last.get(id), frame.step
        if frame is self._owner.frame and self._before.step == frame.step - 1 != before:  # else it is there already
            made_of = {frame.tensors[row] for row in inputs if row < len(frame)}
            self._keep_before((watched | made_of).intersection(self._before))

    def _keep_before(self, numbers: set[int]) -> None:
        """The same tensors one step earlier, as far as they were not written over since."""
        for number in sorted(numbers):
            values = self._before.values(number)
            if values is not None:
                name = name_of(self._address(number, self._before.step))
                # Below zero, where no tensor of this step is.
                self._guarded(self._pack.store, name, values, -1 - self._before.first_of(number))

    def _may_dump(self, id: int) -> bool:
        most = int(self._owner.settings.dump_hits)
        return not most or self._hit_steps.get(id, 0) < most

    def _keep_overflows(self, spec: DumpSpec, frame: Frame) -> None:
        rows: set[int] = set()
        inputs: set[int] = set()
        for row, number in enumerate(frame.tensors):
            role = self._addresses[number][0].role
            fits = number in self._holding and number in self._fits[spec.id] and role not in ("input", "grad_output")
            if not fits or not frame.nonfinite(row):
                continue
            if spec.most_overflows and self._overflows.get(spec.id, 0) >= spec.most_overflows:
                break
            self._overflows[spec.id] = self._overflows.get(spec.id, 0) + 1
            inputs.update(frame.inputs_of(row) or ())
            if not spec.inputs_only:
                rows.add(row)
        self._keep_rows(rows, inputs, frame)

    def _keep_rows(self, rows: set[int], inputs: set[int], frame: Frame) -> None:
        """Rows that were asked for, and what they were computed from as far as it is still there."""
        for row in sorted(row for row in rows | inputs if row < len(frame)):
            number = frame.tensors[row]
            held = frame is self._owner.frame and number in self._holding
            values = self._holding.values(number) if held else self._alive(frame, row)
            if values is not None:
                self._guarded(self._keep, frame, row, number, values)
            elif row in rows:
                why = "written over before the step ended" if held else "freed before the step ended"
                self._lose(name_of(self._address(number, frame.step)), why)

    def _alive(self, frame: Frame, row: int) -> Array | None:
        ref = frame.refs[row]
        tensor = ref() if ref is not None else None
        return None if tensor is None else self._array(tensor)
