"""Puts everything back after a replay, so that training goes on as if nothing had happened.

Tensors: whatever memory the replay did not allocate itself is copied before the first write to it, and copied back
without touching version counters. Gradients and buffers: other objects are put in their place meanwhile. Python state:
the attributes of modules and hooks, and what hooks and forwards close over; lists and dicts are replaced by copies
while the replay runs. Prints are swallowed. What is left: files, sockets, and objects inside objects.
"""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, TracebackType
from typing import Any

import torch
from torch import nn

from misstep.adapters.pytorch.moment import CONTAINERS, Randomness

_PLAIN = (int, float, complex, bool, str, bytes, tuple, type(None), torch.Tensor)


class Undo:
    """Use as a context manager around a replay; `writes` is called before every in-place operator."""

    def __init__(self, modules: Iterable[nn.Module], leaf_tensors: Iterable[torch.Tensor]) -> None:
        self.modules = list(modules)
        self.leaves = list(leaf_tensors)
        self.touched = 0
        """Tensors of the user that the replay wrote to; all were restored."""
        self._fresh: set[int] = set()
        self._saved: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}
        self._back: list[Callable[[], None]] = []
        self._exits = contextlib.ExitStack()

    def __enter__(self) -> Undo:
        randomness = Randomness.now(exactly=True)
        threads = torch.get_num_threads()
        self._back.append(randomness.restore)
        self._back.append(lambda: torch.set_num_threads(threads))
        for leaf in self.leaves:
            self._swap_gradient(leaf)
        seen: set[int] = set()
        for module in self.modules:
            self._swap_attributes(module, seen)
        for function in self._functions():
            self._swap_closure(function, seen)
        self._exits.enter_context(contextlib.redirect_stdout(io.StringIO()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._exits.close()
        for back in reversed(self._back):
            back()
        for storage, before in self._saved.values():
            storage.copy_(before)
        self.touched = len(self._saved)

    # ── tensors ───────────────────────────────────────────────────────────────────────────────────────────────

    def made(self, tensors: Iterable[torch.Tensor]) -> None:
        """These came out of an operator of the replay."""
        for tensor in tensors:
            if tensor.layout is torch.strided:
                self._fresh.add(tensor.untyped_storage()._cdata)

    def writes(self, tensors: Iterable[torch.Tensor]) -> None:
        """These are about to be written to."""
        for tensor in tensors:
            if tensor.layout is not torch.strided or tensor.device.type == "meta":
                continue
            storage = tensor.untyped_storage()
            if storage._cdata not in self._fresh and storage._cdata not in self._saved:
                self._saved[storage._cdata] = (storage, storage.clone())

    def _swap_gradient(self, leaf: torch.Tensor) -> None:
        gradient = leaf.grad
        leaf.grad = None

        def back() -> None:
            leaf.grad = gradient

        self._back.append(back)

    # ── Python ────────────────────────────────────────────────────────────────────────────────────────────────

    def _swap_attributes(self, thing: Any, seen: set[int]) -> None:
        space = getattr(thing, "__dict__", None)
        if not isinstance(space, dict) or id(space) in seen:
            return
        seen.add(id(space))
        before = dict(space)
        inner = {
            name: dict(space[name]) for name in ("_parameters", "_buffers", "_modules") if isinstance(thing, nn.Module)
        }

        def back() -> None:
            for name in set(space) - set(before):
                del space[name]
            space.update(before)
            for name, entries in inner.items():
                space[name].clear()
                space[name].update(entries)

        self._back.append(back)
        for name, value in before.items():
            if name not in inner and not name.endswith("_hooks") and type(value) in CONTAINERS:
                space[name] = copy.copy(value)
        if isinstance(thing, nn.Module):
            with torch.no_grad():
                for name, buffer in inner["_buffers"].items():
                    if buffer is not None:
                        clone = buffer.detach().clone()
                        thing._buffers[name] = clone
                        self.made([clone])

    def _functions(self) -> Iterator[Any]:
        """Forwards and hooks: what the user's code runs when a module is called."""
        for module in self.modules:
            yield type(module).forward
            for name, hooks in vars(module).items():
                if name.endswith("_hooks") and isinstance(hooks, dict):
                    yield from list(hooks.values())

    def _swap_closure(self, function: Any, seen: set[int]) -> None:
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, nn.Module | type):
            self._swap_attributes(owner, seen)
        function = getattr(function, "__func__", getattr(function, "func", function))
        if not isinstance(function, FunctionType):
            if hasattr(function, "__dict__") and callable(function) and not isinstance(function, type):
                self._swap_attributes(function, seen)
            return
        module = function.__module__ or ""
        if id(function.__code__) in seen or module.partition(".")[0] in ("torch", "misstep"):
            return
        seen.add(id(function.__code__))
        for cell in function.__closure__ or ():
            self._swap_cell(cell, seen)
        space = function.__globals__
        for name in function.__code__.co_names:
            if name in space and (type(space[name]) in CONTAINERS or isinstance(space[name], _PLAIN)):
                self._swap_global(space, name)

    def _swap_cell(self, cell: Any, seen: set[int]) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # not filled yet
            return
        if isinstance(value, FunctionType):
            self._swap_closure(value, seen)
        if type(value) in CONTAINERS:
            cell.cell_contents = copy.copy(value)
        elif not isinstance(value, _PLAIN):
            return

        def back() -> None:
            cell.cell_contents = value

        self._back.append(back)

    def _swap_global(self, space: dict[str, Any], name: str) -> None:
        value = space[name]
        if type(value) in CONTAINERS:
            space[name] = copy.copy(value)

        def back() -> None:
            space[name] = value

        self._back.append(back)
