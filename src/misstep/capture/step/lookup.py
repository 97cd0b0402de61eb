"""A tensor of the step under way, by its address: found among the rows of the frame, else among weights and buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from misstep.adapters.base import Adapter
from misstep.adapters.registry import adapter_for
from misstep.adapters.step.frame import Catalog, Frame
from misstep.core.address import Address
from misstep.core.graph import Graph
from misstep.core.stats import Array
from misstep.errors import TensorUnavailable, nearest


def live_tensor(
    wanted: Address,
    catalog: Catalog,
    frame: Frame,
    adapters: Iterable[Adapter],
    kept: Callable[[int], Array | None] = lambda number: None,
) -> Array:
    """Its values, without a copy where possible; `kept` knows those held on purpose. TensorUnavailable says why not."""
    bare = replace(wanted, step=None, rank=None)
    row = next((row for row in reversed(range(len(frame))) if catalog.address(frame.tensors[row]) == bare), -1)
    if row >= 0:
        values = kept(frame.tensors[row])
        ref = frame.refs[row]
        tensor = ref() if ref is not None and values is None else None
        if values is not None or tensor is not None:
            return adapter_for(tensor).array(tensor) if values is None else values
    for adapter in adapters:
        for name, parameter in adapter.parameters():
            if name == wanted.node and wanted.role in ("param", "grad"):
                value = parameter if wanted.role == "param" else adapter.gradient(parameter)
                if value is not None:
                    return adapter.array(value)
        for name, buffer in adapter.buffers():
            if name == wanted.node and wanted.role == "buffer":
                return adapter.array(buffer)
    if row >= 0:
        raise TensorUnavailable(
            f"{wanted} was freed by the framework after it passed; dump it to keep it:"
            f"  misstep dump last '{wanted.node}:{wanted.role}'",
            address=str(wanted),
            reason="freed",
        )
    node = catalog.graph.node(wanted.node)
    if "/" in wanted.node and node is None:
        how = "operators are watched only while walked through:  ops, then s 1 (or level=op for the whole run)"
    elif node is None:
        how = f"no node of that name has run yet{nearest_node(wanted.node, catalog.graph)}"
    else:
        how = f"run to it:  to {wanted.node}:{wanted.role}"
    raise TensorUnavailable(
        f"{wanted} has not passed in step {frame.step}; {how}", address=str(wanted), reason="not_captured"
    )


def nearest_node(name: str, graph: Graph) -> str:
    """'; did you mean decoder.2?' for a node that has not run yet; nothing for one that has.

    Of operators only when an operator is meant: they are many, and a misspelt layer would drown among them.
    """
    if graph.node(name) is not None:
        return ""
    chosen = [node.name for node in graph.nodes if "/" in name or node.kind == "module"]
    return nearest(name, chosen or [node.name for node in graph.nodes])
