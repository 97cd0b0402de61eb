"""MindSpore's part of the flight record: its configuration file, its seed, and who holds the memory."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

import mindspore as ms

from misstep.adapters.mindspore.tensors import dtype_name, leaves
from misstep.adapters.recording import Holder, OnNetwork, largest
from misstep.core.cells import Cells, no_cells

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter


class MindSporeWitness:
    """What MindSpore can tell the recorder."""

    def __init__(self, adapter: MindSporeAdapter) -> None:
        self.adapter = adapter

    def begin(self, cells: Cells, on_network: OnNetwork) -> None:
        self.adapter.cells = cells
        self.adapter.on_network = on_network

    def end(self) -> None:
        self.adapter.cells = no_cells()
        self.adapter.on_network = None

    def modules(self) -> Iterator[tuple[int, str, str]]:
        for network in self.adapter.names.networks():
            for path, cell in network.cells_and_names():
                yield id(cell), path or type(cell).__name__, type(cell).__name__

    def tensors(self, values: Any) -> list[Any]:
        return list(leaves(values))

    def here(self, tensor: Any) -> bool:
        return bool(ms.get_context("device_target") == "CPU")

    def memory(self) -> dict[str, int]:
        return {}

    def random(self) -> dict[str, str]:
        return {"mindspore seed": str(ms.get_seed())}

    def device(self) -> dict[str, str]:
        return {
            "cpu": platform.processor() or platform.machine(),
            "target": str(ms.get_context("device_target")),
            "mode": "graph" if ms.get_context("mode") == ms.GRAPH_MODE else "pynative",
        }

    def is_tensor(self, value: object) -> bool:
        return issubclass(type(value), ms.Tensor)

    def holders(self, variables: Iterable[tuple[str, object]], *, search: bool) -> list[Holder]:
        seen: set[int] = set()
        found: list[Holder] = []

        def hold(tensor: Any, name: str, kind: str) -> None:
            if id(tensor) not in seen:
                seen.add(id(tensor))
                found.append(Holder(name, kind, int(tensor.nbytes), 1, dtype_name(tensor), tuple(tensor.shape)))

        for name, weight in self.adapter.parameters():
            hold(weight, name, "weight")
        for name, buffer in self.adapter.buffers():
            hold(buffer, name, "buffer")
        for name, value in variables:
            if self.is_tensor(value):
                hold(value, name, "variable")
            elif type(value) in (list, tuple):
                for one in cast("list[Any]", value):
                    if self.is_tensor(one):
                        hold(one, f"{name}[…]", "variable")
        return largest(found)


def config_path() -> str:
    """The file given to `set_context(env_config_path=…)`; empty when none was."""
    try:
        return str(ms.get_context("env_config_path") or "")
    except (ValueError, RuntimeError, KeyError):
        return ""
