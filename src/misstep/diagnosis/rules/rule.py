"""A rule of `misstep diagnose`: a small function over the facts, with its words beside it.

    @rule("wiring.no-zero-grad", "error", texts.NO_ZERO_GRAD, texts.NO_ZERO_GRAD_FIX, why="…")
    def no_zero_grad(facts: Facts) -> Iterator[Found]:
        ...
        yield Found(0.97, evidence=[...], source=facts.lines.get("s", ""))

A rule yields nothing when a fact it needs is missing: that is said once, in what was not checked (unchecked.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from misstep.core.finding import Finding
from misstep.core.watching.watch import Severity
from misstep.diagnosis.facts import Facts
from misstep.sentences.text import Sentence, Text

FAMILIES = ("wiring", "objective", "rate", "signal", "data", "ranks", "generalisation", "transformers")


@dataclass(frozen=True, slots=True)
class Found:
    """One place where a rule objects."""

    confidence: float
    arguments: dict[str, Any] = field(default_factory=dict)
    evidence: Sequence[str] = ()
    source: str = ""
    step: int | None = None
    severity: Severity | None = None
    """When it is not the rule's own."""
    advice: Sentence | None = None
    detail: dict[str, float | int | str] = field(default_factory=dict)


Check = Callable[[Facts], Iterator[Found]]


@dataclass(frozen=True, slots=True)
class Rule:
    """What is wrong when it fires, and what to do about it."""

    id: str
    severity: Severity
    title: Text
    advice: Text
    threshold: Text
    """When it fires, and where the number comes from."""
    check: Check

    @property
    def family(self) -> str:
        return self.id.partition(".")[0]


RULES: dict[str, Rule] = {}


def rule(id: str, severity: Severity, title: Text, advice: Text, threshold: Text) -> Callable[[Check], Check]:
    """Register a check under its id."""

    def register(check: Check) -> Check:
        RULES[id] = Rule(id, severity, title, advice, threshold, check)
        return check

    return register


def findings_of(one: Rule, facts: Facts) -> Iterator[Finding]:
    for found in one.check(facts):
        yield Finding(
            rule=one.id,
            title=one.title.of(**found.arguments),
            severity=found.severity or one.severity,
            step=found.step,
            rank=facts.rank,
            evidence=tuple(found.evidence),
            advice=found.advice or one.advice.of(**found.arguments),
            detail=found.detail,
            confidence=found.confidence,
            source=found.source,
        )
