"""The first steps of a training without its memory: from the first forward on, tensors have shapes and no values.

    the user's script ─ first forward ─► FakeTensorMode + Footprint ─ second update ─► report, and the process ends

The script itself runs, with its own network, loss, optimizer and data, so nothing has to be described twice. Every
storage is followed from the operator that made it to its death; the most that was alive at once is the peak. Asked to
measure instead, the same meter watches the same steps with values. Nothing behind the last step runs, and `torch.save`
writes nothing meanwhile: there is nothing worth saving.
"""

from __future__ import annotations

import json
import sys
import weakref
from contextlib import ExitStack
from dataclasses import dataclass
from os import _exit
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn.modules import module as modules
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils import data
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils.data.dataloader import _BaseDataLoaderIter

from misstep.adapters.pytorch.names import source_line, user_frame
from misstep.adapters.pytorch.seams.operators import operands
from misstep.adapters.pytorch.tensors import leaves
from misstep.core.graph import Source

_MOST_HOLDERS, _MOST_POINTS = 20, 400
_MOST_REPEATS = 8
_OF_WORKERS = ("prefetch_factor", "persistent_workers", "timeout", "multiprocessing_context", "worker_init_fn")


@dataclass(slots=True)
class Block:
    """One storage."""

    bytes: int
    kind: str
    """weights, inputs, gradients, optimizer, activations or temporary; what it is good for shows only later."""
    phase: str
    operator: str
    module: str
    shape: tuple[int, ...]
    dtype: str
    source: Source | None


def begin(told: dict[str, Any]) -> None:
    """Rehearse this process's training: {"out": path, "fake": bool, "steps": n, "batch": n or None}."""
    footprint = Footprint(told)
    _plan_loaders(told.get("batch"), footprint)

    def first(module: Any, given: Any) -> None:
        handle.remove()
        footprint.start(module, given)

    handle = modules.register_module_forward_pre_hook(first)


