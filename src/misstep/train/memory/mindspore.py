"""MindSpore's memory over one step: the sum of what operators return, and what the process held.

Tensors reach the dispatcher in fresh wrappers whose death says nothing of the memory below, and a CPU build counts no
allocations, so the live peak is not to be had; the report leaves it out. A compiled graph is one event: its inner
tensors are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mindspore import get_context
from mindspore.utils import MsDispatchMode

from misstep.adapters.mindspore.tensors import leaves
from misstep.train.memory import MemoryReport


class MindSporeMeter(MsDispatchMode):
    """Counts what operators return while it is on the dispatcher's stack."""

    def __init__(self) -> None:
        super().__init__()
        self.allocations = 0
        self.naive = self.standing = 0
        self._known: dict[int, Any] = {}

    @contextmanager
    def watch(self) -> Iterator[None]:
        with self:
            yield
        self._known.clear()

    def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
        for tensor in leaves((args, kwargs) if kwargs else args):
            self.standing += self._meet(tensor)
        out = func(*args, **(kwargs or {}))
        for tensor in leaves(out):
            self.allocations += 1 if self._meet(tensor) else 0
        return out

    def report(self, *, top: int, actual: int | None, before: int | None) -> MemoryReport:
        return MemoryReport(
            framework="mindspore",
            allocations=self.allocations,
            naive_bytes=self.naive,
            standing_bytes=self.standing,
            live_peak_bytes=None,
            actual_peak_bytes=actual,
            resident_before_bytes=before,
            notes=(
                "MindSpore does not tell when a tensor's memory is freed, so there is no live peak",
                "operators of backward and of compiled graphs are not in the sum",
            ),
        )

    def _meet(self, tensor: Any) -> int:
        """Its bytes when its memory is new; held until the step is over, or an address used twice would count once."""
        address = tensor.data_ptr()
        if not address or address in self._known:
            return 0
        self._known[address] = tensor
        size = int(tensor.nbytes)
        self.naive += size
        return size


def make_meter() -> MindSporeMeter:
    return MindSporeMeter()


def switch_reuse(on: bool) -> tuple[list[str], list[str]]:
    """On a CPU nothing can be switched; elsewhere `runtime.set_memory` decides, once, before the first tensor."""
    target = get_context("device_target")
    if target == "CPU":
        return [], ["MindSpore on a CPU always reuses memory; sys.mem_reuse has no effect there since RDR was removed"]
    return [], [f"on {target}, call mindspore.runtime.set_memory(optimize_level=…) before the first tensor"]
