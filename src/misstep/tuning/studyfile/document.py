r"""A YAML text whose every value knows its line, so that an error can point at it.

>>> document = read_document("trials: 30\nparameters:\n  lr: {low: 1e-5}\n", "study.yaml")
>>> document.plain["parameters"]["lr"], document.line("parameters", "lr", "low")
({'low': 1e-05}, 3)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

from misstep.errors import StudyFileError, need
from misstep.sentences import studyfile as sentences
from misstep.sentences.text import Text

Path = tuple[str | int, ...]
_FLOAT = re.compile(r"[-+]?(?:\d[\d_]*)?\.?\d+[eE][-+]?\d+|[-+]?\d+\.[eE][-+]?\d+")
"""Numbers that YAML 1.1 takes for words: 1e-5 has no point, 1.0e5 no sign."""


@dataclass(frozen=True, slots=True)
class Document:
    """Plain values, and the line of each by its path."""

    plain: dict[str, Any]
    name: str
    """The file as the user named it."""
    lines: dict[Path, int] = field(default_factory=dict)
    twice: tuple[tuple[str, int], ...] = ()
    """Keys given a second time in one mapping, with the line of the later one, which counts."""

    def line(self, *path: str | int) -> int:
        """The line of a value, or of the nearest thing around it that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def wrong(self, message: str, *path: str | int) -> NoReturn:
        """Refuse the document because of what is at this path."""
        line = self.line(*path)
        raise refused(message, self.name, line)


def refused(message: str, name: str, line: int) -> StudyFileError:
    """The error that says what is wrong in which line of a file."""
    return StudyFileError(sentences.AT.of(place=f"{name}:{line}", what=message), path=name, line=line)


def read_document(text: str, name: str) -> Document:
    """The mapping a text holds; StudyFileError with the line when it is no YAML, or no mapping."""
    yaml = need("yaml", "for study files", extra="tune")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 1
        raise refused(sentences.NOT_YAML.of(why=getattr(error, "problem", None) or str(error)), name, line) from None
    reading = _Reading(yaml)
    plain = reading.value(node, ()) if node is not None else {}
    if not isinstance(plain, dict):
        raise refused(sentences.NOT_A_STUDY.of(kind=_kind(plain)), name, 1)
    return Document(plain, name, reading.lines, tuple(reading.twice))


class _Reading:
    """Nodes to plain values, the lines written down on the way."""

    def __init__(self, yaml: Any) -> None:
        self._yaml = yaml
        self._words = yaml.SafeLoader("")
        self.lines: dict[Path, int] = {}
        self.twice: list[tuple[str, int]] = []

    def value(self, node: Any, path: Path) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, self._yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, self._yaml.SequenceNode):
            return [self.value(inner, (*path, at)) for at, inner in enumerate(node.value)]
        if node.tag == "tag:yaml.org,2002:str" and not node.style and _FLOAT.fullmatch(node.value):
            return float(node.value.replace("_", ""))
        return self._words.construct_object(node)

    def _mapping(self, node: Any, path: Path) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(self._words.construct_object(key_node))
            if key in plain:
                self.twice.append((key, key_node.start_mark.line + 1))
            self.lines[(*path, key)] = key_node.start_mark.line + 1
            plain[key] = self.value(value_node, (*path, key))
        return plain


def _kind(value: object) -> Text:
    kinds = {list: "list", str: "word", int: "number", float: "number", bool: "boolean"}
    return sentences.KINDS[kinds.get(type(value), "value")]
