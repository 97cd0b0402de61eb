"""Writes in place, of which no version tells: what passed is read before, and what lies there afterwards is new.

On the CPU `x[0] = …`, `copy_` and the assigning primitives write into the memory of a tensor that a cell may have
returned a moment ago; elsewhere all methods with a trailing underscore do. A view is written through to its owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import get_ident
from typing import TYPE_CHECKING, Any

from mindspore import Tensor, ops

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter

_ANSWERS = frozenset({"requires_grad_", "to_", "delete_", "index_of_parent_", "parent_tensor_"})
"""Methods with a trailing underscore that write nothing."""
METHODS = (
    "__setitem__",
    "assign_value",
    *(name for name in dir(Tensor) if name.endswith("_") and not name.startswith("_") and name not in _ANSWERS),
)
PRIMITIVES = tuple(
    getattr(ops, name)
    for name in (
        *("Assign", "AssignAdd", "AssignSub"),
        *("ScatterUpdate", "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterMax", "ScatterMin"),
        *("ScatterNdUpdate", "ScatterNdAdd", "ScatterNdSub", "ScatterNdMul", "ScatterNdDiv"),
    )
    if hasattr(ops, name)
)
"""Primitives that write to their first input."""


def writers(adapter: MindSporeAdapter) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """(class, method, what takes its place) of everything that writes in place."""
    for name in METHODS:
        yield Tensor, name, _method(adapter, getattr(Tensor, name))
    for primitive in PRIMITIVES:
        yield primitive, "__call__", _primitive(adapter, primitive.__call__)


def storage(tensor: Any) -> int:
    """Where the memory begins that a tensor shares with its views. Waits for writes, which change its version late."""
    return int(tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize)


def _method(adapter: MindSporeAdapter, write: Callable[..., Any]) -> Callable[..., Any]:
    def method(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if adapter.busy or adapter.thread != get_ident():
            return write(tensor, *args, **kwargs)
        return _watched(adapter, tensor, lambda: write(tensor, *args, **kwargs))

    return method


def _primitive(adapter: MindSporeAdapter, write: Callable[..., Any]) -> Callable[..., Any]:
    def call(primitive: Any, *args: Any) -> Any:
        if adapter.busy or adapter.thread != get_ident() or not args:
            return write(primitive, *args)
        return _watched(adapter, args[0], lambda: write(primitive, *args))

    return call


def _watched(adapter: MindSporeAdapter, tensor: Any, write: Callable[[], Any]) -> Any:
    with adapter.guarded("before a write"):
        adapter.flow.settle()
        adapter.tape.written_to(tensor)
    result = write()
    with adapter.guarded("after a write"):
        adapter.flow.written(storage(tensor), storage)
    return result
