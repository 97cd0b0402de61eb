"""Every text exists in both languages, with the same gaps, in the words of the glossary."""

from __future__ import annotations

import ast
import importlib
import pickle
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import misstep
from misstep import sentences
from misstep.sentences import words
from misstep.sentences.glossary import TERMS, page
from misstep.sentences.page import control, crash, diagnose, general, looking, runs
from misstep.sentences.text import HOME, Sentence, Text, clauses, revived, said, texts
from misstep.sentences.typescript import DICTIONARIES, files

PACKAGE = Path(misstep.__file__).parent
ROOT = PACKAGE.parents[1]
AREAS = sorted(
    module.name.removeprefix(HOME) for module in pkgutil.walk_packages(sentences.__path__, HOME) if not module.ispkg
)
TEXTS = {id: text for area in AREAS for id, text in texts(area).items()}
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def gaps(template: str) -> set[str]:
    return set(re.findall(r"\{(\w+)", template.replace("{{", "").replace("}}", "")))


def test_a_text_has_the_same_gaps_in_both_languages() -> None:
    assert [id for id, text in TEXTS.items() if gaps(text.en) != gaps(text.zh)] == []


def test_no_text_is_left_in_the_other_language() -> None:
    assert [id for id, text in TEXTS.items() if bool(text.en) != bool(text.zh) or CHINESE.search(text.en)] == []


def test_texts_use_the_words_of_the_glossary() -> None:
    wrong = [
        f"{id}: {text.zh!r} should say {term.zh}"
        for id, text in TEXTS.items()
        for term in TERMS
        for word in term.never
        if re.search(word, text.zh)
    ]
    assert wrong == []


def test_the_chinese_documents_use_the_words_of_the_glossary() -> None:
    wrong = [
        f"{path.name}:{number}: {line[:60]!r} should say {term.zh}"
        for path in [*sorted((ROOT / "docs").glob("*.zh.md")), ROOT / "README.zh.md"]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for term in TERMS
        for word in term.never
        if re.search(word, line)
    ]
    assert wrong == []


def test_two_texts_never_share_an_id() -> None:
    found = [text.id for area in AREAS for text in set(texts(area).values())]
    assert len(found) == len(set(found))
    assert all(TEXTS[text.id] is text for text in TEXTS.values())


def test_a_sentence_is_its_english_and_says_either_language() -> None:
    sentence = clauses([words.PHASES["optimizer"].of(), "fc.weight"])
    assert sentence == "optimizer; fc.weight"
    assert sentence.say("zh") == "优化器；fc.weight"
    assert said(sentence, "en") == "optimizer; fc.weight"
    assert type(said(sentence, "en")) is str


def test_a_sentence_survives_being_stored() -> None:
    sentence = clauses([words.PHASES["backward"].of(), words.SIDES["gt"].of()])
    again = revived(sentence.plain(), str(sentence))
    assert isinstance(again, Sentence)
    assert again.say("zh") == sentence.say("zh") == "反向；高于"
    assert pickle.loads(pickle.dumps(sentence)).say("zh") == "反向；高于"


@pytest.mark.parametrize("plain", [None, [], {"id": 3}, {"id": "x.y"}, {"id": "x.y", "arguments": []}])
def test_what_cannot_be_revived_stays_english(plain: object) -> None:
    assert revived(plain, "the loss fell") == "the loss fell"


def test_the_id_of_a_later_version_falls_back_to_the_stored_english() -> None:
    assert revived({"id": "future.news", "arguments": {}}, "exact") == "exact"
    assert said(revived({"id": "future.news", "arguments": {}}, "all fine"), "zh") == "all fine"


def test_formatters() -> None:
    text = Text(
        "{n:count} {n:plural step|steps}, {x:number}, {names:list}", "{n:count} 个轮次，{x:number}，{names:list}"
    )
    assert text.say("en", {"n": 1, "x": 0.123456, "names": ["a", "b"]}) == "1 step, 0.1235, a, b"
    assert text.say("zh", {"n": 1204, "x": "NaN", "names": ["a", "b"]}) == "1,204 个轮次，nan，a、b"
    assert text.parameters == {"n": "plural step|steps", "x": "number", "names": "list"}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_glossary_page_is_current(language: str) -> None:
    name = "glossary.md" if language == "en" else "glossary.zh.md"
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == page(language), "run: python docs/write_glossary.py"


def test_the_words_of_the_page_are_those_of_the_catalogue() -> None:
    """Otherwise:  python -m misstep.sentences.typescript --write"""
    for path, content in files().items():
        assert path.read_text(encoding="utf-8") == content, path.name


def test_no_word_of_the_page_is_in_two_files() -> None:
    parts = (general.WORDS, control.WORDS, looking.WORDS, runs.WORDS, crash.WORDS, diagnose.WORDS)
    assert sum(map(len, parts)) == len(DICTIONARIES["i18n/"])


# ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def calls() -> Iterator[tuple[str, Text, ast.Call, bool]]:
    """Every use of a text in the package: its place, the text, the call, and whether it makes a Sentence (`.of`)."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        known = names_in(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                makes = isinstance(node.func, ast.Attribute) and node.func.attr == "of"
                text = resolve(node.func.value if makes and isinstance(node.func, ast.Attribute) else node.func, known)
                if text is not None:
                    yield f"{path.relative_to(PACKAGE)}:{node.lineno}", text, node, makes


def names_in(tree: ast.Module) -> dict[str, object]:
    found: dict[str, object] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("misstep.sentences"):
            for alias in node.names:
                home = importlib.import_module(str(node.module))
                try:
                    value = importlib.import_module(f"{node.module}.{alias.name}")
                except ImportError:
                    value = getattr(home, alias.name)
                found[alias.asname or alias.name] = value
    return found


def resolve(node: ast.expr, known: dict[str, object]) -> Text | None:
    found: object = None
    if isinstance(node, ast.Name):
        found = known.get(node.id)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        found = getattr(known.get(node.value.id), node.attr, None)
    return found if isinstance(found, Text) else None


def test_every_call_of_a_text_fills_exactly_its_gaps() -> None:
    wrong = []
    for place, text, call, _ in calls():
        given = {keyword.arg for keyword in call.keywords}
        if None not in given and given != gaps(text.en):
            wrong.append(f"{place}: {text.id} has {sorted(gaps(text.en))}, was given {sorted(map(str, given))}")
    assert wrong == []


def test_only_the_command_line_speaks_at_once() -> None:
    """Elsewhere a sentence is made with `.of`, stored in English, and shown in the reader's language."""
    wrong = [place for place, _, _, makes in calls() if not makes and not place.startswith("cli/")]
    assert wrong == []
