"""The one way to a storage: every call waits out a storage that is away, and is safe to make twice.

Optuna's studies, trials and samplers are given this and nothing else, so no access can be forgotten. A call whose
connection broke may have arrived all the same. Most calls say the same thing when made again; two do not, and look
first whether their word is there: the one that makes a trial (by a ticket in it) and the one that ends one.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

TICKET = "misstep:ticket"
"""In a trial's system attributes: which call made it."""
T = TypeVar("T")


class Patient(Protocol):
    """What tries again: a `Connection`."""

    def steadily(self, action: Callable[[], T]) -> T: ...
    def check_lock(self) -> None: ...


class Steady(BaseStorage):  # type: ignore[misc]
    """A storage behind a connection that tries again."""

    def __init__(self, inner: BaseStorage, patient: Patient) -> None:
        self._inner, self._patient = inner, patient

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        template = copy.copy(template_trial) if template_trial is not None else create_trial(state=TrialState.RUNNING)
        template.system_attrs = {TICKET: uuid.uuid4().hex, **template.system_attrs}

        def create(again: bool) -> int:
            if again:
                trials = self._inner.get_all_trials(study_id, deepcopy=False)
                mine = [one for one in trials if one.system_attrs.get(TICKET) == template.system_attrs[TICKET]]
                if mine:
                    return int(self._inner.get_trial_id_from_study_id_trial_number(study_id, mine[0].number))
            return int(self._inner.create_new_trial(study_id, template))

        return self._write(create)

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        def change(again: bool) -> bool:
            if again and state.is_finished():
                known = self._inner.get_trial(trial_id)
                if known.state == state and (values is None or list(known.values or ()) == list(values)):
                    return True
            return bool(self._inner.set_trial_state_values(trial_id, state, values))

        return self._write(change)

    def _write(self, action: Callable[[bool], T]) -> T:
        begun = False

        def once() -> T:
            nonlocal begun
            again, begun = begun, True
            self._patient.check_lock()
            return action(again)

        return self._patient.steadily(once)


def _passed_on(name: str) -> Callable[..., Any]:
    """A method that says the same thing when it is called again."""
    writes = name.startswith(("set_", "create_", "delete_"))

    def call(self: Steady, *args: Any, **kwargs: Any) -> Any:
        def once(again: bool = False) -> Any:
            return getattr(self._inner, name)(*args, **kwargs)

        return self._write(once) if writes else self._patient.steadily(once)

    call.__name__ = name
    return call


# Every method that this Optuna's storages have; a later one may have more.
for _name, _method in vars(BaseStorage).items():
    if callable(_method) and not _name.startswith("_") and _name not in vars(Steady):
        setattr(Steady, _name, _passed_on(_name))
Steady.__abstractmethods__ = frozenset()
