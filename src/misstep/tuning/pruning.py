"""When trials are first compared: after a share of a whole trial, not after a number of steps.

Four steps of forty say something about the end, four of ten thousand say nothing. How long a whole trial is, the study
file says (`trial: steps`) or the first complete trial shows; until then nothing is pruned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optuna.pruners import BasePruner
from optuna.trial import TrialState


class AfterShare(BasePruner):  # type: ignore[misc]
    """A pruner of Optuna that is made once the length of a trial is known."""

    def __init__(self, make: Callable[[int], BasePruner], share: float, *, steps: int | None = None) -> None:
        self._make, self._share, self._steps = make, share, steps
        self._inner: BasePruner | None = None

    def prune(self, study: Any, trial: Any) -> bool:
        if self._inner is None:
            whole = self._steps or _steps_of_the_first(study)
            if whole is None:
                return False
            self._inner = self._make(max(1, round(self._share * whole)))
        return bool(self._inner.prune(study, trial))


def _steps_of_the_first(study: Any) -> int | None:
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return next((one.last_step for one in complete if one.last_step), None)
