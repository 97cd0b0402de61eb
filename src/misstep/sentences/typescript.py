"""The page's words as TypeScript: every dictionary of web/src is written from the catalogue and never by hand.

    python -m misstep.sentences.typescript --write    writes web/src/**/*.gen.ts of this source tree

A test compares the files with the catalogue.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from misstep.sentences.language import LANGUAGES, Language
from misstep.sentences.page import control, crash, diagnose, general, held, looking, runs, speed, study
from misstep.sentences.text import Text

WEB = Path(__file__).resolve().parents[3] / "web" / "src"
DICTIONARIES: dict[str, dict[str, Text]] = {
    "i18n/": {**general.WORDS, **control.WORDS, **looking.WORDS, **runs.WORDS, **crash.WORDS, **diagnose.WORDS},
    "held/words.": held.WORDS,
    "study/words.": study.WORDS,
    "speed/words.": speed.WORDS,
}
"""By where the page keeps them: its own words, and those fetched with a page of their own."""


def files() -> dict[Path, str]:
    """Every generated file and what it holds."""
    return {
        WEB / f"{place}{lang}.gen.ts": dictionary(words, lang)
        for place, words in DICTIONARIES.items()
        for lang in LANGUAGES
    }


def dictionary(words: dict[str, Text], lang: Language) -> str:
    """One dictionary in one language."""
    said = {key: text.zh if lang == "zh" else text.en for key, text in sorted(words.items())}
    lines = [f"  {json.dumps(key)}: {json.dumps(text, ensure_ascii=False)}," for key, text in said.items()]
    head = "// Written by `python -m misstep.sentences.typescript --write` from misstep/sentences/page; do not edit."
    return "\n".join([head, f"export const {lang} = {{", *lines, "};", ""])


def main(arguments: list[str]) -> int:
    for path, content in files().items():
        if arguments == ["--write"]:
            path.write_text(content, encoding="utf-8")
        print(path.relative_to(WEB))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
