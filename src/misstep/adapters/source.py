"""The user's own line: the nearest frame outside the framework and misstep."""

from __future__ import annotations

import linecache
import os
from functools import lru_cache
from types import CodeType, FrameType

from misstep.core.graph import Source

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def user_source(frame: FrameType | None, *libraries: str) -> Source | None:
    """The line from which a framework was called; `libraries` are its folders or files.

    >>> user_source(sys._getframe(), mindspore_folder)
    Source(file='train.py', line=87, code='y = ops.log(y)')
    """
    while frame is not None:
        if _is_users(frame.f_code, libraries):
            return source_line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


@lru_cache(maxsize=65536)
def source_line(file: str, line: int) -> Source:
    """Relative to where the program was started, when it lies below: reports travel between machines."""
    relative = os.path.relpath(file)
    return Source(file if relative.startswith("..") else relative, line, linecache.getline(file, line).strip())


@lru_cache(maxsize=65536)
def _is_users(code: CodeType, libraries: tuple[str, ...]) -> bool:
    return not code.co_filename.startswith(("<frozen", "<string>", _OURS, *libraries))
