"""The language of the reader: chosen, or taken from the environment."""

from __future__ import annotations

import os
from typing import Literal

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

_chosen: Language | None = None


def language() -> Language:
    """The chosen language, else that of MISSTEP_LANG, else the locale's."""
    if _chosen is not None:
        return _chosen
    for variable in ("MISSTEP_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(variable, "")
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


def choose(wanted: str | None) -> None:
    """Use this language from now on; None for the environment's."""
    global _chosen
    _chosen = "zh" if wanted == "zh" else "en" if wanted == "en" else None
