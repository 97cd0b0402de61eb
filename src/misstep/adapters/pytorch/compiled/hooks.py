"""Hooks that compiled code does not call: those registered after their module was compiled.

Dynamo traces a module with the hooks it has; it does not look for new ones, so that a hook added later is skipped
without a word. torch numbers hooks as they are registered, so one number says which of them the compiler can have seen.

    compiled frame: a function that calls the network     hooks of every module in it are traced, or skipped
    compiled frame: the network's own forward              its own hooks run around it; those inside are skipped
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle

from misstep.adapters.pytorch.compiled.holders import networks_of

_KINDS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_MOST_FUNCTIONS = 256

Frame = tuple[str, int]
"""Code by its file and first line."""
Hook = tuple[int, int]
"""A hook by id of its module and its number."""


@dataclass(slots=True)
class Called:
    """A compiled function that was called, and the networks it works with."""

    function: Any
    networks: tuple[weakref.ref[nn.Module], ...]

    @property
    def frame(self) -> Frame | None:
        return _frame(getattr(self.function, "__func__", self.function))


class IgnoredHooks:
    """Of the compiled functions of one process."""

    def __init__(self) -> None:
        self.frames: set[Frame] = set()
        """Code that was compiled."""
        self._called: dict[int, Called] = {}
        self._traced_below: int | None = None
        """Hooks with a smaller number were there when something was compiled last."""
        self._told: set[Hook] = set()

    def compiling(self) -> None:
        """The compiler begins, and sees the hooks there are."""
        self._traced_below = RemovableHandle.next_id

    def called(self, function: Any, args: Any, kwargs: Any) -> None:
        """A compiled function is about to run."""
        if id(function) in self._called or len(self._called) >= _MOST_FUNCTIONS:
            return
        self.compiling()
        networks = networks_of(function, args, kwargs)
        self._called[id(function)] = Called(function, tuple(weakref.ref(one) for one in networks))

    def news(self) -> Iterator[dict[str, Any]]:
        """Hooks nobody was told of, as one record."""
        if self._traced_below is None or RemovableHandle.next_id == self._traced_below:
            return
        later = {hook: function for module in self._covered() for hook, function in self._later(module)}
        if later:
            self._told.update(later)
            function = later[min(later)]
            file, line = _frame(function) or _frame(type(function).__call__) or ("", 0)
            yield {
                "hooks": len(later),
                "modules": len({module for module, _ in later}),
                "function": getattr(function, "__name__", type(function).__name__),
                "file": file,
                "line": line,
            }

    def _covered(self) -> Iterator[nn.Module]:
        """Modules that are called inside of compiled code."""
        for called in self._called.values():
            traced = called.frame in self.frames
            for reference in called.networks:
                network = reference()
                if network is not None:
                    yield from self._inside(network, traced)

    def _inside(self, module: nn.Module, traced: bool) -> Iterator[nn.Module]:
        own = _frame(type(module).forward) in self.frames
        if traced and not own:
            yield module
        for child in module.children():
            yield from self._inside(child, traced or own)

    def _later(self, module: nn.Module) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        for kind in _KINDS:
            for number, function in module.__dict__.get(kind, {}).items():
                hook = (id(module), number)
                if number >= (self._traced_below or 0) and hook not in self._told:
                    yield hook, function


def _frame(function: Any) -> Frame | None:
    code = getattr(function, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if isinstance(code, CodeType) else None
