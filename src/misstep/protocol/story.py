"""A run's own story as the page gets it: where the first bad value was born, what else was found, what was noted.

    GET  /api/v1/runs/{run}/verdict?lang=      VerdictView or null: what the page opens on
    GET  /api/v1/runs/{run}/story?lang=        RunStory
    GET  /api/v1/runs/{run}/diagnosis?lang=    DiagnosisView: what `misstep diagnose` says
    GET  /api/v1/runs/{run}/report?lang=       text/html, the same and the loss on one page to send

Sentences in the language that is asked for: they are the ones `misstep show` prints.
"""

from __future__ import annotations

from typing import Literal

from misstep.core.watching.watch import Severity
from misstep.protocol.views import Part, SourceView


class VerdictView(Part):
    """The one answer of a run: landing, star, banner and list all come from it.

    The first NaN or Inf that did harm; else the exception that ended the run.
    """

    kind: Literal["nan", "inf", "exception"]
    node: str
    """May be empty: an exception outside of the network."""
    step: int
    rank: int
    phase: str
    op: str = ""
    slot: str = ""
    """Of the tensor to look at: `output`, `grad.1`; empty for the node as a whole."""
    title: str = ""
    """Of an exception: its type and first line."""
    evidence: tuple[str, ...] = ()
    """What was in the outputs and the inputs, how exactly it is known, which samples cause it."""
    source: SourceView | None = None
    precision: Literal["operator", "module", "step"] = "step"
    samples: tuple[int, ...] = ()
    command: str = ""
    """Runs that step again, where it was kept."""
    inputs: tuple[str, ...] = ()
    """Nodes whose values went in."""


class BirthView(Part):
    """The first bad value of the run."""

    sentence: str
    node: str
    step: int
    rank: int
    notes: tuple[str, ...] = ()
    """How exactly it is known, which samples cause it."""
    command: str = ""
    """Runs that step again, where it was kept."""


class FindingView(Part):
    """Something wrong or slow, with its evidence and the next command."""

    rule: str
    title: str
    severity: Severity
    step: int | None = None
    rank: int | None = None
    evidence: tuple[str, ...] = ()
    advice: str = ""
    command: str = ""


class RunStory(Part):
    birth: BirthView | None
    findings: tuple[FindingView, ...]
    """The gravest first."""
    notes: tuple[str, ...]
    """What misstep itself had to say while it recorded."""
    clean: bool = False
    """Every step was watched, and no hit, bad loss, skipped update or lost record speaks against the run."""


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


STORY_PAYLOADS: tuple[type[Part], ...] = (RunStory, VerdictView, DiagnosisView)
