"""Where the time of a run's steps goes, as the page gets it.

GET  /api/v1/runs/{run}/speed?lang=&rank=&last=        SpeedView
"""

from __future__ import annotations

from misstep.protocol.views import Part


class SpeedAdvice(Part):
    rule: str
    what: str
    why: str
    threshold: str
    predicted: float | None
    """Milliseconds a step would take."""
    low: float | None
    high: float | None
    where: str
    tried: bool
    """`--apply` can try it."""


class SpeedTrial(Part):
    name: str
    predicted: float | None
    before: float | None
    after: float | None
    kept: bool
    outcome: str


class SpeedStage(Part):
    name: str
    share: float
    ms: float
    where: str
    depth: int


class SpeedOperator(Part):
    name: str
    share: float
    phase: str
    where: str


class SpeedView(Part):
    """One rank's steps, in columns; milliseconds."""

    rank: int
    steps: tuple[int, ...]
    """The first step of each bar; a bar is the mean of the steps up to the next."""
    segments: tuple[str, ...]
    words: tuple[str, ...]
    """The segments in the reader's language."""
    spent: tuple[tuple[float, ...], ...]
    """A column a segment."""
    step: float
    p50: float
    p90: float
    p99: float
    first: float
    compile: float
    data_share: float
    empty: float | None
    period: int
    """Every how many steps a slow one comes; 0 for no such thing."""
    bound: str
    verdict: str
    why: str
    memory_most: int
    loader: str
    make: float | None
    workers: int | None
    advice: tuple[SpeedAdvice, ...]
    trials: tuple[SpeedTrial, ...]
    stages: tuple[SpeedStage, ...]
    operators: tuple[SpeedOperator, ...]
    profiled: int
    """Steps the operators are of."""
    unknown: tuple[str, ...]
    nothing: str


SPEED_PAYLOADS: tuple[type[Part], ...] = (SpeedView,)
