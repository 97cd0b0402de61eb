"""Samplers of Optuna that are told something more: how trials rank, and where a learning rate is likely to lie.

Losses of trainings span ten orders of magnitude: one diverged trial, and to a Gaussian process all others look the
same. Their ranks, spread like a normal distribution, do not have that trouble; and a trial that was pruned, which has
no value, still has a place behind all that went on. The sampler itself is Optuna's, asked in a study of copies.
"""

from __future__ import annotations

import math
import random
from statistics import NormalDist
from typing import Any

import optuna
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import TrialState

from misstep.tuning.prior import PROBES, likely
from misstep.tuning.studyfile.study import Study


class OnRanks(BaseSampler):  # type: ignore[misc]
    """One target without constraints; parameters that not every trial has are drawn at random."""

    def __init__(self, inner: BaseSampler, *, startup: int, seed: int | None) -> None:
        self._inner, self._startup = inner, startup
        self._random = RandomSampler(seed=seed)

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        judged = _judged(study)
        if len(judged) < self._startup:
            return {}
        space = optuna.search_space.intersection_search_space(judged, include_pruned=True)
        return {name: kind for name, kind in space.items() if not kind.single()}

    def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
        if not search_space:
            return {}
        # The median of as many normal numbers, in order: -2.1 for the best of thirty, 0 in the middle.
        judged, normal = _judged(study), NormalDist()
        copies = [
            _copy(one, search_space, TrialState.COMPLETE, normal.inv_cdf((rank + 0.5) / len(judged)))
            for rank, one in enumerate(judged)
        ]
        running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        copies += [
            _copy(one, search_space, TrialState.RUNNING)
            for one in running
            if one.number != trial.number and search_space.keys() <= one.params.keys()
        ]
        shown = optuna.create_study(sampler=self._inner)
        shown.add_trials(copies)
        return dict(shown.ask(fixed_distributions=search_space).params)

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        return self._random.sample_independent(study, trial, param_name, param_distribution)

    def reseed_rng(self) -> None:
        self._inner.reseed_rng()
        self._random.reseed_rng()


def _judged(study: Any) -> list[Any]:
    """The trials that say something about their values, the best first; of the pruned, who came furthest."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    pruned = study.get_trials(deepcopy=False, states=(TrialState.PRUNED,))
    sign = -1.0 if study.direction.name == "MAXIMIZE" else 1.0
    complete.sort(key=lambda one: sign * one.value)
    pruned.sort(key=lambda one: -(one.last_step or 0))
    return [*complete, *(one for one in pruned if one.params)]


def _copy(trial: Any, space: dict[str, Any], state: TrialState, value: float | None = None) -> Any:
    return optuna.create_trial(
        state=state, value=value, params={name: trial.params[name] for name in space}, distributions=dict(space)
    )


class WithPrior(BaseSampler):  # type: ignore[misc]
    """A sampler whose independent draws of some parameters come from around their likely value."""

    def __init__(self, inner: BaseSampler, study: Study) -> None:
        self._inner = inner
        self._probed = {one.name: one for one in study.parameters if one.prior}
        self._random = random.Random(study.tuner.seed)

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        return dict(self._inner.infer_relative_search_space(study, trial))

    def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
        return dict(self._inner.sample_relative(study, trial, search_space))

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        one = self._probed.get(param_name)
        centre = likely(study.get_trials(deepcopy=False), param_name) if one is not None else None
        if one is None or centre is None:
            return self._inner.sample_independent(study, trial, param_name, param_distribution)
        apart = math.log(one.high / one.low) / (PROBES - 1)
        drawn = math.exp(self._random.gauss(math.log(centre), apart))
        return min(max(drawn, one.low), one.high)

    def before_trial(self, study: Any, trial: Any) -> None:
        self._inner.before_trial(study, trial)

    def after_trial(self, study: Any, trial: Any, state: Any, values: Any) -> None:
        self._inner.after_trial(study, trial, state, values)

    def reseed_rng(self) -> None:
        self._inner.reseed_rng()
        self._random.seed()
