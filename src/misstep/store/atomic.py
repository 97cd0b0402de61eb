"""Files that appear whole or not at all: written under another name beside their place, and then given theirs.

    with whole_file("model.safetensors") as out:
        out.write(…)

A reader never meets half of one, an earlier file of that name stays until the new one is complete, and a full disk, an
error or a signal leaves nothing behind but the earlier file.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


@contextlib.contextmanager
def draft(path: str | Path) -> Iterator[Path]:
    """A name beside `path` for a writer that opens files itself; it becomes `path` when the block ends well."""
    where = Path(path)
    if where.exists() and not where.is_file():  # /dev/stdout, a pipe: there is nothing to put in its place
        yield where
        return
    partial = where.with_name(f".{where.name[:100]}.{os.getpid()}.partial")
    try:
        yield partial
        os.replace(partial, where)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def whole_file(path: str | Path, mode: str = "wb", **options: Any) -> Iterator[IO[Any]]:
    """A file open for writing that takes its name when it is complete."""
    with draft(path) as partial, open(partial, mode, **options) as out:
        yield out
        out.flush()


def write_text(path: str | Path, text: str) -> None:
    """A text, UTF-8."""
    with whole_file(path, "w", encoding="utf-8") as out:
        out.write(text)


def copy_file(source: str | Path, target: str | Path) -> None:
    """A copy that is never half there."""
    with draft(target) as partial:
        shutil.copyfile(source, partial)
