"""A rule of `misstep lint`: a small function over one file, with its id, severity and words beside it.

@rule("layers-in-list", "error", texts.LAYERS_IN_LIST, texts.LAYERS_IN_LIST_FIX)
def layers_in_list(source: Source) -> Iterator[Place]:
    ...
    yield node, {"name": "layers"}
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from misstep.core.watching.watch import Severity
from misstep.diagnosis.lint.source import Source
from misstep.sentences.text import Sentence, Text

Place = tuple[ast.expr | ast.stmt, dict[str, Any]]
"""A node, and the arguments of the rule's sentence."""
Check = Callable[[Source], Iterator[Place]]


@dataclass(frozen=True, slots=True)
class Rule:
    """What is wrong when it fires, and what to do about it."""

    id: str
    severity: Severity
    message: Text
    advice: Text
    check: Check


@dataclass(frozen=True, slots=True)
class Remark:
    """One place in a file that a rule objects to."""

    rule: str
    severity: Severity
    path: str
    line: int
    column: int
    message: Sentence
    advice: Sentence
    code: str
    """The line as it stands in the file."""


RULES: dict[str, Rule] = {}


def rule(id: str, severity: Severity, message: Text, advice: Text) -> Callable[[Check], Check]:
    """Register a check under its id."""

    def register(check: Check) -> Check:
        RULES[id] = Rule(id, severity, message, advice, check)
        return check

    return register


def remarks_of(one: Rule, source: Source) -> Iterator[Remark]:
    lines = source.text.splitlines()
    for node, arguments in one.check(source):
        code = lines[node.lineno - 1].strip() if node.lineno <= len(lines) else ""
        yield Remark(
            one.id,
            one.severity,
            source.path,
            node.lineno,
            node.col_offset + 1,
            one.message.of(**arguments),
            one.advice.of(**arguments),
            code,
        )
