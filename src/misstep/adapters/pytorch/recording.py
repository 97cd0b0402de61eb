"""PyTorch's part of the flight record: collectives under way, generators, allocators, and who holds the memory.

A collective that waits for a rank that never comes is the commonest hang of all. Each call of torch.distributed leaves
its name and the time in the recorder's cells while it runs, at the price of a microsecond.
"""

from __future__ import annotations

import functools
import gc
import platform
from collections.abc import Callable, Iterable, Iterator
from time import time_ns
from typing import TYPE_CHECKING, Any, cast

import torch

from misstep import kernels
from misstep.adapters.pytorch.tensors import NAMES, leaves
from misstep.adapters.recording import Holder, OnNetwork, largest
from misstep.core.cells import COLLECTIVE, COLLECTIVES, COLLECTIVES_DONE, SINCE, Cells, no_cells

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter

_MOST_IN_A_VARIABLE = 100_000


class TorchWitness:
    """What PyTorch can tell the recorder."""

    def __init__(self, adapter: PyTorchAdapter) -> None:
        self.adapter = adapter
        self.on_network: OnNetwork | None = None

    def begin(self, cells: Cells, on_network: OnNetwork) -> None:
        self.adapter.cells = cells
        self.adapter.on_network = on_network

    def end(self) -> None:
        self.adapter.cells = no_cells()
        self.adapter.on_network = None

    def modules(self) -> Iterator[tuple[int, str, str]]:
        yield from self.adapter.names.paths()

    def tensors(self, values: Any) -> list[Any]:
        if len(values) == 1 and type(values[0]) is torch.Tensor:
            return [values[0]]
        return list(leaves(values))

    def here(self, tensor: Any) -> bool:
        # A subclass (DTensor, a fake) may compute something when asked for its memory.
        return type(tensor) is torch.Tensor and tensor.device.type == "cpu" and tensor.layout == torch.strided

    def memory(self) -> dict[str, int]:
        if not torch.cuda.is_initialized():
            return {}
        return {f"cuda:{number}": torch.cuda.memory_allocated(number) for number in range(torch.cuda.device_count())}

    def random(self) -> dict[str, str]:
        with self.adapter.quietly():
            state = torch.get_rng_state()
        return {"torch": f"{kernels.digest(state.data_ptr(), state.numel()):016x}"}

    def device(self) -> dict[str, str]:
        facts = {"cpu": platform.processor() or platform.machine(), "threads": str(torch.get_num_threads())}
        if torch.cuda.is_initialized():
            facts |= {f"cuda:{n}": torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())}
        return facts

    def is_tensor(self, value: object) -> bool:
        return issubclass(type(value), torch.Tensor)

    def holders(self, variables: Iterable[tuple[str, object]], *, search: bool) -> list[Holder]:
        seen: set[int] = set()
        found: list[Holder] = []

        def hold(tensor: Any, name: str, kind: str) -> None:
            try:
                storage = tensor.untyped_storage()
                key, size = storage._cdata, storage.nbytes()
            except (RuntimeError, NotImplementedError):
                return  # no memory of its own: meta, fake, sparse
            if key not in seen:
                seen.add(key)
                dtype = NAMES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch."))
                found.append(Holder(name, kind, size, 1, dtype, tuple(tensor.shape)))

        adapter = self.adapter
        for name, weight in adapter.parameters():
            hold(weight, name, "weight")
            if weight.grad is not None:
                hold(weight.grad, name, "gradient")
        for name, buffer in adapter.buffers():
            hold(buffer, name, "buffer")
        for optimizer in adapter.optimizers():
            for weight, state in list(optimizer.state.items()):
                for word, value in state.items() if isinstance(state, dict) else ():
                    if self.is_tensor(value) and self.is_tensor(weight):
                        hold(value, f"{adapter.names.parameter(weight)} {word}", "optimizer state")
        for name, value in variables:
            if self.is_tensor(value):
                hold(value, name, "variable")
            elif type(value) in (list, tuple, dict):
                inside = list(value.values() if type(value) is dict else cast("Iterable[Any]", value))
                for one in inside[:_MOST_IN_A_VARIABLE]:
                    if self.is_tensor(one):
                        hold(one, f"{name}[…]", "variable")
        for thing in gc.get_objects() if search else ():
            if issubclass(type(thing), torch.Tensor):
                hold(thing, "a tensor without a name", "other")
        return largest(found)


def watch_collectives(adapter: PyTorchAdapter) -> Callable[[], None]:
    """Let every collective leave its name in the adapter's cells while it runs; returns what undoes it."""
    if not torch.distributed.is_available():
        return lambda: None
    from torch.distributed import distributed_c10d

    undo: list[tuple[Any, str, Any, Any]] = []
    for code, name in enumerate(COLLECTIVES, 1):
        original = getattr(distributed_c10d, name, None)
        if original is None:
            continue
        replacement = _watched(adapter, code, original)
        for owner in (distributed_c10d, torch.distributed):
            if getattr(owner, name, None) is original:
                setattr(owner, name, replacement)
                undo.append((owner, name, original, replacement))

    def put_back() -> None:
        for owner, name, original, replacement in undo:
            if getattr(owner, name) is replacement:
                setattr(owner, name, original)

    return put_back


def _watched(adapter: PyTorchAdapter, code: int, original: Callable[..., Any]) -> Callable[..., Any]:
    is_compiling = torch.compiler.is_compiling

    @functools.wraps(original)
    def collective(*args: Any, **kwargs: Any) -> Any:
        # Checked first: Dynamo knows the original by identity, and must find nothing else to trace.
        if is_compiling():
            return original(*args, **kwargs)
        cells = adapter.cells
        outer, since = cells[COLLECTIVE], cells[SINCE]  # all_gather_object is made of others
        cells[COLLECTIVE], cells[SINCE] = code, time_ns()
        try:
            return original(*args, **kwargs)
        finally:
            cells[COLLECTIVE], cells[SINCE] = outer, since
            if not outer:
                cells[COLLECTIVES_DONE] += 1

    return collective
