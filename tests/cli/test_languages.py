"""The language: chosen, or the locale's. That every text has both is tested in tests/sentences."""

from __future__ import annotations

import pytest

import misstep.sentences.language as i18n
from misstep.sentences.cli import general as words


def test_the_locale_decides_unless_a_language_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("MISSTEP_LANG", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    i18n.choose(None)
    assert words.ONE_STEP() == "1 个轮次"
    i18n.choose("en")
    assert words.ONE_STEP() == "1 step"
    i18n.choose(None)
    monkeypatch.setenv("MISSTEP_LANG", "en")
    assert words.ONE_STEP() == "1 step"
