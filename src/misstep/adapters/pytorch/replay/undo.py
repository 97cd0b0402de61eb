"""Puts everything back after a replay, so that training goes on as if nothing had happened.

Tensors: whatever memory the replay did not allocate itself is copied before the first write to it, and copied back
without touching version counters. Gradients and buffers: other objects are put in their place meanwhile. Python state:
the attributes of modules, of hooks and of the user's own objects in them, and what the methods of modules, hooks and
autograd functions close over or name as globals; lists and dicts are replaced by copies while the replay runs, random
generators are wound back. Prints are swallowed. What is left: files, sockets, and objects deep inside objects.
"""

from __future__ import annotations

import contextlib
import io
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, TracebackType
from typing import Any

import torch
from torch import nn

from misstep.adapters.pytorch.replay.generators import Drawn, is_generator
from misstep.adapters.pytorch.replay.state import Randomness, has_parts
from misstep.adapters.replaying.copies import CONTAINERS, twin_of

_PLAIN = (int, float, complex, bool, str, bytes, tuple, type(None), torch.Tensor)
_DEEPEST = 3
"""Objects within objects that are looked into."""
_STANDARD = sysconfig.get_paths()["stdlib"]


class Undo:
    """Use as a context manager around a replay; `writes` is called before every in-place operator."""

    def __init__(
        self, modules: Iterable[nn.Module], leaf_tensors: Iterable[torch.Tensor], functions: Iterable[type] = ()
    ) -> None:
        self.modules = list(modules)
        self.functions = list(functions)
        """Autograd functions that are called outside of modules."""
        self.leaves = list(leaf_tensors)
        self.touched = 0
        """Tensors of the user that the replay wrote to; all were restored."""
        self.drew: list[Any] = []
        """Generators of the user that the replay drew from; all were restored."""
        self._seen: set[int] = set()
        self._named: set[tuple[int, str]] = set()
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
        for module in self.modules:
            self._swap_attributes(module)
            self._swap_class(type(module))
            if not has_parts(module):  # batch norm does not say that it writes to its running means
                self.writes(module.buffers(recurse=False))
        for function in self.functions:
            self._swap_class(function)
        for hook in self._hooks():
            self._swap_reachable(hook)
        self._exits.enter_context(contextlib.redirect_stdout(io.StringIO()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._exits.close()
        failed: Exception | None = None
        for back in reversed(self._back):
            try:
                back()
            except Exception as problem:  # the rest must be put back all the same
                failed = failed or problem
        for storage, before in self._saved.values():
            storage.copy_(before)
        self.touched = len(self._saved)
        if failed is not None:
            raise failed

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

    def _swap_attributes(self, thing: Any, depth: int = 0) -> None:
        space = getattr(thing, "__dict__", None)
        if not isinstance(space, dict) or id(space) in self._seen:
            return
        self._seen.add(id(space))
        before = dict(space)
        parts = ("_parameters", "_buffers", "_modules") if has_parts(thing) else ()
        inner = {name: dict(space[name]) for name in parts}

        def back() -> None:
            for name in set(space) - set(before):
                del space[name]
            space.update(before)
            for name, entries in inner.items():
                space[name].clear()
                space[name].update(entries)

        self._back.append(back)
        for name, value in before.items():
            if name in inner or name.endswith("_hooks"):
                continue
            if type(value) in CONTAINERS:
                space[name] = twin_of(value)
            else:
                self._look_into(value, depth)
        if inner:
            with torch.no_grad():
                for name, buffer in inner["_buffers"].items():
                    if buffer is not None:
                        clone = buffer.detach().clone()
                        thing._buffers[name] = clone
                        self.made([clone])

    def _look_into(self, value: Any, depth: int) -> None:
        """A thing that code of the user holds: a generator it may draw from, or an object of a class of its own."""
        if isinstance(value, (*_PLAIN, nn.Module, type)):
            return
        if is_generator(value):
            self._hold_generator(value)
        elif depth < _DEEPEST and is_users(type(value)):
            self._swap_attributes(value, depth + 1)

    def _hold_generator(self, generator: Any) -> None:
        if id(generator) in self._seen:
            return
        self._seen.add(id(generator))
        before = Drawn.of(generator)

        def back() -> None:
            if not before.same(Drawn.of(generator)):
                self.drew.append(generator)
                before.put_back(generator)

        self._back.append(back)

    def _swap_class(self, kind: type) -> None:
        """What the methods of a class can reach, and the values kept in the class itself."""
        for cls in kind.__mro__:
            if id(cls) in self._seen or not is_users(cls):
                continue
            self._seen.add(id(cls))
            for name, value in list(vars(cls).items()):
                function = getattr(value, "__func__", value)
                if isinstance(function, FunctionType):
                    self._swap_reachable(function)
                elif not name.startswith("__") and (type(value) in CONTAINERS or isinstance(value, _PLAIN)):
                    self._swap_class_value(cls, name, value)

    def _swap_class_value(self, cls: type, name: str, value: Any) -> None:
        if type(value) in CONTAINERS:
            setattr(cls, name, twin_of(value))
        self._back.append(lambda: setattr(cls, name, value))

    def _hooks(self) -> Iterator[Any]:
        for module in self.modules:
            for name, hooks in vars(module).items():
                if name.endswith("_hooks") and isinstance(hooks, dict):
                    yield from list(hooks.values())

    def _swap_reachable(self, function: Any) -> None:
        """What a function of the user closes over, and the globals it and the functions it calls name."""
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, nn.Module | type):
            self._swap_attributes(owner)
        function = getattr(function, "__func__", getattr(function, "func", function))
        if not isinstance(function, FunctionType):
            if hasattr(function, "__dict__") and callable(function) and not isinstance(function, type):
                self._swap_attributes(function)
            return
        if id(function.__code__) in self._seen or not is_users(function):
            return
        self._seen.add(id(function.__code__))
        for cell in function.__closure__ or ():
            self._swap_cell(cell)
        for name in _names_in(function.__code__):
            self._swap_global(function.__globals__, name)

    def _swap_cell(self, cell: Any) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # not filled yet
            return
        if isinstance(value, FunctionType):
            self._swap_reachable(value)
        if type(value) in CONTAINERS:
            cell.cell_contents = twin_of(value)
        elif not isinstance(value, _PLAIN):
            self._look_into(value, 1)
            return

        def back() -> None:
            cell.cell_contents = value

        self._back.append(back)

    def _swap_global(self, space: dict[str, Any], name: str) -> None:
        value = space.get(name, space)
        if value is space or (id(space), name) in self._named:
            return
        self._named.add((id(space), name))
        if isinstance(value, FunctionType):
            self._swap_reachable(value)
        elif isinstance(value, type):
            if issubclass(value, torch.autograd.Function):
                self._swap_class(value)
        elif type(value) in CONTAINERS or isinstance(value, _PLAIN):
            if type(value) in CONTAINERS:
                space[name] = twin_of(value)

            def back() -> None:
                space[name] = value

            self._back.append(back)
        else:
            self._look_into(value, 1)


def is_users(thing: Any) -> bool:
    """Whether a function or class was written for this program: not Python's, a framework's or a library's."""
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    if module is None or thing.__module__.partition(".")[0] in ("torch", "misstep", "builtins"):
        return False
    return file is None or not ("site-packages" in file or "dist-packages" in file or file.startswith(_STANDARD))


def _names_in(code: CodeType) -> Iterator[str]:
    """Every global name a piece of code may use, its inner functions included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)
