"""Print: text and tensors to the terminal, a file and the run, from eager code and from inside compiled code.

    eager torch, PyNative, numpy ─────────────────────────┐
    torch.compile ── custom operator (printing_torch) ────┼─► show() ─► terminal · print_file_path · run
    MindSpore graph ── pyfunc operator (printing_mindspore)┘

A compiled graph keeps only numbers, so a call is split into its `Words` (texts, and gaps where tensors go), which are
constants of the graph, and its tensors, which arrive when the graph runs.
"""

from __future__ import annotations

import atexit
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from misstep.train.printing.file import Array, append, type_name
from misstep.train.values import framework_of, to_numpy

Words: TypeAlias = tuple[str | None, ...]
"""The texts of one Print; None stands for a tensor."""

_EDGE = 3
_MOST_TEXT_IN_RUN = 4000


class Print:
    """Prints texts and tensors with shape, type and values, in eager and in compiled code of either framework.

    >>> p = misstep.Print()
    >>> p("print Tensor x:", x)
    print Tensor x:
    Tensor(shape=[2, 1], dtype=Int32, value=
    [[1]
     [1]])

    With `gradient=True` it hands its tensors back, and prints their gradients when these flow through:
    `x = p("x", x)`. A tensor of more than `threshold` elements is shown by its corners, extremes and bad values.
    `file` defaults to `set_context(print_file_path=…)`. For MindSpore's graph mode, import mindspore before making it.
    """

    def __new__(cls, **options: Any) -> Print:
        if cls is Print and "mindspore" in sys.modules:
            # Also a Cell then: MindSpore compiles its `construct`, where Python and torch see `__call__`.
            kind: type[Print] = import_module("misstep.train.printing.mindspore").CellPrint
            return kind.__new__(kind)
        return object.__new__(cls)

    def __init__(
        self, *, gradient: bool = False, file: str | Path | None = None, threshold: int = 1000, terminal: bool = True
    ) -> None:
        self.number = next(_numbers)
        self.gradient = gradient
        self.file = None if file is None else Path(file)
        self.threshold = threshold
        self.terminal = terminal
        # Found here, not in __call__: inside torch.compile(fullgraph=True) nothing can be imported any more.
        self._torch = import_module("misstep.train.printing.torch") if "torch" in sys.modules else None
        _printers[self.number] = self

    def __call__(self, *values: Any) -> Any:
        if self._torch is not None and self._torch.is_compiling():
            return self._torch.show_compiled(self.number, self.gradient, values)
        words, tensors = split(values)
        self.show(words, [to_array(tensor) for tensor in tensors])
        return self._with_gradients(words, tensors) if self.gradient else None

    def show(self, words: Words, arrays: Sequence[Array]) -> None:
        """Give one call's texts and values to everybody who wants them."""
        values = joined(words, arrays)
        text = "\n".join(as_text(value, threshold=self.threshold) for value in values)
        if self.terminal:
            # One write: MindSpore's threads and other ranks print too.
            sys.stdout.write(text + "\n")
            sys.stdout.flush()
        file = self.file if self.file is not None else print_file()
        if file is not None:
            append(file, values)
        into_run(text)

    def show_gradient(self, words: Words, array: Array) -> None:
        self.show((*words, "gradient:", None), [array])

    def _with_gradients(self, words: Words, tensors: Sequence[Any]) -> Any:
        label = texts_of(words)
        for tensor in tensors:
            if framework_of(tensor) is not None and (getattr(tensor, "requires_grad", True)):
                tensor.register_hook(_GradientHook(self, label))
        return tensors[0] if len(tensors) == 1 else tuple(tensors)


class _GradientHook:
    """Called with a gradient; returns it unchanged, as MindSpore takes what a hook returns for the gradient."""

    def __init__(self, printer: Print, label: Words) -> None:
        self.printer = printer
        self.label = label

    def __call__(self, gradient: Any) -> Any:
        self.printer.show_gradient(self.label, to_array(gradient))
        return gradient


def is_tensor(value: Any) -> bool:
    """Whether a value is printed as a tensor: one of either framework, or a numpy array."""
    return framework_of(value) is not None or isinstance(value, np.ndarray)


def show_numbered(number: int, words: str, arrays: Sequence[Array]) -> None:
    """What a compiled graph calls: packed words, and the values of its tensors."""
    printer = _printers.get(number)
    if printer is not None:
        printer.show(unpacked(words), arrays)


def packed(words: Words) -> str:
    """Words as one text, a constant of a graph; written so that torch can trace it."""
    return "\x1e".join(["\x00" if word is None else word for word in words])


