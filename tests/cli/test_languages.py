"""Both languages say everything, with the same values in it."""

from __future__ import annotations

import string

import pytest

from misstep.cli import i18n, words
from misstep.cli.i18n import Text

TEXTS = {name: value for name, value in vars(words).items() if isinstance(value, Text)}


def values_in(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_sentence_has_the_same_values_in_both_languages(name: str) -> None:
    text = TEXTS[name]
    assert values_in(text.en) == values_in(text.zh)
    assert bool(text.en) == bool(text.zh)


def test_the_locale_decides_unless_a_language_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("MISSTEP_LANG", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    i18n.choose(None)
    assert words.ONE_STEP() == "1 步"
    i18n.choose("en")
    assert words.ONE_STEP() == "1 step"
    i18n.choose(None)
    monkeypatch.setenv("MISSTEP_LANG", "en")
    assert words.ONE_STEP() == "1 step"
