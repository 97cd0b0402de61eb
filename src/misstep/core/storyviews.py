"""A run's own story as the page gets it: where the first bad value was born, what else was found, what was noted.

    GET  /api/v1/runs/{run}/story?lang=        RunStory

Sentences in the language that is asked for: they are the ones `misstep show` prints.
"""

from __future__ import annotations

from misstep.core.views import Part
from misstep.core.watch import Severity


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


STORY_PAYLOADS: tuple[type[Part], ...] = (RunStory,)
