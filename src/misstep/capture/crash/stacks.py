"""Stacks for somebody who was not there: file, line, code, and the variables in a few words each.

A tensor is its type, shape and statistics; a text is cut; a container is how many of what. Nothing is asked of an
object that could run the user's code: no repr, no property, no length of an unknown class.
"""

from __future__ import annotations

import linecache
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from misstep.core.secrets import HIDDEN, is_secret_name

MOST_FRAMES = 40
MOST_LOCALS = 24
_TEXT = 80

Tensor = Callable[[object], "str | None"]
"""A tensor in words; None for what is none."""

_HERE = str(Path(__file__).resolve().parents[2]) + os.sep
_UNINTERESTING = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)


def of_exception(error: BaseException, tensor: Tensor) -> list[dict[str, Any]]:
    """The frames an exception passed, the outermost first, without misstep's own."""
    frames: list[tuple[FrameType, int]] = []
    where: TracebackType | None = error.__traceback__
    while where is not None:
        frames.append((where.tb_frame, where.tb_lineno))
        where = where.tb_next
    return _told(frames, tensor)


def of_frame(frame: FrameType | None, tensor: Tensor | None = None) -> list[dict[str, Any]]:
    """The stack that ends in this frame, the outermost first."""
    frames: list[tuple[FrameType, int]] = []
    while frame is not None:
        frames.append((frame, frame.f_lineno))
        frame = frame.f_back
    return _told(frames[::-1], tensor)


def of_threads(tensor: Tensor, *, main_locals: bool = True) -> list[dict[str, Any]]:
    """The stack of every thread, the main one first and with its variables; misstep's own threads are left out."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    main = threading.main_thread().ident
    told = []
    for ident, frame in sorted(sys._current_frames().items(), key=lambda pair: pair[0] != main):
        name = names.get(ident, f"thread {ident}")
        if name.startswith("misstep"):
            continue
        stack = of_frame(frame, tensor if ident == main and main_locals else None)
        if stack:
            told.append({"thread": name, "main": ident == main, "frames": stack})
    return told


def variables(error: BaseException | None) -> Iterator[tuple[str, object]]:
    """(name, value) of the variables in the frames of an exception or of the main thread, the innermost first."""
    frames: list[FrameType] = []
    if error is not None:
        where = error.__traceback__
        while where is not None:
            frames.insert(0, where.tb_frame)
            where = where.tb_next
    else:
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
    for frame in frames[:MOST_FRAMES]:
        if not frame.f_code.co_filename.startswith(_HERE):
            yield from list(frame.f_locals.items())


def _told(frames: list[tuple[FrameType, int]], tensor: Tensor | None) -> list[dict[str, Any]]:
    kept = [pair for pair in frames if not pair[0].f_code.co_filename.startswith((_HERE, "<frozen"))]
    if len(kept) > MOST_FRAMES:  # endless recursion: both ends tell the story
        kept = kept[: MOST_FRAMES // 2] + kept[-MOST_FRAMES // 2 :]
    return [_frame(frame, line, tensor) for frame, line in kept]


def _frame(frame: FrameType, line: int, tensor: Tensor | None) -> dict[str, Any]:
    code = frame.f_code
    told: dict[str, Any] = {
        "file": _short(code.co_filename),
        "line": line,
        "function": code.co_qualname,
        "code": linecache.getline(code.co_filename, line).strip(),
    }
    if _is_library(code.co_filename):
        told["library"] = True  # its variables would drown the user's
    elif tensor is not None:
        told["locals"] = summarised(frame, tensor)
    return told


def summarised(frame: FrameType, tensor: Tensor) -> dict[str, str]:
    """The variables of a frame in words; modules, functions and classes left out."""
    told: dict[str, str] = {}
    for name, value in list(frame.f_locals.items()):
        if name.startswith("__") or isinstance(value, _UNINTERESTING):
            continue
        if len(told) >= MOST_LOCALS:
            told["…"] = "more"
            break
        told[name] = HIDDEN if is_secret_name(name) else in_words(value, tensor)
    return told


def in_words(value: object, tensor: Tensor, *, inside: bool = False) -> str:
    """A value in a few words, without running code of its class."""
    kind = type(value)
    if kind in (int, float, bool, complex, types.NoneType):
        return repr(value)
    if kind is str:
        text = str(value)
        return f"text of {len(text)}" if inside else repr(text if len(text) <= _TEXT else text[:_TEXT] + "…")
    described = tensor(value)
    if described is not None:
        return described
    if kind in (list, tuple, set, frozenset, dict):
        return _container(value, tensor, inside)
    if kind in (bytes, bytearray):
        return f"{kind.__name__} of {len(value)}"  # type: ignore[arg-type]
    if isinstance(value, Path):
        return str(value)[:_TEXT]
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def _container(value: Any, tensor: Tensor, inside: bool) -> str:
    name, count = type(value).__name__, len(value)
    if inside or not count:
        return f"{name} of {count}"
    if type(value) is dict:
        shown = [f"{key[:24]}" for key in list(value)[:6] if type(key) is str]
        return f"dict of {count}" + (f": {', '.join(shown)}{', …' if count > len(shown) else ''}" if shown else "")
    first = next(iter(value))
    if type(value) in (list, tuple) and count <= 4:
        return f"{name} ({', '.join(in_words(one, tensor, inside=True) for one in value)})"
    return f"{name} of {count}, the first: {in_words(first, tensor, inside=True)}"


def _is_library(file: str) -> bool:
    return "site-packages" in file or "dist-packages" in file or file.startswith((sys.base_prefix + "/lib", "<"))


def _short(file: str) -> str:
    """Relative to where the program was started, when it lies below."""
    try:
        relative = os.path.relpath(file)
    except ValueError:
        return file
    return file if relative.startswith("..") else relative
