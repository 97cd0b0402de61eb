"""How closely to look at each step.

The level the user asked for holds for the steps asked for; other steps get the guard. With a budget, misstep's own
measured cost decides how many steps are looked at closely: every one, every second, every fourth …, and each change is
said. Watchpoints that need more than the level gives are told of, not silently unanswered.
"""

from __future__ import annotations

from misstep.core.levels import LEVELS, Level
from misstep.core.steps import parse_steps
from misstep.sentences.journal import EVERY_STEP, ONE_STEP_IN

_SETTLED = 5
"""Steps seen before the budget is judged: the first ones allocate, compile and warm caches."""


class Plan:
    """Decides the level of the next step."""

    def __init__(self, *, level: Level = "module", steps: str = "", budget: float = 0.0) -> None:
        self.level: Level = level
        self.budget = budget
        self.interval = 1
        """Every how many steps are looked at closely."""
        self.overhead = 0.0
        """Share of training time misstep takes, smoothed over recent steps of every level."""
        self._chosen = parse_steps(steps)
        self._close = 0.0
        self._cheap = 0.0
        self._judged = 0
        self._forced: dict[int, Level] = {}

    def level_for(self, step: int) -> Level:
        """The level at which to look at this step."""
        forced = self._forced.get(step)
        if forced is not None:
            return forced
        if LEVELS.index(self.level) <= LEVELS.index("guard"):
            return self.level
        if self._chosen is not None and not any(first <= step <= last for first, last in self._chosen):
            return "guard"
        return self.level if step % self.interval == 0 or step == 1 else "guard"

    def force(self, step: int, level: Level) -> None:
        """Look at one step in another way, whatever the rest says."""
        self._forced[step] = level

    def spent(self, step: int, level: Level, *, own: float, total: float) -> str:
        """Take note of a step's cost in seconds; a sentence when the interval changed, else ''."""
        self._forced.pop(step, None)
        bare = total - own
        if bare <= 0:
            return ""
        share = own / bare
        close = level in ("module", "op")
        if close:
            self._close = share if self._close == 0.0 else 0.8 * self._close + 0.2 * share
        else:
            self._cheap = share if self._cheap == 0.0 else 0.8 * self._cheap + 0.2 * share
        mean = (
            (self._close + self._cheap * (self.interval - 1)) / self.interval if close or self._close else self._cheap
        )
        self.overhead = mean
        if not close or self.budget <= 0:
            return ""
        self._judged += 1
        if self._judged < _SETTLED:
            return ""
        wanted = 1
        while wanted < 4096 and (self._close + self._cheap * (wanted - 1)) / wanted > self.budget:
            wanted *= 2
        if wanted > self.interval or wanted * 4 <= self.interval:
            self.interval = max(wanted, 1)
            self._judged = 0
            costs = {"level": self.level, "cost": self._close, "budget": self.budget}
            return EVERY_STEP.of(**costs) if wanted == 1 else ONE_STEP_IN.of(interval=wanted, **costs)
        return ""