def unpacked(words: str) -> Words:
    return tuple(None if word == "\x00" else word for word in words.split("\x1e"))


def split(values: Sequence[Any], is_tensor: Callable[[Any], bool] = is_tensor) -> tuple[Words, list[Any]]:
    """The words and the tensors of a call; tuples, lists and dictionaries of tensors are opened."""
    words: list[str | None] = []
    tensors: list[Any] = []
    for value in values:
        _split_into(value, words, tensors, is_tensor)
    return tuple(words), tensors


def texts_of(words: Words) -> Words:
    return tuple(word for word in words if word is not None)


def joined(words: Words, arrays: Sequence[Array]) -> list[str | Array]:
    """Texts and values in the order they were given."""
    waiting = iter(arrays)
    return [next(waiting) if word is None else word for word in words]


def as_text(value: str | Array, *, threshold: int = 1000) -> str:
    """A value as Print shows it; the numbers as MindSpore writes them: 9 digits of a float32, 5 of a float16."""
    if isinstance(value, str):
        return value
    array = value
    shape = ", ".join(map(str, array.shape))
    digits = _DIGITS.get(str(array.dtype), 8)
    shown = np.array2string(
        array.astype(np.float32) if str(array.dtype) == "bfloat16" else array,
        threshold=threshold,
        edgeitems=_EDGE,
        max_line_width=_line_width(array),
        formatter={"float_kind": lambda number: f"{number: .{digits}e}"} if array.ndim else {},
    )
    head = f"Tensor(shape=[{shape}], dtype={type_name(array)}, value="
    body = f"\n{shown}" if array.ndim > 1 else shown
    return f"{head}{body}{_summary(array) if array.size > threshold else ''})"


def into_run(text: str) -> None:
    """As an event of the run, when this process is being watched."""
    process = sys.modules.get("misstep.capture.process")
    session = None if process is None else process.live_session()
    if session is None or session.writer is None:
        return
    facts = {"step": session.step, "text": text[:_MOST_TEXT_IN_RUN]}
    if threading.current_thread() is threading.main_thread():
        _write_waiting()
        session.writer.event("print", **facts)
        return
    # MindSpore's graph runs us on a thread of its own, and the run's writer belongs to the training thread.
    _waiting.append((session, facts))
    if _write_waiting_after not in session.on_step:
        session.on_step.append(_write_waiting_after)


def print_file() -> Path | None:
    """The file of `set_context(print_file_path=…)`."""
    context = sys.modules.get("misstep.train.context")
    path = context.get_context("print_file_path") if context is not None else ""
    return Path(path) if path else None


def to_array(tensor: Any) -> Array:
    """The values of a tensor; bfloat16 stays bfloat16, so that the type shown is the type it has."""
    array = to_numpy(tensor)
    if "bfloat16" in str(getattr(tensor, "dtype", "")).lower():
        return array.astype(ml_dtypes.bfloat16)
    return array


_numbers = count(1)
_printers: dict[int, Print] = {}
"""Kept for ever: a compiled graph holds the number only, and may outlive the object that traced it."""
_waiting: deque[tuple[Any, dict[str, Any]]] = deque()
_DIGITS = {"float16": 4, "bfloat16": 3, "float64": 16}


def _split_into(value: Any, words: list[str | None], tensors: list[Any], is_tensor: Callable[[Any], bool]) -> None:
    if isinstance(value, tuple | list):
        for each in value:
            _split_into(each, words, tensors, is_tensor)
    elif isinstance(value, dict):
        for name, each in value.items():
            words.append(f"{name}:")
            _split_into(each, words, tensors, is_tensor)
    elif is_tensor(value):
        words.append(None)
        tensors.append(value)
    else:
        words.append(str(value))


def _line_width(array: Array) -> int:
    # A row is never broken: MindSpore does not, and grep works on what it prints.
    return 1 << 20 if array.ndim else 75


def _summary(array: Array) -> str:
    if array.dtype.kind not in "fiub" and str(array.dtype) != "bfloat16":
        return ""
    numbers = array.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    bad = f", nan={int(np.isnan(numbers).sum())}, inf={int(np.isinf(numbers).sum())}"
    if not finite.size:
        return bad
    return f", min={finite.min():.4g}, max={finite.max():.4g}, mean={finite.mean():.4g}{bad}"


def _write_waiting() -> None:
    while _waiting:
        session, facts = _waiting.popleft()
        if not session.ended and session.writer is not None:
            session.writer.event("print", **facts)


def _write_waiting_after(*_: Any) -> None:
    _write_waiting()


atexit.register(_write_waiting)
