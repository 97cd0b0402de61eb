"""Sixteen networks written twice, as two teams would write them; each file stands alone and has a `build`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from misstep.migration.sources import Built

Twins = Callable[[str], tuple[Built, Built]]

HERE = Path(__file__).parent
NAMES = sorted(path.stem.removeprefix("torch_") for path in HERE.glob("torch_*.py"))
