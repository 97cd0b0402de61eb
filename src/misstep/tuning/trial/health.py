"""Why a trial is not worth going on with, judged from its run alone; the script knows nothing of it."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from pathlib import Path

from misstep.sentences import tune as sentences
from misstep.tuning.studyfile.study import Study
from misstep.tuning.trial.follow import Follower

FIRST_LOSSES = 5
"""Losses whose median is where the trial began."""
TIMES_WORSE = 10.0
STEPS_WORSE = 10
"""A loss ten times its beginning, ten steps in a row: a learning rate that is too large does that, noise does not."""
DEAD_AFTER = 8
"""Steps after which the weights are looked at, once."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a trial ended before its time."""

    ended: str
    """nan, error, divergence, dead, timeout, memory, pruner or asked."""
    why: str
    """A sentence."""


class Health:
    """The judgement of one trial."""

    def __init__(self, study: Study, run: Path) -> None:
        self._study, self._run = study, run
        self._first: list[float] = []
        self._worse = 0
        self._losses = 0
        self._weights_looked_at = False

    def judge(self, follower: Follower) -> Reason | None:
        """The first reason to end the trial; None while it is healthy."""
        on = self._study.prune_on
        if "nan" in on:
            if follower.verdict:
                return Reason("nan", follower.verdict)
            bad = next((step for step, loss in self._news(follower) if not math.isfinite(loss)), None)
            if bad is not None:
                return Reason("nan", sentences.LOSS_NOT_FINITE.of(step=bad))
        if "error" in on and follower.errors:
            return Reason("error", follower.errors[0])
        diverged = self._diverged(follower)
        if "divergence" in on and diverged is not None:
            return diverged
        if "dead" in on and follower.steps >= DEAD_AFTER and not self._weights_looked_at:
            self._weights_looked_at = True
            return self._dead()
        return None

    def _news(self, follower: Follower) -> list[tuple[int, float]]:
        return follower.curves["loss"][self._losses :]

    def _diverged(self, follower: Follower) -> Reason | None:
        news = self._news(follower)
        self._losses += len(news)
        for step, loss in news:
            if len(self._first) < FIRST_LOSSES:
                self._first.append(loss)
                continue
            begin = statistics.median(self._first)
            self._worse = self._worse + 1 if loss - begin > (TIMES_WORSE - 1) * max(abs(begin), 1e-12) else 0
            if self._worse >= STEPS_WORSE:
                return Reason("divergence", sentences.DIVERGED.of(step=step, loss=loss, begin=begin))
        return None

    def _dead(self) -> Reason | None:
        from misstep.diagnosis.diagnose import diagnose
        from misstep.errors import MisstepError

        try:
            found = [
                one for one in diagnose(self._run).causes if one.severity == "error" and (one.confidence or 1) > 0.9
            ]
        except (MisstepError, OSError, ValueError):
            return None  # a run that is being written; the trial goes on
        return Reason("dead", found[0].title) if found else None
