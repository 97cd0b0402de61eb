"""The reference pages say what the code does."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from misstep.core.watching.conditions import CONDITIONS
from misstep.core.watching.watchtext import parse_watch

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_is_what_the_table_says(language: str) -> None:
    writer = runpy.run_path(str(DOCS / "write_conditions.py"))
    path = DOCS / writer["PAGES"][language]

    assert path.read_text(encoding="utf-8") == writer["page"](language), "run: python docs/write_conditions.py"


@pytest.mark.parametrize("name", ["conditions.md", "conditions.zh.md"])
def test_every_watchpoint_on_the_page_can_be_typed(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    typed = re.findall(r"--watch '([^']+)'", text)
    listed = text.rpartition("```text\n")[2].partition("\n```")[0].splitlines()

    assert len(typed) == 2
    assert len(listed) == 11
    for watch in [*typed, *listed]:
        assert parse_watch(watch).condition in {*CONDITIONS, "max > 6e4"}
