"""Why a run does not learn: `diagnose(run)` reads its facts, asks every rule, and ranks what they say.

    diagnosis = misstep.diagnose("last")
    diagnosis.healthy                  no finding of severity error or warning
    diagnosis.findings[0].advice
    misstep.assert_healthy("last")     raises Unhealthy with the findings, for the tests of training code

Nothing is run and nothing is changed: the verdict is a function of the run directory, live or finished.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from misstep.core.finding import Finding
from misstep.diagnosis.facts import Facts, read_rank
from misstep.diagnosis.ranking import ranked
from misstep.diagnosis.rules import FAMILIES, RULES, findings_of
from misstep.diagnosis.rules.silent import silent_findings
from misstep.diagnosis.unchecked import unchecked
from misstep.errors import Unhealthy
from misstep.sentences.diagnosis import unchecked as words
from misstep.store.reading.reader import Run, open_run

NOT_FINITE = "signal.not-finite"
"""Not a rule: the verdict of the run, ranked among the findings."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is wrong with a run, in the order in which to look at it."""

    run: str
    findings: tuple[Finding, ...]
    """Causes first; one with a `cause` is explained by another."""
    unchecked: dict[str, list[str]]
    """By family: what could not be looked at."""
    steps: int
    looks: int
    facts: tuple[Facts, ...] = ()

    @property
    def causes(self) -> list[Finding]:
        """Findings to act on: neither explained by another nor mere hints."""
        return [one for one in self.findings if not one.cause and one.severity != "info"]

    @property
    def errors(self) -> list[Finding]:
        return [one for one in self.findings if one.severity == "error"]

    @property
    def healthy(self) -> bool:
        """Nothing was found that is more than a hint. What was not looked at is in `unchecked`."""
        return not self.causes and self.looks > 0

    @property
    def families(self) -> dict[str, int]:
        """By family: how many findings it has."""
        return {one: sum(found.rule.partition(".")[0] == one for found in self.findings) for one in FAMILIES}


def diagnose(run: Run | Path | str = "last", base: Path | str | None = None) -> Diagnosis:
    """Look at a run for the reasons why it does not learn.

    >>> diagnose("last").findings[0].rule
    'wiring.not-in-optimizer'
    """
    opened = open_run(run, base)
    ranks = [read_rank(opened, rank) for rank in opened.ranks]
    everybody = tuple(
        replace(facts, others=tuple(other for other in ranks if other.rank != facts.rank)) for facts in ranks
    )
    found = [finding for facts in everybody for finding in judge(facts)]
    # One mistake shows on every rank: the first that has it tells of it.
    first: dict[str, Finding] = {}
    for finding in [*found, *_not_finite(opened), *silent_findings(opened)]:
        first.setdefault(finding.rule, finding)
    command = f"misstep show {opened.name}"
    findings = ranked(one if one.command else replace(one, command=command) for one in first.values())
    return Diagnosis(
        run=opened.name,
        findings=tuple(findings),
        unchecked=unchecked(everybody[0]) if everybody else {},
        steps=max((facts.steps for facts in everybody), default=0),
        looks=sum(len(facts.looks) or bool(facts.calls) for facts in everybody),
        facts=everybody,
    )


def _not_finite(run: Run) -> list[Finding]:
    """The verdict on the first NaN or Inf, as a finding like the others."""
    verdict = run.verdict
    if verdict is None:
        return []
    return [
        Finding(
            rule=NOT_FINITE,
            title=verdict.sentence(),
            severity="error",
            step=verdict.step,
            rank=verdict.rank,
            advice=words.LOOK_AT_VERDICT.of(),
            confidence=0.9,
            source="" if verdict.source is None else str(verdict.source),
        )
    ]


def judge(facts: Facts) -> list[Finding]:
    """What every rule says of the facts of one rank."""
    return [finding for one in RULES.values() for finding in findings_of(one, facts)]


def assert_healthy(
    run: Run | Path | str = "last", base: Path | str | None = None, *, warnings: bool = False
) -> Diagnosis:
    """Raise Unhealthy when a run has a finding of severity error (or, with `warnings`, of any weight).

    >>> def test_my_training(tmp_path): ...; misstep.assert_healthy(tmp_path / "missteps" / "run")
    """
    diagnosis = diagnose(run, base)
    bad = [one for one in diagnosis.causes if warnings or one.severity == "error"]
    if bad:
        raise Unhealthy(
            "; ".join(f"{one.rule}: {one.title}" + (f" ({one.source})" if one.source else "") for one in bad),
            findings=tuple(bad),
        )
    return diagnosis
