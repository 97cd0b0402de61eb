"""PyTorch, seen by misstep: the seams it has put in, and the facts it can be asked for.

The seams, all put in by `attach` and taken out by `detach`:

    nn.Module.__call__                     modules, inputs, outputs, output gradients      (modules.py)
    torch dispatch mode, level op only     every operator                                  (operators.py)
    backward, optimizers, GradScaler       where a step begins and ends                    (steps.py)
    torch function mode, while armed       what it takes to run the step again             (tape.py)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from threading import get_ident
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.utils.data import get_worker_info

from misstep.adapters.base import USUAL, Defaults, Extension, Listener, SessionPort, TrainingStopped, Traits
from misstep.adapters.pytorch import tensors
from misstep.adapters.pytorch.compiled.calls import CompiledCalls
from misstep.adapters.pytorch.compiled.lines import inside_generated
from misstep.adapters.pytorch.facts.seam import FactSeam
from misstep.adapters.pytorch.names import Names
from misstep.adapters.pytorch.quietly import Quietly
from misstep.adapters.pytorch.recording import TorchWitness, watch_collectives
from misstep.adapters.pytorch.replay.samples import LoaderWatch, SampleSearch
from misstep.adapters.pytorch.replay.tape import Tape
from misstep.adapters.pytorch.replay.update_replay import HeldWeights
from misstep.adapters.pytorch.seams.loading import watch_compiler, watch_loaders
from misstep.adapters.pytorch.seams.modules import ModuleSeam
from misstep.adapters.pytorch.seams.operators import OperatorWatch
from misstep.adapters.pytorch.seams.steps import StepSeam, parameters_of
from misstep.adapters.recording import OnNetwork
from misstep.adapters.replaying.protocol import Batch, Capsule, Replayed
from misstep.adapters.step.frame import Catalog, Frame
from misstep.adapters.timing.clock import Clock
from misstep.adapters.timing.loaders import Loaders
from misstep.core.address import Role
from misstep.core.cells import Cells, no_cells
from misstep.core.graph import scope_of
from misstep.core.levels import Level
from misstep.core.stats import Array
from misstep.errors import ReplayError
from misstep.sentences.replay import NO_UPDATE

if TYPE_CHECKING:
    from misstep.adapters.pytorch.replay.capsule import CapsulePlayer


class PyTorchAdapter(Defaults):
    """One per process; `attach` makes it live, `detach` leaves no trace."""

    name = "pytorch"

    def __init__(self) -> None:
        self.inert, self.live = True, False
        self.level: Level = "off"
        self.in_backward = False
        self.updating: int | None = None
        """The node of the optimizer whose step runs now."""
        self.network_ran = False
        """A network with gradients has run since the last update: what follows outside of modules is the loss."""
        self.thread = self.cost_ns = 0
        self.cells: Cells = no_cells()
        """Where training is, for the flight recorder."""
        self.clock = Clock(self)
        """Where the time of a step goes."""
        self.loaders = Loaders()
        self.on_network: OnNetwork | None = None
        self.modules = ModuleSeam(self)
        self.operators = OperatorWatch(self)
        self.steps = StepSeam(self)
        self.tape = Tape(self)
        self.compiled = CompiledCalls(self)
        self.compilations = self.compiled.report
        self.moving: set[int] = set()
        """Ids of the weights the optimizer about to step will move."""
        self.search: SampleSearch | None = None
        """After a replay: the way to its samples, until the update."""
        self.capsule: CapsulePlayer | None = None
        """A step of another run that this process plays."""
        self.loader = LoaderWatch()
        self.held_weights = HeldWeights()
        self.replaying = False
        """While a step is run again by us."""
        self.outer: FrameType | None = None
        """The user's frame a replay was called from; it tells nothing of the line that is run again …"""
        self.stand_in: tuple[CodeType, int] | None = None
        """… which is this one."""
        self.gradient_rows: dict[int, int] = {}
        """By id of a weight: the row of its gradient in this step."""
        self._undo: list[Callable[[], None]] = []
        self._quietly = Quietly()

    # ── life ──────────────────────────────────────────────────────────────────────────────────────────────────

    def extend(self, session: SessionPort) -> Extension:
        self.compiled.extend(session)
        return Extension()

    @property
    def traits(self) -> Traits:
        return _SHADOWED if self.compiled.shadowing else USUAL

    def witness(self) -> TorchWitness:
        return TorchWitness(self)

    def attach(self, listener: Listener) -> None:
        if not self.inert:
            return
        if getattr(self, "listener", None) is not listener:
            self._listen_to(listener)
        self.modules.install()
        self.loader.install()
        self._undo += [self.modules.remove, self.loader.remove]
        self._undo += [*self.steps.install(), *self.facts.install()]
        self._undo += [*watch_loaders(self), watch_collectives(self), self.compiled.install()]
        if not _fork_handler:
            os.register_at_fork(after_in_child=self._forked)
            _fork_handler.append(True)
        self.inert = False

    def _listen_to(self, listener: Listener) -> None:
        """Everything that remembers nodes and tensors speaks in the words of one listener's catalog."""
        self.listener = listener
        self.catalog: Catalog = listener.catalog
        self.frame: Frame = listener.frame
        self.modules = ModuleSeam(self)
        self.operators = OperatorWatch(self)
        self.seer = tensors.Seer(self.catalog, self.frame, listener.wants)
        self.seer.row_of_memory = self.operators.row_of
        self.names = Names(self.catalog)
        self.steps = StepSeam(self)
        self.facts, self.tape = FactSeam(self), Tape(self)  # what they learned does not hold for the next program

    def leave_step(self, error: BaseException | None = None) -> None:
        self.guarded("at the end", self.steps.close)
        self.guarded("at the end", lambda: self.steps.leave(ends=True))

    def detach(self) -> None:
        self.guarded("at the end", self.steps.close)
        self.set_level("off")
        self.arm_replay(False)
        self.operators.stop()
        while self._undo:
            self._undo.pop()()
        self.inert = True
        self.live = False
        self.thread = 0
        self.steps.forget()

    def set_level(self, level: Level) -> None:
        self.level = level = self.compiled.level_of(level)
        self.modules.watching = level in ("module", "op")
        if level == "op":
            self.operators.start()
        else:
            self.operators.stop()

    def arm_replay(self, on: bool) -> None:
        """Keep what it takes to run a step again; at op level there is no need to."""
        self.tape.arm(on or self.compiled.shadowing)

    def replay(self) -> Replayed:
        from misstep.adapters.pytorch.replay.rerun import replay

        return replay(self)

    def replay_update(self) -> Replayed:
        from misstep.adapters.pytorch.replay.update_replay import replay_update

        if not self.steps.stepped:
            raise ReplayError(NO_UPDATE.of())
        return replay_update(self, self.steps.stepped[-1])

    def save_capsule(self, path: Path, *, step: int, most_bytes: int, frame: Frame | None = None) -> Capsule:
        from misstep.adapters.pytorch.replay.capsule import save_capsule

        return save_capsule(self, path, step=step, most_bytes=most_bytes, frame=frame)

    def play_capsule(self, path: Path) -> int:
        from misstep.adapters.pytorch.replay.capsule import CapsulePlayer

        self.capsule = CapsulePlayer(self, path)
        self.tape.arm(True)
        self.tape.swap = self.capsule.swap
        return self.capsule.step

    def capsule_played(self) -> str:
        assert self.capsule is not None
        self.tape.swap = None
        self.capsule.put_optimizers()
        return self.capsule.verdict(self.frame)

    def take_over(self, replayed: Replayed) -> None:
        """From here on the step under way is what its replay showed."""
        self._look_into(replayed.frame)
        self.gradient_rows = dict(replayed.gradient_rows)
        self.compiled.shadowed()

    def batch(self) -> Batch | None:
        return None if self.search is None else self.search.batch()

    def bad_with(self, samples: Sequence[int], healthy: Sequence[int]) -> bool:
        assert self.search is not None
        return self.search.bad_with(samples, healthy)

    def sample(self, tensor: Any, index: int) -> Array:
        assert self.search is not None
        return tensors.array(self.search.sample(tensor, index))

    def adopt(self, model: object, optimizer: object | None = None) -> None:
        if isinstance(model, nn.Module):
            self.names.adopt(model)
        if isinstance(optimizer, torch.optim.Optimizer):
            self.names.optimizer(optimizer)
            self.steps.by_hand.optimizer_made(optimizer)

    def recording(self) -> bool:
        """Whether operators count now: not those of an evaluation between steps."""
        return (
            not self._quietly.depth
            and bool(
                torch.is_grad_enabled()
                or self.in_backward
                or self.updating is not None
                or self.modules.stack
                or (self.network_ran and inside_generated(3))
                or self.replaying  # inside an autograd function's forward: nothing else is run again without gradients
            )
            and self.thread in (0, get_ident())
        )

    def take_cost(self) -> float:
        cost, self.cost_ns = self.cost_ns, 0
        return cost * 1e-9

    def _forked(self) -> None:
        """A forked child (a data loader's worker) is nobody's training."""
        self.inert, self.operators.on = True, False

    def go_live(self) -> None:
        if get_worker_info() is not None:
            # A spawned worker of a data loader may call a network to prepare its data; that is nobody's training.
            self._forked()
        elif not self.live and not self.inert:
            self.live = True
            self.thread = get_ident()
            goes_on_with = self.clock.own()
            watch_compiler(self)
            self.listener.going_live(self)
            self.clock.back(goes_on_with)

    def _look_into(self, frame: Frame) -> None:
        self.frame = self.seer.frame = frame
        self.seer.begin()
        self.modules.begin_step()
        self.operators.begin_step()

    def begin_step(self) -> None:
        self._look_into(self.listener.frame)
        self.compiled.begin_step()
        self.gradient_rows = {}

    def guarded(self, where: str, act: Callable[..., None], *given: Any) -> None:
        """Do something of ours on the user's way: our failure is told once and training goes on."""
        try:
            act(*given)
        except TrainingStopped:
            raise
        except Exception as error:
            self.listener.trouble(where, error)

    # ── facts ─────────────────────────────────────────────────────────────────────────────────────────────────

    def parameters(self) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for tensor in self.all_weights():
            if id(tensor) not in seen:
                seen.add(id(tensor))
                yield self.names.parameter(tensor), tensor

    def buffers(self) -> Iterator[tuple[str, Any]]:
        for root in self.names.networks():
            for _, buffer in root.named_buffers():
                yield self.names.parameter(buffer), buffer

    def optimizers(self) -> Iterator[torch.optim.Optimizer]:
        return self.steps.optimizers()

    def gradient(self, parameter: Any) -> Any | None:
        return parameter.grad

    def array(self, tensor: Any) -> Array:
        return tensors.array(tensor)

    def dtype_name(self, tensor: Any) -> str:
        return tensors.NAMES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch."))

    def versions(self) -> dict[str, str]:
        return {"torch": str(torch.__version__)}

    def rank(self) -> tuple[int, int]:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed.get_rank(), torch.distributed.get_world_size()
        return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))

    def all_weights(self) -> Iterator[torch.Tensor]:
        """Those of a lazy layer only once it has run: before, they have no memory."""
        found = (one for root in self.names.networks() for one in root.parameters())
        held = (one for optimizer in self.optimizers() for one in parameters_of(optimizer))
        return (one for one in chain(found, held) if not is_lazy(one))

    # ── events ────────────────────────────────────────────────────────────────────────────────────────────────

    def network_called(self, module: nn.Module, frame: FrameType | None) -> None:
        """A network begins to run with gradients on."""
        if self.replaying:
            self.network_ran = True
            return
        try:
            self.compiled.network_called(module)
            self.steps.close(frame)
            self.steps.leave()
            if not self.live:
                self.names.node(module, frame)
                self.go_live()
            self.steps.network_called(module)
            self.network_ran = True
        except TrainingStopped:
            raise
        except Exception as error:
            self.listener.trouble("when a network was called", error)

    def user_raised(self, error: BaseException, node: int) -> None:
        if getattr(error, "__misstep_told__", False) or isinstance(error, TrainingStopped):
            return
        try:
            error.__misstep_told__ = True  # type: ignore[attr-defined]
            where = self.catalog.graph.nodes[node].name if node >= 0 else ""
            self.listener.exception(self, error, where)
        except Exception as problem:
            self.listener.trouble("at an exception", problem)

    def loss_row(self, loss: torch.Tensor, count: int) -> None:
        """The loss given to the step's backward number `count`, as a row."""
        if self.level == "off":
            return
        node = self.catalog.node("loss", "loss", "Loss", phase="loss")
        number = self.catalog.tensor(node, "loss", 0, min(count, 64))
        row = self.seer.see(number, loss, self._loss_inputs(loss))
        if row >= 0 and self.level == "op":
            self.frame.trace(row, self.operators.row_of(loss))

    def _loss_inputs(self, loss: torch.Tensor) -> tuple[int, ...] | None:
        """At module level the loss is computed from the outputs of the outermost modules of the step."""
        same = self.seer.seen(loss)
        if same >= 0:
            return self.frame.inputs_of(same)
        return None

    def quietly(self) -> Quietly:
        """While misstep itself calls torch, nobody records it."""
        return self._quietly

    def parameter_rows(self, role: Role, weights: list[torch.Tensor], values: list[torch.Tensor]) -> None:
        """Rows for weights or their gradients; a gradient was computed from its module's output gradients, a weight
        from its gradient."""
        if not weights:
            return
        catalog = self.catalog
        numbers, inputs = [], []
        for weight in weights:
            name = self.names.parameter(weight)
            node = catalog.node(name, "parameter", "Parameter")
            numbers.append(catalog.tensor(node, role))
            owner = catalog.graph.node(scope_of(name))
            if role == "grad":
                inputs.append(None if owner is None else self.modules.output_gradients(owner.index))
            else:
                row = self.gradient_rows.get(id(weight), -1)
                inputs.append((row,) if row >= 0 else None)
        rows = self.seer.many(numbers, values, inputs)
        if role == "grad":
            self.gradient_rows = {id(weight): row for weight, row in zip(weights, rows)}
        if self.level == "op":
            for row, value in zip(rows, values):
                self.frame.trace(row, self.operators.row_of(value))


_SHADOWED = Traits(shadowed=True)
_fork_handler: list[bool] = []
