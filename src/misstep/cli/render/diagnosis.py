"""A diagnosis in the terminal: causes with their evidence and the change that mends them, and what was not checked."""

from __future__ import annotations

from typing import Any

import click

from misstep.core.finding import Finding
from misstep.diagnosis.diagnose import Diagnosis
from misstep.diagnosis.rules import RULES
from misstep.sentences.cli import diagnose as words
from misstep.sentences.diagnosis.unchecked import FAMILIES
from misstep.sentences.text import said

_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}


def tell_diagnosis(diagnosis: Diagnosis) -> None:
    """All of it."""
    causes = diagnosis.causes
    numbers = {one.rule: place for place, one in enumerate(causes, 1)}
    for place, one in enumerate(causes, 1):
        click.echo(click.style(f"{place}. {said(one.title)}", fg=_COLOURS[one.severity], bold=True))
        sure = words.CAUSE(severity=words.SEVERITIES[one.severity](), confidence=one.confidence or 1.0)
        click.echo(f"   [{one.rule}] {sure}")
        _tell(one)
    consequences = [one for one in diagnosis.findings if one.cause and one.severity != "info"]
    if consequences:
        click.echo(f"\n{words.CONSEQUENCES()}")
        for one in consequences:
            click.echo(f"   {words.EXPLAINED(title=one.title, number=numbers.get(one.cause, one.cause))} [{one.rule}]")
    hints = [one for one in diagnosis.findings if one.severity == "info" and not one.cause]
    if hints:
        click.echo(f"\n{words.HINTS()}")
        for one in hints:
            click.echo(f"   {said(one.title)} [{one.rule}]")
    if not diagnosis.looks:
        click.echo(words.NOT_KNOWN())
    elif not causes:
        healthy = words.HEALTHY(rules=len(RULES), steps=diagnosis.steps, looks=diagnosis.looks)
        click.echo(click.style(healthy, fg="green"))
    if diagnosis.unchecked and diagnosis.looks:
        click.echo(f"\n{words.NOT_CHECKED()}")
        for family, missing in diagnosis.unchecked.items():
            click.echo(f"   {words.OF_FAMILY(family=FAMILIES[family], missing=missing)}")


def top_finding(diagnosis: Diagnosis) -> str:
    """The first cause in a sentence; empty when there is none."""
    if not diagnosis.causes:
        return ""
    one = diagnosis.causes[0]
    if one.source:
        return words.TOP_AT(title=one.title, advice=one.advice, source=one.source.partition(" ")[0])
    return words.TOP(title=one.title, advice=one.advice)


def diagnosis_facts(diagnosis: Diagnosis) -> dict[str, Any]:
    """As `--json` prints it."""
    return {
        "run": diagnosis.run,
        "healthy": diagnosis.healthy,
        "steps": diagnosis.steps,
        "looks": diagnosis.looks,
        "findings": diagnosis.findings,
        "unchecked": diagnosis.unchecked,
        "rules": len(RULES),
    }


def _tell(one: Finding) -> None:
    for line in (one.source, *map(said, one.evidence)):
        if line:
            click.echo(f"   {line}")
    click.echo(f"   → {words.FIX(advice=one.advice)}")
