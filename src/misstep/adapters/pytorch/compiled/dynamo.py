"""Where Dynamo is opened: every function it compiled passes two places of its own when it is called.

    compile_wrapper(*args)  ─►  _callback_from_stance      ─► the function runs ─►  set_eval_frame(None)
                                 begins(function, args)                               ends(result)

Both are looked up by name at each call, so that functions compiled before misstep came are heard as well, and none of
the user's objects is replaced. Dynamo is not imported for this: programs that compile nothing never load it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

EVAL_FRAME = "torch._dynamo.eval_frame"
OPENS, CLOSES = "_callback_from_stance", "set_eval_frame"

Heard = Callable[[FrameType], None]


def hear(begins: Heard, ends: Heard, *, ours: CodeType) -> Callable[[], None]:
    """Call these with the frame of every compiled function that is called; what is returned takes it back.

    `ours` stands in for a function of torch's that Dynamo passes over when it looks for a frame to compile, and is
    passed over as well: graphs, breaks and hooks stay those of the program without misstep.
    """
    undo: list[Callable[[], None]] = []

    def open_up() -> None:
        undo.append(_patch(sys.modules[EVAL_FRAME], begins, ends, ours))

    if EVAL_FRAME in sys.modules:
        open_up()
    else:
        later = _AfterImport(open_up)
        sys.meta_path.insert(0, later)
        undo.append(later.stop)

    def remove() -> None:
        while undo:
            undo.pop()()

    return remove


def backends() -> set[int]:
    """What this process has asked code to be compiled with, by id."""
    dynamo = sys.modules.get(EVAL_FRAME)
    return set() if dynamo is None else {key for key, backend in dynamo.cached_backends.items() if backend}


def _patch(dynamo: Any, begins: Heard, ends: Heard, ours: CodeType) -> Callable[[], None]:
    wrapper = _wrapper_code(dynamo)
    if wrapper is None or not hasattr(
        dynamo, "skip_code"
    ):  # another Dynamo than the one we know: compiled functions go unheard, and are said to
        return lambda: None
    opens, closes = getattr(dynamo, OPENS), getattr(dynamo, CLOSES)

    def _callback_from_stance(callback: Any) -> Any:
        frame = sys._getframe(1)
        if frame.f_code is wrapper:
            begins(frame)
        return opens(callback)

    def set_eval_frame(callback: Any) -> Any:
        before = closes(callback)  # first: until then, Dynamo would compile whatever is called here
        frame = sys._getframe(1)
        if callback is None and frame.f_code is wrapper:
            ends(frame)
        return before

    dynamo.skip_code(set_eval_frame.__code__)
    dynamo.skip_code(ours)
    setattr(dynamo, OPENS, _callback_from_stance)
    setattr(dynamo, CLOSES, set_eval_frame)

    def undo() -> None:
        if getattr(dynamo, OPENS) is _callback_from_stance:
            setattr(dynamo, OPENS, opens)
        if getattr(dynamo, CLOSES) is set_eval_frame:
            setattr(dynamo, CLOSES, closes)

    return undo


def _wrapper_code(dynamo: Any) -> CodeType | None:
    """The code every compiled function shares, when it passes the two places."""
    made = dynamo._TorchDynamoContext.__call__.__code__
    for one in made.co_consts:
        if isinstance(one, CodeType) and {OPENS, CLOSES} <= set(one.co_names) and "args" in one.co_varnames:
            return one
    return None


class _AfterImport:
    """Calls `act` once, right after Dynamo was imported."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def stop(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != EVAL_FRAME:
            return None
        self.stop()
        spec = next(
            (one for finder in sys.meta_path if (one := finder.find_spec(name, path, target)) is not None), None
        )
        loader: Any = getattr(spec, "loader", None)
        run = getattr(loader, "exec_module", None)
        if run is None:
            return spec

        def exec_module(module: Any) -> None:
            del loader.exec_module
            run(module)
            with contextlib.suppress(AttributeError):  # an import of the user's never fails because of us
                self._act()

        loader.exec_module = exec_module
        return spec
