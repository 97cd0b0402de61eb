"""A text is a sentence with gaps, in two languages; a sentence is a text with its gaps filled.

    SKIPPED = Text("the update of step {step} was skipped", "轮次 {step} 的更新被跳过")     in sentences/journal.py

    said = SKIPPED.of(step=9)      a Sentence: its id "journal.skipped", its arguments, and an English str
    said.say("zh")                 '轮次 9 的更新被跳过'
    SKIPPED(step=9)                the words themselves, in the language of the person at this terminal

A gap may name a formatter: `{n:count}` 1,204 · `{x:number}` 3.1e-12 · `{n:plural step|steps}` the word that fits ·
`{parts:clauses}` parts joined by semicolons · `{names:list}` by commas · `{why:sentence}` a sentence that may come from
a run recorded before there were ids; any format of Python works too. An argument may be a Sentence.

The journal keeps id, arguments and the English, so that a reader in either language, or of another version, has what
it needs.
"""

from __future__ import annotations

import importlib
import string
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from misstep.sentences.language import Language, language

HOME = "misstep.sentences."
_JOINTS = {"clauses": ("; ", "；"), "list": (", ", "、"), "and": (" and ", "以及")}
"""Formatters of several parts, with what stands between the parts in each language."""


class Text:
    """One sentence in both languages, with named gaps. Its id is its area and name: `replay.not_exact`."""

    __slots__ = ("_id", "_module", "en", "zh")

    def __init__(self, en: str, zh: str) -> None:
        self.en, self.zh = en, zh
        self._id = ""
        self._module = str(sys._getframe(1).f_globals.get("__name__", ""))

    def of(self, **arguments: Any) -> Sentence:
        """The sentence with these arguments, to be stored and passed on."""
        return Sentence(self.id, {name: _plain(value) for name, value in arguments.items()}, text=self)

    def __call__(self, **arguments: Any) -> str:
        """The words in the reader's language, to be shown at once."""
        return self.say(language(), arguments)

    def say(self, lang: Language, arguments: Mapping[str, Any]) -> str:
        """The words in that language."""
        return _fill(self.zh if lang == "zh" else self.en, arguments, lang)

    @property
    def id(self) -> str:
        if not self._id:
            _name_texts(self._module)
        return self._id

    @property
    def parameters(self) -> dict[str, str]:
        """Each gap with its formatter, as the English has it."""
        return {name: spec or "" for _, name, spec, _ in _pieces(self.en) if name}

    def __repr__(self) -> str:
        return f"Text({self.en!r}, {self.zh!r})"


class Sentence(str):
    """A text with its arguments. As a str it is the English; `say` gives either language."""

    __slots__ = ("arguments", "id")
    id: str
    arguments: dict[str, Any]

    def __new__(
        cls, id: str, arguments: Mapping[str, Any], *, english: str | None = None, text: Text | None = None
    ) -> Sentence:
        if english is None:
            english = (text or _text(id)).say("en", arguments)
        made = super().__new__(cls, english)
        made.id, made.arguments = id, dict(arguments)
        return made

    def say(self, lang: Language) -> str:
        """The words in that language; the English as it was stored when this version does not know the id."""
        if lang == "en":
            return self.english
        try:
            return _text(self.id).say(lang, self.arguments)
        except (AttributeError, ImportError, KeyError, TypeError, ValueError):
            return _recorded_before(self.english)

    def plain(self) -> dict[str, Any]:
        """Id and arguments as the journal keeps them."""
        return {"id": self.id, "arguments": {name: _stored(value) for name, value in self.arguments.items()}}

    @property
    def english(self) -> str:
        """Only the words, a plain str."""
        return str.__str__(self)

    def __str__(self) -> str:
        # Kept whole, so that str(error) and str(facts["text"]) lose nothing.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return revived, (self.plain(), self.english)


def said(sentence: str, lang: Language | None = None) -> str:
    """Any sentence in the reader's language: by its id, or by its wording when it was recorded without one."""
    lang = lang or language()
    if isinstance(sentence, Sentence):
        return sentence.say(lang)
    return _recorded_before(sentence) if lang == "zh" else sentence


def in_both(message: Any, field: str = "text") -> None:
    """Of a message whose `field` was given a sentence: the English there, the Chinese in `field_zh` beside it."""
    sentence = getattr(message, field)
    if isinstance(sentence, Sentence):
        setattr(message, field, sentence.english)
        setattr(message, f"{field}_zh", sentence.say("zh"))