class Footprint(TorchDispatchMode):
    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.told = told
        self.fake = FakeTensorMode(allow_non_fake_inputs=True) if told["fake"] else None
        self.alive: dict[int, tuple[Any, Block]] = {}
        self.known: dict[int, Any] = {}
        """Storages that stand in for a real one, which is counted already."""
        self.live = self.peak = self.naive = self.operators = self.step = self.samples = 0
        self.at_peak: list[Block] = []
        self.peak_at: dict[str, Any] = {}
        self.points: list[tuple[int, int]] = []
        self.phase = "forward"
        self._rising = False
        self._stack: list[str] = []
        self._names: dict[int, str] = {}
        self._lines: dict[int, tuple[Source | None, str]] = {}
        self._parameters: list[Any] = []

    def start(self, network: Any, given: Any) -> None:
        """The first network is about to run for the first time."""
        self.samples = next((len(one) for one in leaves(given) if isinstance(one, torch.Tensor) and one.dim()), 0)
        self._names = {id(module): name or type(module).__name__ for name, module in network.named_modules()}
        self._parameters = list(network.parameters())
        for tensor in (*self._parameters, *network.buffers()):
            self._meet(tensor, "weights", "before", "")
        for one in leaves(given):
            if isinstance(one, torch.Tensor):
                self._meet(one, "inputs", "before", "")
        modules.register_module_forward_pre_hook(lambda module, _: self._enter(module))
        modules.register_module_forward_hook(lambda module, *_: self._leave(), always_call=True)
        register_optimizer_step_pre_hook(lambda *_: self._before_update())
        register_optimizer_step_post_hook(lambda *_: self._after_update())
        scaler: Any = torch.amp.GradScaler
        scaler._maybe_opt_step = _always_step
        if self.fake is not None:
            torch.save = lambda *args, **kwargs: None
            self.fake.__enter__()
        self.__enter__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.fake is not None and func is torch.ops.aten._local_scalar_dense.default:
            return _number(args[0].dtype)
        self.operators += 1
        for tensor in operands(args, kwargs):
            self._meet(tensor, "inputs", "before", "")
            self._stand_in(tensor)
        try:
            out = func(*args, **kwargs)
        except Exception as error:
            if self.fake is not None:
                self._give_up(func, error)
            raise
        for tensor in leaves(out):
            if isinstance(tensor, torch.Tensor):
                self._meet(tensor, "temporary", "", str(func.overloadpacket))
        if self.operators % 8 == 0 and len(self.points) < 1 << 16:
            self.points.append((self.operators, self.live))
        return out

    # ── storages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _stand_in(self, tensor: Any) -> None:
        """What is fake in place of a real tensor has no memory of its own."""
        if self.fake is None or isinstance(tensor, FakeTensor):
            return
        made = self.fake.fake_tensor_converter.from_real_tensor(self.fake, tensor)
        storage = _storage(made)
        if storage is not None:
            self.known[storage._cdata] = storage

    def _meet(self, tensor: Any, kind: str, phase: str, operator: str) -> None:
        storage = _storage(tensor)
        if storage is None or storage._cdata in self.alive or storage._cdata in self.known:
            return
        key, size = storage._cdata, storage.nbytes()
        phase, source, module = (phase, None, "") if phase else self._where()
        block = Block(size, kind, phase, operator, module, tuple(tensor.shape), str(tensor.dtype)[6:], source)
        self.alive[key] = (weakref.ref(storage, lambda _: self._died(key)), block)
        self.naive += size
        self.live += size
        if self.live > self.peak:
            self.peak, self._rising = self.live, True
            self.peak_at = {"phase": phase, "operator": operator, "module": module, "step": self.step + 1}
            self.peak_at["source"] = _plain(source)

    def _died(self, key: int) -> None:
        self._note_peak()
        found = self.alive.pop(key, None)
        if found is not None:
            self.live -= found[1].bytes

    def _note_peak(self) -> None:
        """Just before memory goes away is the time to write down who holds it."""
        if self._rising:
            self._rising = False
            self.at_peak = [block for _, block in self.alive.values()]

    def _block(self, tensor: Any) -> Block | None:
        storage = _storage(tensor) if tensor is not None else None
        found = self.alive.get(storage._cdata) if storage is not None else None
        return found[1] if found is not None else None

    # ── where we are ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _where(self) -> tuple[str, Source | None, str]:
        if self.phase == "optimizer":
            return self.phase, None, ""
        node: Any = torch._C._current_autograd_node()
        if node is not None:
            if self.phase == "forward":
                self._backward_begins()
            return "backward", *self._lines.get(node._sequence_nr() + 1, (None, ""))
        frame = user_frame(sys._getframe(2))
        source = None if frame is None else source_line(frame.f_code.co_filename, frame.f_lineno)
        module = self._stack[-1] if self._stack else ""
        self._lines.setdefault(torch._C._autograd._get_sequence_nr(), (source, module))
        return "forward", source, module

    def _backward_begins(self) -> None:
        self.phase = "backward"
        for _, block in self.alive.values():
            if block.phase == "forward" and block.kind == "temporary":
                block.kind = "activations"

    def _enter(self, module: Any) -> None:
        self.phase = "forward" if self.phase != "optimizer" else self.phase
        self._stack.append(self._names.get(id(module), type(module).__name__))

    def _leave(self) -> None:
        if self._stack:
            self._stack.pop()

    def _before_update(self) -> None:
        self.phase = "optimizer"
        for parameter in self._parameters:
            block = self._block(parameter.grad)
            if block is not None:
                block.kind = "gradients"

    def _after_update(self) -> None:
        for _, block in self.alive.values():
            if block.phase == "optimizer":
                block.kind = "optimizer"
        self.phase = "forward"
        self.step += 1
        if self.step >= self.told["steps"]:
            self._note_peak()
            self._end(self.report(), 0)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def report(self) -> dict[str, Any]:
        kinds: dict[str, int] = {}
        merged: dict[tuple[Any, ...], dict[str, Any]] = {}
        for block in sorted(self.at_peak, key=lambda one: -one.bytes):
            kinds[block.kind] = kinds.get(block.kind, 0) + block.bytes
            key = (block.kind, block.module, block.operator, str(block.source))
            holder = merged.setdefault(
                key,
                {
                    "bytes": 0,
                    "tensors": 0,
                    "kind": block.kind,
                    "module": block.module,
                    "operator": block.operator,
                    "shape": list(block.shape),
                    "dtype": block.dtype,
                    "source": _plain(block.source),
                },
            )
            holder["bytes"] += block.bytes
            holder["tensors"] += 1
        return {
            "peak": self.peak,
            "naive": self.naive,
            "kinds": kinds,
            "peak_at": self.peak_at,
            "holders": sorted(merged.values(), key=lambda one: -one["bytes"])[:_MOST_HOLDERS],
            "timeline": self.points[:: max(1, len(self.points) // _MOST_POINTS)],
            "steps": self.step,
            "samples": self.samples,
            "operators": self.operators,
            "fake": self.fake is not None,
        }

    def _give_up(self, func: Any, error: Exception) -> None:
        frame = user_frame(sys._getframe(2))
        line = source_line(frame.f_code.co_filename, frame.f_lineno) if frame is not None else None
        operator = str(func.overloadpacket)
        self._end({"failed": type(error).__name__, "operator": operator, "source": _plain(line)}, 3)

    def _end(self, facts: dict[str, Any], code: int) -> None:
        with ExitStack() as stack:
            stack.enter_context(_disable_current_modes())
            with open(self.told["out"], "w", encoding="utf-8") as file:
                json.dump(facts, file)
            sys.stdout.flush()
            sys.stderr.flush()
        _exit(code)  # a `finally` of the user's must not write tensors without values over real ones


def _plan_loaders(batch: int | None, footprint: Footprint) -> None:
    """Batches of the size in question, made in this process, with values; data that ends too soon is used again."""
    again = _MOST_REPEATS
    last: list[Any] = []
    loader: Any = data.DataLoader
    iterators: Any = _BaseDataLoaderIter
    original, following = loader.__init__, iterators.__next__
    names = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers")

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = dict(zip(names, args)) | kwargs
        if len(args) <= len(names):
            given = {name: value for name, value in given.items() if name not in _OF_WORKERS} | {"num_workers": 0}
            if batch is not None and given.get("batch_sampler") is None:
                given["batch_size"] = batch
            args, kwargs = (), given
        original(self, *args, **kwargs)

    def __next__(iterator: Any) -> Any:
        nonlocal again
        with _disable_current_modes():
            try:
                last[:] = [following(iterator)]
            except StopIteration:
                if not (footprint.samples and last and again):
                    raise
                again -= 1
            return last[0]

    loader.__init__ = __init__
    iterators.__next__ = __next__


def _always_step(scaler: Any, optimizer: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
    """Whether a gradient was infinite is not known without values."""
    return optimizer.step(*args, **kwargs)


def _number(dtype: torch.dtype) -> float | int | bool:
    """What `.item()` gives where there are no values: 1 divides, and has a logarithm."""
    return 1.0 if dtype.is_floating_point else dtype != torch.bool


def _storage(tensor: Any) -> Any:
    try:
        storage = tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse and wrapper tensors have none
        return None
    return storage if storage.nbytes() else None


def _plain(source: Source | None) -> dict[str, Any] | None:
    return {"file": source.file, "line": source.line, "code": source.code} if source is not None else None
