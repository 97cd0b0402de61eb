"""The page for MindSpore users says what the tests prove."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from misstep.core.watching.conditions import CONDITIONS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def writer() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "write_mindspore.py"))


def test_every_test_the_table_names_is_there(writer: dict[str, Any]) -> None:
    named = [answer for answer in writer["ELSEWHERE"].values() if answer not in writer["REASONS"]]
    missing = []
    for answer in named:
        file, _, name = answer.partition("::")
        if f"def {name}(" not in (ROOT / file).read_text(encoding="utf-8"):
            missing.append(answer)
    assert missing == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_holds_the_table_as_it_is_now(writer: dict[str, Any], language: str) -> None:
    text = (ROOT / "docs" / writer["PAGES"][language]).read_text(encoding="utf-8")
    assert text == writer["with_table"](text, language), "run: python docs/write_mindspore.py"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_condition_is_on_the_page(writer: dict[str, Any], language: str) -> None:
    text = (ROOT / "docs" / writer["PAGES"][language]).read_text(encoding="utf-8")
    assert [name for name in CONDITIONS if f"`{name}`" not in text] == []
