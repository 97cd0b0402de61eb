"""PyTorch, seen by misstep: where a step begins and ends, and what is read on the way.

The seams, all put in by `attach` and taken out by `detach`:

    nn.Module.__call__                     modules, inputs, outputs, output gradients      (modules.py)
    torch dispatch mode, level op only     every operator                                  (operators.py)
    torch.autograd.backward                the loss, and when backward runs
    optimizer step hooks (global)          gradients before the update, weights after it
    GradScaler._maybe_opt_step             updates that a gradient scaler skips

A step is one update. Several optimizers that step after one backward share a step; one optimizer stepping twice, or
another backward in between, begins the next.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import get_ident
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import get_worker_info

from misstep.adapters.base import Level, Listener, Place, TrainingStopped, Update
from misstep.adapters.frame import Catalog, Frame
from misstep.adapters.pytorch import tensors
from misstep.adapters.pytorch.batch import LoaderWatch, SampleSearch
from misstep.adapters.pytorch.modules import ModuleSeam
from misstep.adapters.pytorch.names import Names
from misstep.adapters.pytorch.operators import OperatorWatch
from misstep.adapters.pytorch.recording import watch_collectives
from misstep.adapters.pytorch.tape import Tape
from misstep.adapters.pytorch.updates import HeldWeights
from misstep.adapters.recording import OnNetwork
from misstep.adapters.replaying import Batch, Capsule, Replayed
from misstep.core.address import Role
from misstep.core.cells import BACKWARD, BETWEEN, OPTIMIZER, PHASE, Cells, no_cells
from misstep.core.graph import scope_of
from misstep.core.stats import Array
from misstep.errors import ReplayError

if TYPE_CHECKING:
    from misstep.adapters.pytorch.capsule import CapsulePlayer


class PyTorchAdapter:
    """One per process; `attach` makes it live, `detach` leaves no trace."""

    name = "pytorch"

    def __init__(self) -> None:
        self.inert = True
        self.live = False
        self.level: Level = "off"
        self.in_backward = False
        self.updating: int | None = None
        """The node of the optimizer whose step runs now."""
        self.network_ran = False
        """A network with gradients has run since the last update: what follows outside of modules is the loss."""
        self.thread = 0
        self.cost_ns = 0
        self.cells: Cells = no_cells()
        """Where training is, for the flight recorder."""
        self.on_network: OnNetwork | None = None
        self.modules = ModuleSeam(self)
        self.operators = OperatorWatch(self)
        self.tape = Tape(self)
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
        self.plain_backward: Callable[..., Any] = torch.autograd.backward
        self._undo: list[Callable[[], None]] = []
        self._losses: list[torch.Tensor] = []
        self._stepped: list[torch.optim.Optimizer] = []
        self._known_optimizers: dict[int, weakref.ref[torch.optim.Optimizer]] = {}
        self._backwards = 0
        self._initial_told = False
        self._scaler: Any = None
        self._gradient_rows: dict[int, int] = {}
        self._initial: set[int] = set()
        self._quiet = False
        """While misstep itself calls torch."""

    # ── life ──────────────────────────────────────────────────────────────────────────────────────────────────

    def attach(self, listener: Listener) -> None:
        if not self.inert:
            return
        if getattr(self, "listener", None) is not listener:
            self._listen_to(listener)
        self.modules.install()
        self._undo.append(self.modules.remove)
        self.loader.install()
        self._undo.append(self.loader.remove)
        self._patch_backward()
        self._patch_scaler()
        self._undo.append(watch_collectives(self))
        self._undo.append(register_optimizer_step_pre_hook(self._before_step).remove)
        self._undo.append(register_optimizer_step_post_hook(self._after_step).remove)
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
        self._known_optimizers.clear()
        self._initial.clear()
        self._initial_told = False

    def detach(self) -> None:
        self._guarded("at the end", self._close_step)
        self.set_level("off")
        self.arm_replay(False)
        self.operators.stop()
        while self._undo:
            self._undo.pop()()
        self.inert = True
        self.live = False
        self.thread = 0
        self._losses.clear()
        self._stepped.clear()

    def set_level(self, level: Level) -> None:
        self.level = level
        self.modules.watching = level in ("module", "op")
        if level == "op":
            self.operators.start()
        else:
            self.operators.stop()

    def arm_replay(self, on: bool) -> None:
        """Keep what it takes to run a step again; at op level there is no need to."""
        self.tape.arm(on)

    def replay(self) -> Replayed:
        from misstep.adapters.pytorch.replay import replay

        return replay(self)

    def replay_update(self) -> Replayed:
        from misstep.adapters.pytorch.updates import replay_update

        optimizer = self._stepped[-1] if self._stepped else None
        if optimizer is None:
            raise ReplayError("no update was seen")
        return replay_update(self, optimizer)

    def save_capsule(self, path: Path, *, step: int, most_bytes: int, frame: Frame | None = None) -> Capsule:
        from misstep.adapters.pytorch.capsule import save_capsule

        return save_capsule(self, path, step=step, most_bytes=most_bytes, frame=frame)

    def play_capsule(self, path: Path) -> int:
        from misstep.adapters.pytorch.capsule import CapsulePlayer

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
        self.frame.become(replayed.frame)
        self.seer.begin()
        self.modules.begin_step()
        self._gradient_rows = dict(replayed.gradient_rows)

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

    def recording(self) -> bool:
        """Whether operators count now: not those of an evaluation between steps."""
        return (
            not self._quiet
            and bool(torch.is_grad_enabled() or self.in_backward or self.updating is not None or self.modules.stack)
            and self.thread in (0, get_ident())
        )

    def take_cost(self) -> float:
        cost, self.cost_ns = self.cost_ns, 0
        return cost * 1e-9

    def _forked(self) -> None:
        """A forked child (a data loader's worker) is nobody's training."""
        self.inert = True
        self.operators.on = False

    def _go_live(self) -> None:
        if get_worker_info() is not None:
            # A spawned worker of a data loader may call a network to prepare its data; that is nobody's training.
            self._forked()
        elif not self.live and not self.inert:
            self.live = True
            self.thread = get_ident()
            self.listener.going_live(self)

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
        for ref in self._known_optimizers.values():
            optimizer = ref()
            if optimizer is not None:
                yield optimizer

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
        for root in self.names.networks():
            yield from root.parameters()
        for optimizer in self.optimizers():
            yield from _parameters_of(optimizer)

    # ── events ────────────────────────────────────────────────────────────────────────────────────────────────

    def network_called(self, module: nn.Module, frame: FrameType | None) -> None:
        """A network begins to run with gradients on."""
        if self.replaying:
            self.network_ran = True
            return
        try:
            self._close_step()
            if not self.live:
                self.names.node(module, frame)
                self._go_live()
            if self.live and not self._initial_told and next(module.parameters(), None) is not None:
                self._tell_initial()
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

    def _patch_backward(self) -> None:
        original = self.plain_backward = torch.autograd.backward

        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if self.inert or self.in_backward or self.replaying or self.thread not in (0, get_ident()):
                return original(tensors, *args, **kwargs)
            self._backward_begins(tensors)
            self._guarded("at backward", lambda: self.tape.backward_begins(tensors, args, kwargs, sys._getframe(3)))
            self.in_backward = True
            self.cells[PHASE] = BACKWARD
            try:
                result = original(tensors, *args, **kwargs)
                self.cells[PHASE] = BETWEEN
                self._guarded("after backward", self.tape.backward_ends)
                self._guarded("after backward", self.modules.backward_ends)
                return result
            except BaseException as error:
                self.user_raised(error, -1)
                raise
            finally:
                self.in_backward = False

        torch.autograd.backward = backward

        def undo() -> None:
            if torch.autograd.backward is backward:
                torch.autograd.backward = original

        self._undo.append(undo)

    def _backward_begins(self, losses: Any) -> None:
        start = perf_counter_ns()
        try:
            self._close_step()
            self._go_live()
            self._backwards += 1
            for loss in tensors.leaves(losses):
                self._losses.append(loss.detach())
                self.loss_row(loss, len(self._losses))
            if self.listener.stepping:
                self.listener.at_node(
                    Place(self.catalog.node("loss", "loss", "Loss", phase="loss"), "loss", "after", "module")
                )
        except TrainingStopped:
            raise
        except Exception as error:
            self.listener.trouble("at backward", error)
        self.cost_ns += perf_counter_ns() - start

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

    def _patch_scaler(self) -> None:
        from torch.amp.grad_scaler import GradScaler

        original = GradScaler._maybe_opt_step

        def _maybe_opt_step(scaler: Any, optimizer: Any, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
            self._scaler = scaler
            found = not self.inert and bool(sum(value.item() for value in state["found_inf_per_device"].values()))
            result = original(scaler, optimizer, state, *args, **kwargs)
            if found:
                self._skipped(optimizer)
            return result

        GradScaler._maybe_opt_step = _maybe_opt_step

        def undo() -> None:
            if GradScaler._maybe_opt_step is _maybe_opt_step:
                GradScaler._maybe_opt_step = original

        self._undo.append(undo)

    def _skipped(self, optimizer: torch.optim.Optimizer) -> None:
        try:
            self._close_step()
            self._go_live()
            self._stepped.append(optimizer)
            self._finish(overflow=True)
        except TrainingStopped:
            raise
        except Exception as error:
            self.listener.trouble("at a skipped update", error)

    def _before_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> Any:
        if self.inert or self.replaying or self.thread not in (0, get_ident()):
            return None
        self.tape.pause()
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        try:
            if self._stepped and (optimizer in self._stepped or self._backwards):
                self._close_step()
            self._go_live()
            if id(optimizer) not in self._known_optimizers:
                self._known_optimizers[id(optimizer)] = weakref.ref(optimizer)
                self.names.discover(_parameters_of(optimizer), sys._getframe(1))
                self._tell_initial(optimizer)
            if closure is None:
                self._gradients_ready(optimizer)
                return None
        except TrainingStopped:
            raise
        except Exception as error:
            self.listener.trouble("before an update", error)
            return None

        # The forward and backward of this step run inside the closure, after this hook.
        done = False

        def watched() -> Any:
            nonlocal done
            self.updating = None
            result = closure()
            if not done:
                done = True
                self._guarded("before an update", lambda: self._gradients_ready(optimizer))
            self.updating = self.names.optimizer(optimizer)
            return result

        if len(args) > 1:
            return (args[0], watched, *args[2:]), kwargs
        return args, {**kwargs, "closure": watched}

    def _guarded(self, where: str, act: Callable[[], None]) -> None:
        try:
            act()
        except TrainingStopped:
            raise
        except Exception as error:
            self.listener.trouble(where, error)

    @contextlib.contextmanager
    def quietly(self) -> Iterator[None]:
        """While misstep itself calls torch, nobody records it."""
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before

    def _gradients_ready(self, optimizer: torch.optim.Optimizer) -> None:
        start = perf_counter_ns()
        self.tape.pause()
        self.tape.gradients_ready()
        if self.tape.armed and not self.in_backward:
            self.held_weights.hold(optimizer)
        self.moving = {id(weight) for weight in _parameters_of(optimizer)} if self.tape.armed else set()
        weights = [weight for weight in _parameters_of(optimizer) if weight.grad is not None]
        gradients: list[torch.Tensor] = [weight.grad for weight in weights]
        if self.level in ("module", "op"):
            self.parameter_rows("grad", weights, gradients)
        elif self.level == "guard":
            bad = tensors.nonfinite(gradients)
            self.parameter_rows("grad", [weights[place] for place in bad], [gradients[place] for place in bad])
        self.cost_ns += perf_counter_ns() - start
        self.listener.before_update(self)
        node = self.names.optimizer(optimizer, sys._getframe())
        if self.listener.stepping:
            self.listener.at_node(Place(node, "optimizer", "before", "optimizer"))
        self.cells[PHASE] = OPTIMIZER
        self.updating = node

    def _after_step(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if self.inert or self.replaying or self.thread not in (0, get_ident()):
            return
        self.updating = None
        self.cells[PHASE] = BETWEEN
        try:
            start = perf_counter_ns()
            weights = list(_parameters_of(optimizer))
            if self.level in ("module", "op"):
                self.parameter_rows("param", weights, weights)
            elif self.level == "guard":
                bad = [weights[place] for place in tensors.nonfinite(weights)]
                self.parameter_rows("param", bad, bad)
            self._stepped.append(optimizer)
            self.cost_ns += perf_counter_ns() - start
            self.search = None
            self.listener.after_update(self)
            self.tape.window_ends(carry=self._may_share_forward())
            if self.listener.stepping:
                self.listener.at_node(Place(self.names.optimizer(optimizer), "optimizer", "after", "optimizer"))
            self._backwards = 0
            # An optimizer that steps inside backward is one of many, each with a parameter of its own.
            if sum(1 for _ in self.optimizers()) == 1 and not self.in_backward:
                self._finish()
        except TrainingStopped:
            raise
        except Exception as error:
            self.listener.trouble("after an update", error)

    def _may_share_forward(self) -> bool:
        """Whether a forward before this update may be trained by another optimizer after it. At first nobody knows."""
        return not self.in_backward and (len(self._known_optimizers) > 1 or self.listener.step <= 2)

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
                row = self._gradient_rows.get(id(weight), -1)
                inputs.append((row,) if row >= 0 else None)
        rows = self.seer.many(numbers, values, inputs)
        if role == "grad":
            self._gradient_rows = {id(weight): row for weight, row in zip(weights, rows)}
        if self.level == "op":
            for row, value in zip(rows, values):
                self.frame.trace(row, self.operators.row_of(value))

    def _tell_initial(self, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Step 0: the weights as they are before anything moved them."""
        weights = list(_parameters_of(optimizer)) if optimizer is not None else list(self.all_weights())
        weights = [weight for weight in weights if id(weight) not in self._initial]
        if not weights or self.level not in ("module", "op"):
            return
        self._initial_told = True
        self._initial.update(id(weight) for weight in weights)
        frame = Frame(capacity=max(1, len(weights)))
        frame.begin(0)
        seer = tensors.Seer(self.catalog, frame, {})
        numbers = [
            self.catalog.tensor(self.catalog.node(self.names.parameter(weight), "parameter", "Parameter"), "param")
            for weight in weights
        ]
        seer.many(numbers, weights, [None] * len(weights))
        seer.fetch()
        self.listener.initial(self, frame)

    def _close_step(self) -> None:
        """With several optimizers a step ends when the next forward or backward begins."""
        if self._stepped:
            self._finish()

    def _finish(self, *, overflow: bool = False) -> None:
        optimizer = self._stepped[-1] if self._stepped else None
        self._stepped.clear()
        start = perf_counter_ns()
        self._quiet = True
        self.seer.fetch()
        losses = tuple(_number(loss) for loss in self._losses)
        self._losses.clear()
        update = Update(
            loss=losses[-1] if losses else None,
            losses=losses if len(losses) > 1 else (),
            learning_rate=None if optimizer is None else _number(optimizer.param_groups[0].get("lr")),
            optimizer="" if optimizer is None else type(optimizer).__name__,
            loss_scale=None if self._scaler is None else float(self._scaler.get_scale()),
            overflow=overflow,
        )
        self._quiet = False
        self.network_ran = False
        self.cost_ns += perf_counter_ns() - start
        try:
            self.listener.step_done(self, update)
        finally:
            self.seer.begin()
            self.modules.begin_step()
            self.operators.begin_step()
            if overflow:
                self.tape.window_ends(carry=False)
            self._gradient_rows = {}


_fork_handler: list[bool] = []


def _parameters_of(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _number(value: Any) -> Any:
    """A loss or rate as a float; a loss that is no scalar counts as its mean."""
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            return float(value.item() if value.numel() == 1 else value.float().mean().item())
    return None if value is None else float(value)
