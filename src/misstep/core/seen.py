"""What was seen of a run, counted: whether it may be called free of NaN and Inf, and if not, why not.

A sentence that says "no NaN or Inf was seen" is only true of a run whose steps were all watched, whose losses were all
finite, whose updates were all done, whose records were all kept up to its last word, and in which no watchpoint
tripped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from misstep.core.levels import LEVELS, Level
from misstep.core.run import Step


@dataclass(slots=True)
class Seen:
    """The sums of one run, over all of its ranks."""

    steps: int = 0
    """The number of the last step."""
    unwatched: int = 0
    """Steps at level off."""
    bad_losses: int = 0
    first_bad_loss: int | None = None
    """The first step whose loss was NaN or Inf."""
    skipped: int = 0
    """Updates left out by a gradient scaler or loss scale."""
    hits: int = 0
    level: Level = "op"
    """The lowest level at which a step was watched."""
    lost: int = 0
    """Records that could not be kept."""
    broken_off: int = 0
    """Ranks that are gone without a last word: killed, or with nowhere left to write it."""

    _by_rank: dict[int, list[int]] = field(default_factory=dict, repr=False, compare=False)
    """Steps at level off, with a bad loss, and left out, of each rank: all ranks together take one step."""

    def add(self, step: Step, rank: int = 0) -> None:
        """One more step of a rank; the initial weights are none."""
        if step.number == 0:
            return
        self.steps = max(self.steps, step.number)
        counts = self._counts(rank)
        if step.captured == "off":
            counts[0] += 1
            self.unwatched = max(self.unwatched, counts[0])
        self.level = next((one for one in LEVELS if one != "off" and one in (step.captured, self.level)), self.level)
        losses = [loss for loss in (step.loss, *step.losses) if loss is not None]
        if not all(map(math.isfinite, losses)):
            counts[1] += 1
            self.bad_losses = max(self.bad_losses, counts[1])
            self.first_bad_loss = min(step.number, self.first_bad_loss or step.number)

    def skip(self, rank: int = 0) -> None:
        """One more update that a rank left out."""
        counts = self._counts(rank)
        counts[2] += 1
        self.skipped = max(self.skipped, counts[2])

    def _counts(self, rank: int) -> list[int]:
        return self._by_rank.setdefault(rank, [0, 0, 0])

    @property
    def clean(self) -> bool:
        """Every step was watched, and nothing whatever speaks against it."""
        return self.steps > 0 and not any(
            (self.unwatched, self.bad_losses, self.skipped, self.hits, self.lost, self.broken_off)
        )
