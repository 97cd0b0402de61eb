"""What became of a step, as one value.

    replay ─► conclude ─► record ─► act          each takes the outcome and changes nothing in it

Recorder, dump, live debugger and actions read a `StepOutcome` and nothing else of the step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from misstep.adapters.step.frame import Frame
from misstep.core.finding import Verdict
from misstep.core.run import Step
from misstep.core.stats import Array
from misstep.core.watching.watch import Hit
from misstep.sentences.text import clauses


@dataclass(frozen=True, slots=True)
class Rerun:
    """What running the step under way again has shown."""

    exact: str
    """'exact' when losses and gradients came out bit for bit, else what differed."""
    verdict: Verdict | None = None
    note: str = ""
    cleared: bool = False
    """The replay was healthy: what is bad here came from another rank."""

    def complete(self, verdict: Verdict | None) -> Verdict | None:
        """The verdict on the step: the replay's own, else that of the rows, with what the replay knows of it."""
        found = self.verdict or verdict
        if found is None or self.cleared:
            return None
        return replace(found, exact=self.exact, note=clauses((found.note, self.note)))


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """A finished step: its facts and rows, what watchpoints said of them, and where the first bad value was born."""

    step: Step
    frame: Frame
    head: Array
    summary: Array
    hits: tuple[Hit, ...] = ()
    verdict: Verdict | None = None
    """Only in the first step that has one."""
    exact: str = ""
    """How exactly the step was run again; empty when it was not."""
    note: str = ""
    replayed: bool = False

    @property
    def skipped(self) -> bool:
        """A gradient scaler found an overflow and left the update out."""
        return self.step.overflow

    def with_hit(self, hit: Hit | None) -> StepOutcome:
        return self if hit is None else replace(self, hits=(*self.hits, hit))
