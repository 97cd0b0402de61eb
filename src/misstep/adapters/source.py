"""The user's own line: the nearest frame outside the framework and misstep."""

from __future__ import annotations

import linecache
import os
import re
import traceback
from functools import lru_cache
from types import CodeType, FrameType

from misstep.core.graph import Source

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def user_source(frame: FrameType | None, *libraries: str) -> Source | None:
    """The line from which a framework was called; `libraries` are the folders or files of the framework, and
    of an adapter that lives outside of misstep.

    >>> user_source(sys._getframe(), mindspore_folder)
    Source(file='train.py', line=87, code='y = ops.log(y)')
    """
    while frame is not None:
        if _is_users(frame.f_code, libraries):
            return source_line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def raised_at(error: BaseException) -> str:
    """The user's innermost line an exception passed. A worker's traceback is part of its text, and comes first."""
    told = [(file, int(line)) for file, line in _TOLD_FRAME.findall(str(error))]
    passed = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
    own = [place for place in (*passed, *told) if not _INSTALLED.search(place[0]) and not place[0].startswith("<")]
    return str(source_line(*own[-1])) if own else ""


_TOLD_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_INSTALLED = re.compile(r"[/\\](?:site-packages|dist-packages|misstep|python3\.\d+)[/\\]")


@lru_cache(maxsize=65536)
def source_line(file: str, line: int) -> Source:
    """Relative to where the program was started, when it lies below: reports travel between machines."""
    relative = os.path.relpath(file)
    return Source(file if relative.startswith("..") else relative, line, linecache.getline(file, line).strip())


@lru_cache(maxsize=65536)
def _is_users(code: CodeType, libraries: tuple[str, ...]) -> bool:
    return not code.co_filename.startswith(("<frozen", "<string>", _OURS, *libraries))
