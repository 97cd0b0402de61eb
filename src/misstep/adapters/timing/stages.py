"""What a sample is made of: now and then one is made under Python's profiler, and the time of each function it calls is
added up by the way it was reached. No dataset has to be written for it, and no transform is wrapped.

    Digits.__getitem__ ─┬─ read                4.1 ms
                        └─ Compose ─┬─ Crop    9.6 ms
                                    └─ Flip    0.2 ms
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter_ns
from types import FrameType
from typing import Any

_DEEPEST = 12
_MOST_PATHS = 60
_HIDDEN = ("torch/nn/modules/module.py", "torch/utils/_contextlib.py")
"""Files whose functions only pass a call on."""
_OWN_WAYS = frozenset({"__call__", "forward", "transform", "_transform", "__getitem__", "apply"})
"""Methods that are what their class is there for: the class names the stage."""


class Stages:
    """Of one process."""

    def __init__(self) -> None:
        self.spent: dict[tuple[str, ...], int] = {}
        self.where: dict[str, str] = {}
        """By stage: file and line of its function."""
        self.samples = 0
        self.total_ns = 0

    def run(self, make: Callable[..., Any], *args: Any) -> Any:
        """Call `make` under the profiler; without it where somebody else uses it."""
        if sys.getprofile() is not None:
            return make(*args)
        stack: list[tuple[tuple[str, ...], bool, int]] = []
        """Of every call under way: the way to it, whether it has a name of its own, and when it began."""
        deeper = 0

        def profile(frame: FrameType, event: str, arg: Any) -> None:
            nonlocal deeper
            if event == "call" or event == "c_call":
                if len(stack) >= _DEEPEST:
                    deeper += 1
                    return
                path = stack[-1][0] if stack else ()
                name = self._name(frame) if event == "call" else _builtin(arg)
                stack.append(((*path, name) if name else path, bool(name), perf_counter_ns()))
            elif deeper:
                deeper -= 1
            elif stack:
                path, named, began = stack.pop()
                if named:
                    self.spent[path] = self.spent.get(path, 0) + perf_counter_ns() - began

        began = perf_counter_ns()
        sys.setprofile(profile)
        try:
            return make(*args)
        finally:
            sys.setprofile(None)
            self.samples += 1
            self.total_ns += perf_counter_ns() - began

    def _name(self, frame: FrameType) -> str:
        code = frame.f_code
        if code.co_filename.endswith(_HIDDEN):
            return ""
        name = code.co_name
        owner = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        if getattr(getattr(type(owner), name, None), "__code__", None) is code:
            name = type(owner).__name__ if name in _OWN_WAYS else f"{type(owner).__name__}.{name}"
        elif name.startswith("<"):
            name = f"{name} line {code.co_firstlineno}"
        self.where.setdefault(name, f"{code.co_filename}:{code.co_firstlineno}")
        return name

    def plain(self) -> dict[str, Any]:
        """For the journal: the paths that took longest."""
        paths = sorted(self.spent.items(), key=lambda item: -item[1])[:_MOST_PATHS]
        used = {name for path, _ in paths for name in path}
        return {
            "samples": self.samples,
            "ns": self.total_ns,
            "paths": [[list(path), ns] for path, ns in paths],
            "where": {name: place for name, place in self.where.items() if name in used},
        }

    def text(self, most_bytes: int) -> bytes:
        plain = self.plain()
        while len(text := json.dumps(plain).encode()) > most_bytes and plain["paths"]:
            plain["paths"] = plain["paths"][: len(plain["paths"]) * 2 // 3]
            plain["where"] = {}
        return text


def merged(plains: list[dict[str, Any]]) -> dict[str, Any]:
    """What several workers say, as one."""
    spent: dict[tuple[str, ...], int] = {}
    where: dict[str, str] = {}
    for plain in plains:
        for path, ns in plain["paths"]:
            spent[tuple(path)] = spent.get(tuple(path), 0) + ns
        where.update(plain["where"])
    return {
        "samples": sum(plain["samples"] for plain in plains),
        "ns": sum(plain["ns"] for plain in plains),
        "paths": [[list(path), ns] for path, ns in sorted(spent.items(), key=lambda item: -item[1])[:_MOST_PATHS]],
        "where": where,
    }


def _builtin(function: Any) -> str:
    name = getattr(function, "__qualname__", "") or getattr(function, "__name__", "")
    module = getattr(function, "__module__", None)
    return f"{module}.{name}" if module and module != "builtins" else name
