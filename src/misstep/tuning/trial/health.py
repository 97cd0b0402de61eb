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
FIRST_LOOK = 8
"""Steps after which `misstep diagnose` looks at the run for the first time; then after twice as many, and so on."""
SURE = 0.8
"""The least confidence of a finding that ends a trial."""
DEAD = ("silent.weights_unchanged", "rate.zero", "rate.tiny")
"""Findings that say that the weights do not move."""


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
        self._next_look = FIRST_LOOK

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
        if ("dead" in on or "error" in on) and follower.steps >= self._next_look:
            self._next_look = 2 * follower.steps
            return self._diagnosed()
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

    def _diagnosed(self) -> Reason | None:
        """The first finding of severity error that `misstep diagnose` is sure of; a NaN is judged above."""
        from misstep.diagnosis.diagnose import NOT_FINITE, diagnose
        from misstep.errors import MisstepError

        try:
            causes = diagnose(self._run).causes
        except (MisstepError, OSError, ValueError):
            return None  # a run that is being written; the trial goes on
        for finding in causes:
            ended = "dead" if finding.rule in DEAD else "error"
            sure = finding.severity == "error" and (finding.confidence or 1) > SURE
            if sure and finding.rule != NOT_FINITE and ended in self._study.prune_on:
                return Reason(ended, finding.title)
        return None
