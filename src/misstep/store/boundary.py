"""The boundary every reader of files stands behind: whatever is wrong with a file, it comes out as one FormatError.

    with reading(path, "safetensors header"):
        …                                        IndexError, struct.error, RecursionError, zlib.error …

The error names the file, the byte and what was expected there. Sizes that a file claims are held against what is there,
or against a limit, before anything is allocated for them: a file of a few kilobytes must not cost gigabytes.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from misstep.errors import FormatError, MisstepError
from misstep.sentences import damage

Read = TypeVar("Read")

MB = 1 << 20
TEXT_LIMIT = 64 * MB
"""Bytes of one text or structure (JSON, a header, a pickle) that are unpacked or parsed at once."""
DEEPEST = 200
"""Nesting of anything that is walked: a framework's own files stay below twenty."""


class Damaged(Exception):
    """Raised inside a reader where the bytes are not what they must be; `reading` names the file."""

    def __init__(self, expected: str, *, offset: int | None = None) -> None:
        super().__init__(expected)
        self.expected, self.offset = expected, offset


class TooMuch(Damaged):
    """The file asks for more of something than any real file holds."""


class reading:
    """Whatever goes wrong within becomes a FormatError about that part of that file."""

    __slots__ = ("_path", "_what")

    def __init__(self, path: str | Path, what: str) -> None:
        self._path, self._what = path, what

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, wrong: BaseException | None, where: TracebackType | None
    ) -> None:
        if not isinstance(wrong, Exception) or isinstance(wrong, MisstepError):
            return
        if isinstance(wrong, Damaged):
            raise _told(self._path, self._what, wrong) from None
        path = str(self._path)
        if isinstance(wrong, OSError) and wrong.strerror:
            raise FormatError(damage.NOT_OPENED.of(path=path, why=wrong.strerror), path=path) from wrong
        # A parser met something nobody thought of: still the file's fault, not the reader's.
        expected = "nesting less deep" if isinstance(wrong, RecursionError) else _in_words(wrong)
        raise FormatError(
            damage.SOMEWHERE.of(path=path, what=self._what, expected=expected), path=path, expected=expected
        ) from wrong


def behind(path: str | Path, what: str, load: Callable[[], Read]) -> Callable[[], Read]:
    """The same call, made later, behind the boundary."""

    def guarded() -> Read:
        with reading(path, what):
            return load()

    return guarded


def json_object(
    text: bytes | str,
    *,
    limit: int = TEXT_LIMIT,
    pairs: Callable[[list[tuple[str, Any]]], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """The object that a text of JSON is; raises Damaged for anything else, with the place."""
    if len(text) > limit:
        raise TooMuch(f"at most {limit:,} bytes of JSON, found {len(text):,}")
    try:
        said = json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as wrong:
        raise Damaged(f"JSON ({wrong.msg})", offset=wrong.pos) from None
    except UnicodeDecodeError as wrong:
        raise Damaged("UTF-8", offset=wrong.start) from None
    except RecursionError:
        raise TooMuch("JSON that is nested less deep") from None
    if not isinstance(said, dict):
        raise Damaged("a JSON object", offset=0)
    return said


def json_file(path: Path, what: str) -> dict[str, Any]:
    """The object in a file of JSON, or a FormatError."""
    with reading(path, what):
        if path.stat().st_size > TEXT_LIMIT:
            raise TooMuch(f"at most {TEXT_LIMIT:,} bytes of JSON, found {path.stat().st_size:,}")
        return json_object(path.read_bytes())


def unpacked(archive: zipfile.ZipFile, member: str | zipfile.ZipInfo, *, limit: int = TEXT_LIMIT) -> bytes:
    """One member of a zip whole, when it says that it is no larger than the limit (and zipfile holds it to that)."""
    info = member if isinstance(member, zipfile.ZipInfo) else archive.getinfo(member)
    if info.file_size > limit:
        raise TooMuch(
            f"{info.filename[:80]} of at most {limit:,} bytes, it says {info.file_size:,}", offset=info.header_offset
        )
    with archive.open(info) as file:
        return file.read(limit)


def whole_number(value: object, what: str, *, most: int = 1 << 62) -> int:
    """A count, size or offset: an int that is no bool, not negative, and no more than can be."""
    if type(value) is not int or not 0 <= value <= most:
        shown = value if type(value) in (int, float, bool) and abs(value) < 1e20 else type(value).__name__  # type: ignore[arg-type]
        raise Damaged(f"{what} from 0 to {most:,}, found {shown}")
    return value


def plain_name(name: str) -> bool:
    """Whether a name that came from somewhere else names one thing right here, and nothing above or beside it.

    >>> plain_name("fc1.weight"), plain_name("../etc"), plain_name("a/b")
    (True, False, False)
    """
    return (
        bool(name)
        and len(name.encode("utf-8", "replace")) <= 255
        and name not in (".", "..")
        and not any(mark in name for mark in "/\\\0")
    )


def _told(path: str | Path, what: str, wrong: Damaged) -> FormatError:
    if isinstance(wrong, TooMuch):
        said = damage.TOO_MUCH.of(path=str(path), what=what, expected=wrong.expected)
    elif wrong.offset is None:
        said = damage.SOMEWHERE.of(path=str(path), what=what, expected=wrong.expected)
    else:
        said = damage.AT_BYTE.of(path=str(path), what=what, offset=wrong.offset, expected=wrong.expected)
    return FormatError(said, path=str(path), offset=wrong.offset, expected=wrong.expected)


def _in_words(wrong: Exception) -> str:
    return f"{type(wrong).__name__}: {str(wrong)[:200]}" if str(wrong) else type(wrong).__name__
