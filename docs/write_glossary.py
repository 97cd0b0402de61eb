"""Writes docs/glossary.md and its Chinese twin from the glossary of the code."""

from __future__ import annotations

from pathlib import Path

from misstep.sentences.glossary import page

PAGES = {"en": "glossary.md", "zh": "glossary.zh.md"}

if __name__ == "__main__":
    for language, name in PAGES.items():
        (Path(__file__).parent / name).write_text(page(language), encoding="utf-8")
