"""Where compiled code begins and ends: told to whoever reads what MindSpore writes about it.

Two functions run every compiled graph: `_JitExecutor.__call__` for functions, `Cell.compile_and_run` for networks in
graph mode. They are wrapped below the adapter's own seams, so that what ran is known before its loss and its weights
are looked at. One compiled function may call another: only the outermost counts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

import mindspore as ms
from mindspore import context
from mindspore.graph import api
from mindspore.nn.cell import Cell
from numpy.typing import NDArray

from misstep.adapters.mindspore.graph.boundary import optimizers_of
from misstep.adapters.mindspore.names import OPTIMIZERS
from misstep.adapters.mindspore.tensors import leaves


class Follower(Protocol):
    """Hears of compiled code."""

    @property
    def ended(self) -> bool: ...

    @property
    def reads(self) -> bool:
        """Whether there are files to be read once a graph has run."""

    def before_compiled(self, *, update_only: bool) -> None:
        """`update_only`: the optimizer of an eager training, whose update is compiled and nothing else."""

    def after_compiled(self, *, update_only: bool, training: bool) -> None:
        """`training`: it was part of a step, and no evaluation between steps."""

    def compiled_failed(self, error: Exception) -> None: ...


def follow_compiled_code(follower: Follower) -> None:
    """Tell the follower of every run of compiled code, until it has ended."""
    undo: list[Callable[[], None]] = []
    running: list[bool] = []

    def told(run: Callable[[], Any], owner: Any, function: Any = None) -> Any:
        if follower.ended:
            while undo:
                undo.pop()()
            return run()
        if running:
            return run()
        update_only = isinstance(owner, OPTIMIZERS) and context.get_context("mode") == context.PYNATIVE_MODE
        follower.before_compiled(update_only=update_only)
        running.append(True)
        try:
            result = run()
            for tensor in leaves(result)[:1] if follower.reads else ():
                tensor.data_ptr()  # waits until the graph has run
        except Exception as error:
            follower.compiled_failed(error)
            raise
        finally:
            running.pop()
        follower.after_compiled(update_only=update_only, training=_trains(owner, function))
        return result

    function, network = api._JitExecutor.__call__, Cell.compile_and_run

    def jit_call(executor: Any, *args: Any, **kwargs: Any) -> Any:
        return told(lambda: function(executor, *args, **kwargs), executor.obj, executor.fn)

    def compile_and_run(cell: Any, *args: Any, **kwargs: Any) -> Any:
        return told(lambda: network(cell, *args, **kwargs), cell)

    for owner, name, replacement in (
        (api._JitExecutor, "__call__", jit_call),
        (Cell, "compile_and_run", compile_and_run),
    ):
        undo.append(_replace(owner, name, replacement))


def _trains(owner: Any, function: Any) -> bool:
    """Among eager cells compiled code is part of a step; in graph mode what differentiates or updates is."""
    if context.get_context("mode") == context.PYNATIVE_MODE or getattr(function, "__name__", "") == "after_grad":
        return True
    return bool(optimizers_of(function if owner is None else owner))


def tensor_of(array: NDArray[Any]) -> Any:
    """An array as a tensor of MindSpore, for whoever only knows those."""
    return ms.Tensor(array)


def graph_mode() -> bool:
    return bool(context.get_context("mode") == context.GRAPH_MODE)


def _replace(owner: Any, name: str, replacement: Any) -> Callable[[], None]:
    original = getattr(owner, name)
    setattr(owner, name, replacement)

    def undo() -> None:
        if getattr(owner, name) is replacement:
            setattr(owner, name, original)

    return undo


def log_of_mindspore() -> logging.Logger | None:
    """The logger behind MindSpore's own Python messages."""
    from mindspore import log

    make = getattr(log, "_get_logger", None)
    return make() if make is not None else None
