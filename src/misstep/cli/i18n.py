"""Two languages: a text is written once in each, side by side, and the language is chosen when it is shown.

>>> Text("{count} runs", "{count} 次运行")(count=3)
'3 runs'
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from misstep.core.chinese import in_chinese

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

_chosen: Language | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """One sentence in both languages; called with its values, it is the sentence in the language in force."""

    en: str
    zh: str

    def __call__(self, **values: object) -> str:
        text = self.zh if language() == "zh" else self.en
        return text.format(**values) if values else text


def said(sentence: str) -> str:
    """A sentence stored with a run, in the language in force."""
    return in_chinese(sentence) if language() == "zh" else sentence


def language() -> Language:
    """What was chosen, else MISSTEP_LANG, else the locale's."""
    if _chosen is not None:
        return _chosen
    for variable in ("MISSTEP_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(variable, "")
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


def choose(wanted: str | None) -> None:
    """Speak this language from now on; None for whatever the environment says."""
    global _chosen
    _chosen = "zh" if wanted == "zh" else "en" if wanted == "en" else None
