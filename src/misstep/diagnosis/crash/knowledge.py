"""What usually lies behind an error: patterns with a cause and a next step, in both languages, read from TOML files.

Ours is knowledge.toml beside this file; the setting `knowledge` names further ones, which are asked first.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from misstep.errors import FormatError
from misstep.settings import Settings

Look = Literal["error", "stack", "end", "log"]
LOOKS: tuple[Look, ...] = ("error", "end", "stack", "log")
"""Where a pattern may be found, the best evidence first."""

OURS = Path(__file__).with_name("knowledge.toml")


@dataclass(frozen=True, slots=True)
class Words:
    """One cause in one language."""

    title: str
    why: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """One entry of the knowledge base."""

    id: str
    framework: str
    pattern: re.Pattern[str]
    look: tuple[Look, ...]
    en: Words
    zh: Words


@dataclass(frozen=True, slots=True)
class Cause:
    """A likely cause of this crash."""

    id: str
    found_in: Look
    matched: str
    en: Words
    zh: Words

    def words(self, language: str) -> Words:
        return self.zh if language == "zh" else self.en


def likely_causes(texts: Mapping[Look, str], *, frameworks: Sequence[str] = (), most: int = 3) -> list[Cause]:
    """The causes that fit, the best first; `frameworks` are those the run used, to leave out the others' entries."""
    found: list[tuple[int, int, Cause]] = []
    for place, known in enumerate(knowledge()):
        if known.framework != "any" and frameworks and known.framework not in frameworks:
            continue
        for where in sorted(known.look, key=LOOKS.index):
            match = known.pattern.search(texts.get(where, ""))
            if match is not None:
                filled = {name: value or "" for name, value in match.groupdict().items()}
                cause = Cause(known.id, where, match[0][:300], _fill(known.en, filled), _fill(known.zh, filled))
                found.append((LOOKS.index(where), place, cause))
                break
    return [cause for _, _, cause in sorted(found, key=lambda one: one[:2])][:most]


def knowledge() -> tuple[Known, ...]:
    """Every entry, the user's own first."""
    listed = str(Settings.load().knowledge)
    files = [Path(part).expanduser() for part in listed.split(os.pathsep) if part]
    return tuple(known for file in (*files, OURS) for known in _read(file))


@lru_cache(maxsize=16)
def _read(file: Path) -> tuple[Known, ...]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        return tuple(_known(entry) for entry in table.get("cause", []))
    except (OSError, ValueError, KeyError, TypeError, re.error) as error:
        raise FormatError(
            f"cannot read the error patterns in {file}: {error}; an entry is a [[cause]] with id, pattern and en",
            path=str(file),
        ) from None


def _known(entry: dict[str, Any]) -> Known:
    look = tuple(entry.get("look", ("error",)))
    unknown = [word for word in look if word not in LOOKS]
    if unknown:
        raise ValueError(f"{entry['id']}: look {unknown[0]!r} is none of {', '.join(LOOKS)}")
    en = _words(entry["en"])
    return Known(
        id=str(entry["id"]),
        framework=str(entry.get("framework", "any")),
        pattern=re.compile(entry["pattern"], re.IGNORECASE),
        look=look,
        en=en,
        zh=_words(entry["zh"]) if "zh" in entry else en,
    )


def _words(table: dict[str, str]) -> Words:
    return Words(str(table["title"]), str(table.get("why", "")), str(table.get("try", "")))


def _fill(words: Words, values: dict[str, str]) -> Words:
    def fill(text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), text).strip()

    return Words(fill(words.title), fill(words.why), fill(words.advice))