def only_english(value: Any) -> str:
    """For encoders that know no subclass of str (`enc_hook` of msgspec)."""
    if isinstance(value, Sentence):
        return value.english
    raise NotImplementedError(f"cannot encode a {type(value).__name__}")


def clauses(parts: Iterable[str]) -> Sentence:
    """Several sentences as one, a semicolon between them."""
    from misstep.sentences import words

    given = [part for part in parts if part]
    return given[0] if len(given) == 1 and isinstance(given[0], Sentence) else words.CLAUSES.of(parts=given)


def revived(plain: Any, english: str) -> str:
    """The sentence the journal kept; only its English when the rest cannot be read."""
    if not isinstance(plain, dict) or not isinstance(plain.get("id"), str):
        return english
    arguments = plain.get("arguments")
    if not isinstance(arguments, dict):
        return english
    try:
        return Sentence(plain["id"], {name: _kept(value) for name, value in arguments.items()}, english=english)
    except (AttributeError, ImportError, KeyError, TypeError, ValueError):
        return english


# ── filling the gaps ─────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=2048)
def _pieces(template: str) -> tuple[tuple[str, str | None, str | None, str | None], ...]:
    return tuple(string.Formatter().parse(template))


def _fill(template: str, arguments: Mapping[str, Any], lang: Language) -> str:
    filled = []
    for literal, name, spec, conversion in _pieces(template):
        filled.append(literal)
        if name is not None:
            filled.append(_shown(arguments[name], spec or "", conversion, lang))
    return "".join(filled)


def _shown(value: Any, spec: str, conversion: str | None, lang: Language) -> str:
    if spec == "hidden":
        return ""
    if spec == "sentence":
        return said(value, lang)
    if spec in _JOINTS:
        return _JOINTS[spec][lang == "zh"].join(_shown(part, "", None, lang) for part in value)
    if isinstance(value, Text):
        value = value.of()
    if isinstance(value, Sentence):
        value = value.say(lang)
    if conversion:
        value = repr(value) if conversion == "r" else str(value)
    if spec.startswith("plural "):
        one, many = spec.removeprefix("plural ").split("|")
        return one if value == 1 else many
    if spec == "count":
        return f"{value:,}"
    if spec == "number":
        return f"{float(value):.4g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return format(float(value) if spec and spec[-1] in "fge%" and isinstance(value, str) else value, spec)


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _name_texts(module: str) -> None:
    """Give every text of a module its id."""
    area = module.removeprefix(HOME)
    for name, value in vars(sys.modules[module]).items():
        entries = value.items() if isinstance(value, dict) else ((None, value),)
        for key, text in entries:
            if isinstance(text, Text) and text._module == module and not text._id:
                text._id = f"{area}.{name.lower()}" + ("" if key is None else f".{key}")


@lru_cache(maxsize=1024)
def _text(id: str) -> Text:
    """The text of that id; raises KeyError or ImportError when there is none."""
    found = texts(id.partition(".")[0]).get(id)
    if found is None:
        found = texts(".".join(id.split(".")[:2]))[id]
    return found


def texts(area: str) -> dict[str, Text]:
    """Every text of an area, by id."""
    module = importlib.import_module(HOME + area)
    found: dict[str, Text] = {}
    for value in vars(module).values():
        for text in value.values() if isinstance(value, dict) else (value,):
            if isinstance(text, Text):
                found.setdefault(text.id, text)
    return found


# ── arguments ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _plain(value: Any) -> Any:
    """Something the journal can hold: a number, a str, a Sentence, or several of them."""
    if value is None or isinstance(value, (Sentence, bool, int, float, str)):
        return value
    if isinstance(value, Text):
        return value.of()
    if isinstance(value, (list, tuple, set, frozenset)):
        return tuple(_plain(one) for one in value)
    return value.item() if hasattr(value, "item") else str(value)


def _stored(value: Any) -> Any:
    if isinstance(value, Sentence):
        return {**value.plain(), "text": value.english}
    return [_stored(one) for one in value] if isinstance(value, tuple) else value


def _kept(value: Any) -> Any:
    if isinstance(value, dict):
        return revived(value, str(value.get("text", "")))
    return tuple(_kept(one) for one in value) if isinstance(value, list) else value


def _recorded_before(sentence: str) -> str:
    from misstep.sentences.recorded_before import in_chinese

    return in_chinese(sentence)
