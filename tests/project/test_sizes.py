"""A file holds one idea, a room few files: what grows beyond a screenful of names is divided."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import misstep

PACKAGE = Path(misstep.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES, MOST_MODULES = 400, 16


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {
        path.relative_to(PACKAGE).as_posix(): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES
    }
    too_long = {name: length for name, length in lengths.items() if length > MOST_LINES}
    assert too_long == {}


def test_no_folder_has_more_than_16_modules() -> None:
    modules = Counter(path.parent.relative_to(PACKAGE).as_posix() for path in FILES if path.name != "__init__.py")
    assert {folder: count for folder, count in modules.items() if count > MOST_MODULES} == {}
