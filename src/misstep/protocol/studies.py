"""Studies as the page gets them: columns, so that ten thousand trials are one small answer.

GET  /api/v1/studies                                   StudyList
GET  /api/v1/studies/{study}?lang=                     StudyColumns
GET  /api/v1/studies/{study}/curves?trials=1,2         StudyCurves
GET  /api/v1/studies/{study}/importance?target=        StudyImportance
"""

from __future__ import annotations

from misstep.protocol.views import Number, Part

Choice = str | float | bool | None


class StudyBrief(Part):
    """A study in the list."""

    study: str
    storage: str
    trials: int
    wanted: int
    states: dict[str, int]
    best: Number | None
    target: str
    changed: float
    """Seconds since 1970 when a trial last began or ended."""
    problem: str = ""
    """Why it cannot be read."""


class StudyList(Part):
    studies: tuple[StudyBrief, ...]


class StudyColumns(Part):
    """A study, one column a fact."""

    study: str
    targets: tuple[str, ...]
    goals: tuple[str, ...]
    parameters: tuple[str, ...]
    log: tuple[str, ...]
    """Parameters that are searched by their exponent."""
    wanted: int
    words: tuple[str, ...]
    """The states by the numbers in `state`."""
    number: tuple[int, ...]
    state: tuple[int, ...]
    values: tuple[tuple[Number | None, ...], ...]
    """A column a target."""
    params: tuple[tuple[Choice, ...], ...]
    """A column a parameter."""
    run: tuple[str, ...]
    ended: tuple[str, ...]
    why: tuple[str, ...]
    steps: tuple[int, ...]
    seconds: tuple[float, ...]
    best: tuple[int, ...]
    """Numbers of the trials that no other beats."""
    command: str = ""


class StudyCurve(Part):
    number: int
    x: tuple[int, ...]
    y: tuple[Number | None, ...]


class StudyCurves(Part):
    curves: tuple[StudyCurve, ...]


class StudyImportance(Part):
    names: tuple[str, ...]
    shares: tuple[float, ...]
    problem: str = ""


STUDY_PAYLOADS: tuple[type[Part], ...] = (StudyList, StudyColumns, StudyCurves, StudyImportance)
