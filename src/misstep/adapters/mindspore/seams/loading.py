"""MindSpore's data pipelines and compiler: how long a batch is waited for, and how long a graph is compiled.

    Iterator.__next__                               the wait: create_dict_iterator, create_tuple_iterator, Model.train
    _JitExecutor.compile, _CellGraphExecutor.compile    graphs

A pipeline runs in threads of MindSpore's own; what it consists of is read off its tree of datasets.
"""

from __future__ import annotations

import inspect
import time
import weakref
from collections.abc import Iterator
from threading import get_ident
from typing import TYPE_CHECKING, Any

from mindspore.dataset.engine import iterators
from mindspore.graph import api

from misstep.core.segments import DATA, TRANSFER

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter

_MOST_STAGES = 32
_MOST_INPUTS = 8
_MET: weakref.WeakSet[Any] = weakref.WeakSet()


def loading(adapter: MindSporeAdapter) -> Iterator[tuple[Any, str, Any]]:
    """(owner, name, replacement) of what is timed."""
    following = iterators.Iterator.__next__

    def __next__(iterator: Any) -> Any:
        if adapter.listening is None or adapter.thread not in (0, get_ident()):
            return following(iterator)
        clock = adapter.clock
        if iterator not in _MET:
            _MET.add(iterator)
            clock.epoch = True
            with adapter.guarded("when a data pipeline began"):
                adapter.loaders.met(pipeline_facts(iterator.dataset))
        clock.ask(-1)
        clock.switch(DATA)
        try:
            return following(iterator)
        finally:
            clock.switch(TRANSFER)

    yield iterators.Iterator, "__next__", __next__
    for owner in (api._JitExecutor, api._CellGraphExecutor):
        yield owner, "compile", _timed(adapter, owner.compile)


def _timed(adapter: MindSporeAdapter, compile: Any) -> Any:
    def compiles(*args: Any, **kwargs: Any) -> Any:
        if adapter.listening is None or adapter.thread not in (0, get_ident()):
            return compile(*args, **kwargs)
        before, graphs, began = adapter.clock.compiles(), len(api.ms_compile_cache), time.time_ns()
        try:
            result = compile(*args, **kwargs)
        finally:
            adapter.clock.switch(before)
        if len(api.ms_compile_cache) > graphs or (isinstance(result, tuple) and result[-1] is True):
            with adapter.guarded("after a graph was compiled"):
                adapter.compilations.add("compiled", **graph_facts(args, began))
        return result

    return compiles


def graph_facts(args: Any, began: int) -> dict[str, Any]:
    """A graph that has just been compiled, from what the compiler was called with: a function, or a network."""
    executor, *given = args
    function = getattr(executor, "fn", None)
    if function is None:  # _CellGraphExecutor.compile(self, network, *inputs)
        network, *given = given
        function, name = _users_part(network)
    else:  # _JitExecutor.compile(self, method_name, *inputs)
        given = given[1:]
        name = getattr(function, "__qualname__", str(function))
    code = getattr(inspect.unwrap(function), "__code__", None)
    return {
        "function": name,
        "file": getattr(code, "co_filename", ""),
        "line": getattr(code, "co_firstlineno", 0),
        "began": began,
        "seconds": (time.time_ns() - began) * 1e-9,
        "inputs": [_described(one) for one in given[:_MOST_INPUTS]],
    }


def _users_part(network: Any) -> tuple[Any, str]:
    """The code a user knows a graph by: a wrapper of MindSpore's is named after the network in it."""
    outer = type(network)
    for _, cell in network.cells_and_names():
        kind = type(cell)
        if not kind.__module__.startswith("mindspore."):
            return kind.construct, kind.__name__ if kind is outer else f"{outer.__name__}({kind.__name__})"
    return outer.construct, outer.__name__


def _described(value: Any) -> str:
    """A tensor by its type and shape, anything else by its value as far as that is short: what a graph is bound to.

    >>> _described(0.5)
    '0.5'
    """
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"{value.dtype}{list(shape)}".replace("Float", "float").replace("Int", "int")
    return repr(value)[:40]


def pipeline_facts(dataset: Any) -> dict[str, Any]:
    """The datasets of a pipeline from its source to its end, each with what can be set on it."""
    stages: list[dict[str, Any]] = []
    waiting = [dataset]
    while waiting and len(stages) < _MOST_STAGES:
        one = waiting.pop(0)
        stages.append(
            {
                "stage": type(one).__name__,
                "num_workers": getattr(one, "num_parallel_workers", None),
                "python": _python_functions(one),
            }
        )
        waiting += list(getattr(one, "children", ()))
    batch = getattr(dataset, "batch_size", None)
    workers = [stage["num_workers"] for stage in stages if stage["num_workers"]]
    return {
        "framework": "mindspore",
        "dataset": stages[-1]["stage"] if stages else "",
        "samples": None,
        "num_workers": max(workers, default=None),
        "batch_size": batch if isinstance(batch, int) else None,
        "stages": stages[::-1],
        "source": None,
    }


def _python_functions(dataset: Any) -> list[str]:
    """Names of the Python functions a stage calls."""
    found = getattr(dataset, "operations", None) or []
    return [
        str(getattr(one, "__name__", type(one).__name__))
        for one in (found if isinstance(found, list | tuple) else [found])
        if callable(one) and not type(one).__module__.startswith("mindspore")
    ]
