"""A diagnosis as the page gets it: findings by rank of cause, what was checked, and the numbers of its pictures.

    GET  /api/v1/runs/{run}/diagnosis?lang=      DiagnosisView

Sentences in the language that is asked for: they are the ones `misstep diagnose` prints.
"""

from __future__ import annotations

from misstep.core.watching.watch import Severity
from misstep.protocol.views import Part


class DiagnosisFinding(Part):
    """One thing that is wrong, with evidence, line and change."""

    rule: str
    title: str
    severity: Severity
    confidence: float | None = None
    evidence: tuple[str, ...] = ()
    source: str = ""
    """The user's line: `train.py:41 …`."""
    advice: str = ""
    cause: str = ""
    """The rule that explains it; empty for a cause."""
    step: int | None = None
    rank: int | None = None


class FamilyView(Part):
    """One family of rules: what it found, and what it could not look at."""

    name: str
    label: str
    findings: int = 0
    missing: tuple[str, ...] = ()


class DiagnosisView(Part):
    """Why a run does not learn."""

    healthy: bool
    known: bool
    """Whether there are facts to judge by; without them nothing is said."""
    steps: int
    looks: int
    rules: int
    findings: tuple[DiagnosisFinding, ...] = ()
    families: tuple[FamilyView, ...] = ()
    layers: tuple[str, ...] = ()
    gradients: tuple[float | None, ...] = ()
    """By layer, from the input on: gradient over weight."""
    updates: tuple[float | None, ...] = ()
    """By layer: update over weight; 0 for one that does not move."""
    losses: tuple[float | None, ...] = ()


DIAGNOSIS_PAYLOADS: tuple[type[Part], ...] = (DiagnosisView,)
