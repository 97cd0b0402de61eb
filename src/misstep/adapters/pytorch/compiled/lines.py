"""Lines of the user's program behind code that torch.compile generated.

An operator of a compiled graph runs in a function that torch.fx wrote: its file is called `<eval_with_key>`, and each
of its lines sets the node it is named after. The node knows the stack it was traced from.

    log = torch.ops.aten.log.default(add)      ─► node "log" ─► train.py:16
"""

from __future__ import annotations

import linecache
import re
import sys
from types import CodeType, FrameType
from typing import Any, NamedTuple

from misstep.adapters.pytorch.names import is_users

GENERATED = "<eval_with_key"
_KERNELS = re.compile(r"[/\\]torchinductor_[^/\\]*[/\\]")
_DEEPEST = 12
_NAME = re.compile(r"\s*(\w+)")
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_FOUND: dict[tuple[CodeType, int], tuple[Origin, int] | None] = {}


class Origin(NamedTuple):
    """A file, where a code object is expected."""

    co_filename: str


def is_generated(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(GENERATED)


def runs_kernels(frame: FrameType | None) -> bool:
    """Whether this is code of Inductor: it hands memory around that holds nothing yet, and fuses what it can."""
    return frame is not None and _KERNELS.search(frame.f_code.co_filename) is not None


def inside_generated(depth: int) -> bool:
    """Whether the caller, `depth` frames up, was called from generated code."""
    frame: FrameType | None = sys._getframe(depth)
    for _ in range(_DEEPEST):
        if frame is None:
            return False
        if is_generated(frame):
            return True
        frame = frame.f_back
    return False


def traced_line(frame: FrameType) -> tuple[Origin, int] | None:
    """The user's (file, line) that the running line of a generated function was traced from."""
    key = (frame.f_code, frame.f_lineno)
    if key not in _FOUND:
        _FOUND[key] = _look_up(frame)
    return _FOUND[key]


def _look_up(frame: FrameType) -> tuple[Origin, int] | None:
    graph = getattr(frame.f_locals.get("self"), "graph", None)
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    named = _NAME.match(text)
    if graph is None or named is None:
        return None
    node = next((one for one in graph.nodes if one.name == named.group(1)), None)
    line = node_line(node)
    return (Origin(line[0]), line[1]) if line else None


def node_line(node: Any) -> tuple[str, int] | None:
    """The user's (file, line) that a node of a graph was traced from."""
    lines = [one for one in _FRAME.findall(getattr(node, "stack_trace", None) or "") if is_users(one[0])]
    return (lines[-1][0], int(lines[-1][1])) if lines else None
