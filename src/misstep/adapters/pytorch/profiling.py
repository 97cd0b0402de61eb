"""A few steps under torch's profiler, with the module and the user's line of every call.

torch tells operators, shapes and times, but of lines only where functions begin. While steps are profiled, every call
of torch's API is wrapped in a mark `misstep|module|file:line`; outside of them nothing is installed, and nothing costs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from torch.autograd.profiler import record_function
from torch.nn.modules import module as modules
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile

from misstep.adapters.pytorch.names import source_line, user_frame
from misstep.adapters.timing.marks import MARK


class Profiling:
    """One stretch of steps."""

    def __init__(self) -> None:
        self._profile = profile(activities=[ProfilerActivity.CPU], record_shapes=True)
        self._lines = Lines()
        self._handles: list[Any] = []

    def start(self) -> None:
        self._handles = [
            modules.register_module_forward_pre_hook(lambda module, _: self._lines.enter(module)),
            modules.register_module_forward_hook(lambda *_: self._lines.leave(), always_call=True),
        ]
        self._profile.start()
        self._lines.__enter__()  # type: ignore[no-untyped-call]

    def stop(self, path: Path) -> None:
        """End it, and write what was seen in Chrome's format."""
        self._lines.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self._profile.stop()
        for handle in self._handles:
            handle.remove()
        self._profile.export_chrome_trace(str(path))


class Lines(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self._stack: list[str] = []
        self._names: dict[int, str] = {}
        self._marks: dict[tuple[str, Any, int], str] = {}

    def enter(self, module: Any) -> None:
        if not self._stack and id(module) not in self._names:
            self._names |= {id(one): name or type(one).__name__ for name, one in module.named_modules()}
        self._stack.append(self._names.get(id(module), type(module).__name__))

    def leave(self) -> None:
        if self._stack:
            self._stack.pop()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        frame = user_frame(sys._getframe(1))
        if frame is None:
            return func(*args, **(kwargs or {}))
        key = (self._stack[-1] if self._stack else "", frame.f_code, frame.f_lineno)
        mark = self._marks.get(key)
        if mark is None:
            line = source_line(frame.f_code.co_filename, frame.f_lineno)
            mark = self._marks[key] = f"{MARK}|{key[0]}|{line.file}:{line.line}"
        with record_function(mark):
            return func(*args, **(kwargs or {}))
