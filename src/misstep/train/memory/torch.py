"""torch's memory over one step: a storage is born when an operator returns it and dies when nobody holds it.

A dispatch mode sees every operator of forward, backward and optimizer. Storages keep one Python object for life, so a
weak reference to it tells the moment of its death, whoever held it last: a variable, or the graph kept for backward.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from misstep.adapters.pytorch.names import source_line, user_frame
from misstep.adapters.pytorch.seams.operators import operands
from misstep.adapters.pytorch.tensors import leaves
from misstep.core.graph import Source
from misstep.train.memory import Holder, MemoryReport, Phase, largest


@dataclass(frozen=True, slots=True)
class Block:
    """One storage: how large, and who asked for it."""

    bytes: int
    operator: str
    shape: tuple[int, ...]
    dtype: str
    phase: Phase
    source: Source | None


class TorchMeter(TorchDispatchMode):
    """Counts storages while it is on torch's stack."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.allocations = 0
        self.naive = self.standing = self.live = self.peak = 0
        self._alive: dict[int, tuple[weakref.ref[Any], Block]] = {}
        self._at_peak: list[Block] = []
        self._risen = False
        self._lines: dict[int, Source | None] = {}
        self._highest: int | None = None

    @contextmanager
    def watch(self) -> Iterator[None]:
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        self._meet_everything()
        with self:
            yield
        self._note_peak()
        if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
            self._highest = torch.cuda.max_memory_allocated()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for tensor in operands(args, kwargs):
            self._meet(tensor, "others", "before", None)
        out = func(*args, **kwargs)
        made = [tensor for tensor in leaves(out) if isinstance(tensor, torch.Tensor)]
        if any(self._is_new(tensor) for tensor in made):
            phase, source = self._where()
            for tensor in made:
                self._meet(tensor, str(func.overloadpacket), phase, source)
        return out

    def report(self, *, top: int, actual: int | None, before: int | None) -> MemoryReport:
        merged: dict[tuple[str, Phase, Source | None], Holder] = {}
        for block in sorted(self._at_peak, key=lambda block: -block.bytes):
            key = (block.operator, block.phase, block.source)
            known = merged.get(key)
            merged[key] = Holder(
                block.bytes + (known.bytes if known else 0),
                1 + (known.tensors if known else 0),
                block.operator,
                known.shape if known else block.shape,
                block.dtype,
                block.phase,
                block.source,
            )
        notes = ("memory inside an operator (its workspace) is in the actual peak only",)
        return MemoryReport(
            framework="torch",
            allocations=self.allocations,
            naive_bytes=self.naive,
            standing_bytes=self.standing,
            live_peak_bytes=self.peak,
            actual_peak_bytes=self._highest if self._highest is not None else actual,
            resident_before_bytes=before,
            holders=largest(merged.values(), top),
            notes=notes,
        )

    def _meet_everything(self) -> None:
        """Weights, gradients of the step before, data: whatever is alive when the step begins."""
        found = [thing for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor)]
        for tensor in found:
            weight = isinstance(tensor, torch.nn.Parameter)
            self._meet(tensor, "weights" if weight else "others", "before", None)
            if tensor.is_leaf and tensor.grad is not None:
                self._meet(tensor.grad, "gradients", "before", None)

    def _is_new(self, tensor: torch.Tensor) -> bool:
        storage = _storage(tensor)
        return storage is not None and storage._cdata not in self._alive

    def _meet(self, tensor: torch.Tensor, operator: str, phase: Phase, source: Source | None) -> None:
        storage = _storage(tensor)
        if storage is None or storage._cdata in self._alive:
            return
        key, size = storage._cdata, storage.nbytes()
        block = Block(size, operator, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), phase, source)
        self._alive[key] = (weakref.ref(storage, lambda _: self._died(key)), block)
        self.naive += size
        self.live += size
        if phase == "before":
            self.standing += size
            # It was there all along, so it was there at the peak so far as well.
            self.peak += size
            if not self._risen:
                self._at_peak.append(block)
        else:
            self.allocations += 1
        if self.live > self.peak:
            self.peak = self.live
            self._risen = True

    def _died(self, key: int) -> None:
        self._note_peak()
        found = self._alive.pop(key, None)
        if found is not None:
            self.live -= found[1].bytes

    def _note_peak(self) -> None:
        """Just before memory goes away is the time to write down who held it; copying at each new peak is quadratic."""
        if self._risen:
            self._risen = False
            self._at_peak = [block for _, block in self._alive.values()]

    def _where(self) -> tuple[Phase, Source | None]:
        node: Any = torch._C._current_autograd_node()  # None outside of backward, which the stub does not say
        if node is not None:
            return "backward", self._lines.get(node._sequence_nr() + 1)
        frame = user_frame(sys._getframe(2))
        source = None if frame is None else source_line(frame.f_code.co_filename, frame.f_lineno)
        self._lines.setdefault(torch._C._autograd._get_sequence_nr(), source)
        return "forward", source


def make_meter() -> TorchMeter:
    return TorchMeter()


def switch_reuse(on: bool) -> tuple[list[str], list[str]]:
    """Compiled code plans its buffers; eager code asks an allocator, which we cannot switch."""
    from torch._inductor import config

    config.allow_buffer_reuse = on
    config.inplace_buffers = on
    word = "share" if on else "have"
    effects = [f"buffers of graphs compiled by inductor from now on {word} memory{'' if on else ' of their own'}"]
    limits = ["eager tensors on a CPU get their memory from malloc, which reuses what is freed; it has no switch"]
    if torch.cuda.is_available() and not on:
        limits.append("the CUDA allocator reads PYTORCH_NO_CUDA_MEMORY_CACHING=1 at the start of a program only")
    return effects, limits


def _storage(tensor: torch.Tensor) -> Any:
    try:
        storage = tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse and wrapper tensors have none
        return None
    return storage if storage.nbytes() else None
