"""A sampler that is shown how trials rank, not what they measured.

Losses of trainings span ten orders of magnitude: one diverged trial, and to a Gaussian process all others look the
same. Their ranks, spread like a normal distribution, do not have that trouble; and a trial that was pruned, which has
no value, still has a place behind all that went on. The sampler itself is Optuna's, asked in a study of copies.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import optuna
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import TrialState


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
