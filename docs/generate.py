"""Writes the pages and pictures that are made from the code; `make docs` runs it."""

from __future__ import annotations

import runpy
from pathlib import Path

for script in ("write_conditions.py", "write_glossary.py", "write_lint.py", "write_mindspore.py", "picture.py"):
    runpy.run_path(str(Path(__file__).parent / script), run_name="__main__")
