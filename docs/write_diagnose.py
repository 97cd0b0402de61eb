"""Writes docs/diagnose.md and its Chinese twin: a page of words, and the rules as the code has them."""

from __future__ import annotations

from pathlib import Path

from misstep.diagnosis.page import page

PAGES = {"en": "diagnose.md", "zh": "diagnose.zh.md"}

if __name__ == "__main__":
    for language, name in PAGES.items():
        (Path(__file__).parent / name).write_text(page(language), encoding="utf-8")
