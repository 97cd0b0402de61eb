"""A study as several workers share it: who has which trial, which are stale, and what is run again.

    ask ─► running ─► complete | pruned | failed
              └─ its worker is gone ─► failed, ended "stale" ─► a new trial with the same values

A trial carries its worker (host, process, when that was born) from the moment it exists, and a beat that its worker
moves on. On the same machine a dead process is known at once; on another, a beat that stands still for the grace period
is a dead worker, by the observer's own clock.

Asking, telling and sweeping are sections under the storage's lock (connect.py). Each looks first at what it may have
written before the storage went away, so that beginning it anew changes nothing; and what a killed worker left undone,
the next sweep does.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from misstep.errors import StudyNotFound, TuneError, need
from misstep.sentences import tune as sentences
from misstep.sentences.text import Sentence
from misstep.store.reading.liveness import birth_of
from misstep.tuning.storage.connect import Connection
from misstep.tuning.storage.places import remember, shown

MOST_STALE = 3
"""How often values whose worker died are run again: what kills its machine must not do so for ever."""
AGAIN = ("stale", "interrupted")
"""Ends that say nothing about the values: they are run again."""
_GIVEN = "fixed_params"
"""Optuna's name for the values of a trial that waits."""
SURPLUS = "surplus"
"""The end of a trial that never ran: one more than was wanted, or a second copy of one."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How a study stands."""

    waiting: int
    running: int
    counted: int
    """Trials that use up the number wanted: all but those that were run again, or never ran."""


class SharedStudy:
    """One study in a storage."""

    def __init__(self, connection: Connection, study: Any, *, say: Callable[[str], None] | None = None) -> None:
        from misstep.tuning.storage.steady import TICKET

        self.connection = connection
        if say is not None:
            connection.say = say
        self.study = study
        self._optuna = need("optuna", "for tuning", extra="tune")
        self._states = self._optuna.trial.TrialState
        self._storage = connection.storage
        self._ticket = TICKET
        self._seen: dict[int, tuple[Any, float]] = {}
        self._study_id = self._storage.get_study_id_from_name(study.study_name)

    @property
    def name(self) -> str:
        return str(self.study.study_name)

    def trials(self) -> list[Any]:
        found: list[Any] = self._storage.get_all_trials(self._study_id, deepcopy=False)
        return found

    def trial(self, number: int) -> Any:
        """A trial as the storage has it now."""
        return self._storage.get_trial(self._id(number))

    def mark(self, number: int, **attributes: Any) -> None:
        """Keep facts with a trial."""
        for key, value in attributes.items():
            self._storage.set_trial_user_attr(self._id(number), key, value)

    def _id(self, number: int) -> int:
        return int(self._storage.get_trial_id_from_study_id_trial_number(self._study_id, number))

    # ── beginning ────────────────────────────────────────────────────────────────────────────────────────────────────

    def set_up(
        self,
        facts: dict[str, Any],
        start: Sequence[dict[str, Any]] = (),
        probes: Sequence[tuple[str, dict[str, Any]]] = (),
    ) -> None:
        """Once for a study: what pages show of it, short runs that probe a parameter, and the values to try first. A
        stop asked earlier is over."""
        first = [({"probe": name}, values) for name, values in probes] + [({}, values) for values in start]

        def begin(again: bool) -> None:
            known = self.study.user_attrs
            if known.get("misstep") is None:
                queued = {trial.user_attrs.get("start") for trial in self.trials()}
                for at, (about, values) in enumerate(first):
                    if at not in queued:
                        self._queue(values, f"start-{at}", {"start": at, **about})
            if known.get("misstep") != facts:
                self.study.set_user_attr("misstep", facts)
            if known.get("stop"):
                self.study.set_user_attr("stop", 0)

        self.connection.section(begin)

    def ask(self, wanted: int) -> Any | None:
        """The next trial, or None when enough were begun; one that waits to be run again comes first."""
        ticket = uuid.uuid4().hex
        number = self.connection.section(lambda again: self._begin(wanted, ticket, again=again))
        if number is None or (not self.connection.has_lock and self._is_surplus(number, wanted)):
            return None
        return self._optuna.Trial(self.study, self._id(number))

    def _begin(self, wanted: int, ticket: str, *, again: bool) -> int | None:
        trials = self.trials()
        if again:
            mine = [one for one in trials if one.system_attrs.get(self._ticket) == ticket]
            if any(one.state == self._states.RUNNING for one in mine):
                return self._only_one(ticket)
        for one in trials:
            if one.state == self._states.WAITING and self._claim(one, ticket, trials):
                return int(one.number)
        if self.budget(trials).counted >= wanted:
            return None
        return self._create(ticket, state=self._states.RUNNING, user_attrs={"worker": this_worker()})

    def _claim(self, trial: Any, ticket: str, trials: list[Any]) -> bool:
        """Take a trial that waits; False when another was faster, or it is a second copy."""
        for key in ("retry_of", "start"):
            of = trial.user_attrs.get(key)
            if of is not None and any(one.user_attrs.get(key) == of for one in trials if one.number < trial.number):
                self._drop(trial.number)
                return False
        # Its worker is written first: killed behind that, the trial still waits; killed later, it is stale at once.
        self._storage.set_trial_system_attr(self._id(trial.number), self._ticket, ticket)
        self.mark(trial.number, worker=this_worker())
        return bool(self._storage.set_trial_state_values(self._id(trial.number), self._states.RUNNING))

    def _create(self, ticket: str, **facts: Any) -> int:
        """A new trial; its number. TICKET finds it again when the connection breaks before the number arrives."""
        attributes = {**facts.pop("system_attrs", {}), self._ticket: ticket}
        template = self._optuna.create_trial(system_attrs=attributes, **facts)
        trial_id = self._storage.create_new_trial(self._study_id, template)
        if self.connection.place.is_file:
            return int(self._storage.get_trial_number_from_id(trial_id))
        return self._only_one(ticket)

    def _only_one(self, ticket: str) -> int:
        """Optuna's databases try again by themselves, and may have made the trial twice: the first one counts."""
        first, *more = [one.number for one in self.trials() if one.system_attrs.get(self._ticket) == ticket]
        for number in more:
            self._drop(number)
        return int(first)

    def _drop(self, number: int) -> None:
        self.mark(number, ended=SURPLUS, **told(sentences.SURPLUS.of()))
        self._storage.set_trial_state_values(self._id(number), self._states.FAIL)

    def _is_surplus(self, number: int, wanted: int) -> bool:
        """Without a lock two workers may begin the last trial at once; the one with the higher number leaves it."""
        before = [one for one in self.trials() if one.number < number]
        mine = self.trial(number)
        if mine.user_attrs.get("retry_of") is not None or self.budget(before).counted < wanted:
            return False
        self._drop(number)
        return True

    def budget(self, trials: list[Any] | None = None) -> Budget:
        every = self.trials() if trials is None else trials
        again = {trial.user_attrs.get("retry_of") for trial in every}
        states = self._states
        counted = sum(not self._uncounted(trial, again) for trial in every)
        waiting = sum(trial.state == states.WAITING for trial in every)
        return Budget(waiting, sum(trial.state == states.RUNNING for trial in every), counted)

    def _uncounted(self, trial: Any, again: set[Any]) -> bool:
        ended = trial.user_attrs.get("ended")
        if trial.number in again or ended in ("infeasible", SURPLUS) or "probe" in trial.user_attrs:
            return True
        return trial.state == self._states.FAIL and ended in AGAIN and not _values(trial)

    # ── telling ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def tell(
        self,
        number: int,
        state: str,
        values: list[float] | None = None,
        *,
        retry_after: float | None = None,
        **attributes: Any,
    ) -> bool:
        """End a trial; False when another has ended it already (it was taken for stale).

        With `retry_after` its values are queued once more, to be run so many seconds from now at the earliest.
        """
        wanted = self._states[state]
        if retry_after is not None:
            attributes["retry_at"] = time.time() + retry_after  # if we are killed, a sweep queues it

        def end(again: bool) -> bool:
            trial = self.trial(number)
            if not trial.state.is_finished():
                self.mark(number, **attributes)
                self._end(number, wanted, values)
                trial = self.trial(number)
            elif not (again and trial.state == wanted and trial.user_attrs.get("worker") == this_worker()):
                return False
            if retry_after is not None:
                self._queue_again(trial, self.trials())
            return True

        try:
            return self.connection.section(end)
        except (ValueError, RuntimeError):
            if self.connection.has_lock or not self.trial(number).state.is_finished():
                raise
            return False  # the proxy's server took it for stale in the same moment

    def _end(self, number: int, state: Any, values: list[float] | None) -> None:
        self.study.tell(number, values=values, state=state)

    # ── sweeping ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def sweep(self, grace: float) -> list[int]:
        """End the trials whose worker is gone, and queue what is to be run again; the numbers of the stale ones."""
        if not self.connection.has_lock:
            return []  # behind a proxy its server sweeps
        if not self._stale(self.trials(), grace) and not self._forgotten(self.trials()):
            return []
        swept: list[int] = []

        def sweep(again: bool) -> list[int]:
            for number in self._stale(self.trials(), grace):
                self.mark(number, ended="stale", **told(sentences.WORKER_GONE.of()))
                self._end(number, self._states.FAIL, None)
                swept.append(number)
            for trial in self._forgotten(self.trials()):
                self._queue_again(trial, self.trials())
            return swept

        return self.connection.section(sweep)

    def _stale(self, trials: list[Any], grace: float) -> list[int]:
        now = time.monotonic()
        stale = []
        for trial in trials:
            if trial.state != self._states.RUNNING:
                continue
            worker = trial.user_attrs.get("worker") or {}
            sign = (trial.user_attrs.get("beat"), worker.get("pid"), len(trial.intermediate_values))
            known = self._seen.get(trial.number)
            if known is None or known[0] != sign:
                known = self._seen[trial.number] = (sign, now)
            if _is_gone(worker) or now - known[1] > grace:
                stale.append(int(trial.number))
        return stale

    def _forgotten(self, trials: list[Any]) -> list[Any]:
        """Trials that are to be run again and that nobody has queued: the sweeper itself may have been killed."""
        queued = {trial.user_attrs.get("retry_of") for trial in trials}
        return [
            trial
            for trial in trials
            if trial.state == self._states.FAIL and trial.number not in queued and _is_to_be_run_again(trial)
        ]

    def _queue_again(self, trial: Any, trials: list[Any]) -> None:
        if any(one.user_attrs.get("retry_of") == trial.number for one in trials):
            return
        attributes: dict[str, Any] = {
            "retry_of": trial.number,
            "root": trial.user_attrs.get("root", trial.number),
            "attempt": int(trial.user_attrs.get("attempt", 1)) + 1,
        }
        if "probe" in trial.user_attrs:
            attributes["probe"] = trial.user_attrs["probe"]
        if trial.user_attrs.get("retry_at") is not None:
            attributes["not_before"] = trial.user_attrs["retry_at"]
        self._queue(_values(trial), f"again-{trial.number}", attributes)

    def _queue(self, values: dict[str, Any], ticket: str, attributes: dict[str, Any]) -> None:
        self._create(ticket, state=self._states.WAITING, user_attrs=attributes, system_attrs={_GIVEN: dict(values)})

    # ── wishes ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def wish_to_stop(self, *, now: bool) -> None:
        self.study.set_user_attr("stop", 2 if now else 1)

    def wish_to_prune(self, numbers: tuple[int, ...]) -> None:
        """Two who wish at once are both heard."""

        def add(again: bool) -> None:
            known = self.study.user_attrs.get("prune") or ()
            self.study.set_user_attr("prune", sorted({*known, *numbers}))

        self.connection.section(add)


def _is_to_be_run_again(trial: Any) -> bool:
    facts = trial.user_attrs
    if facts.get("retry_at") is not None:
        return True
    return facts.get("ended") in AGAIN and bool(_values(trial)) and int(facts.get("attempt", 1)) <= MOST_STALE


def _values(trial: Any) -> dict[str, Any]:
    """What a trial was to run with: its worker may have died before it took the values it was given."""
    return {**trial.system_attrs.get(_GIVEN, {}), **trial.params}


def open_study(
    connection: Connection, name: str, *, directions: list[str] | None = None, sampler: Any = None, pruner: Any = None
) -> Any:
    """Optuna's study: made when `directions` are given and it is not there, else the one that is."""
    optuna = need("optuna", "for tuning", extra="tune")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = connection.storage
    if directions is None:
        known = [study.study_name for study in storage.get_all_studies()]
        if not name and len(known) == 1:
            name = known[0]
        if name not in known:
            where = shown(connection.place.storage)
            raise StudyNotFound(
                sentences.WHICH_STUDY.of(name=name, storage=where, names=known, first=known[0])
                if known
                else sentences.NOT_IN_STORAGE.of(name=name, storage=where)
            )
        return optuna.load_study(study_name=name, storage=storage, sampler=sampler, pruner=pruner)
    study = connection.section(
        lambda again: optuna.create_study(
            study_name=name,
            storage=storage,
            directions=directions,
            sampler=sampler,
            pruner=pruner,
            load_if_exists=True,
        )
    )
    remember(connection.place)
    begun = [direction.name.lower() for direction in study.directions]
    if begun != list(directions):
        raise TuneError(sentences.OTHER_GOAL.of(name=name, begun=begun, asked=directions))
    return study


def told(why: str) -> dict[str, Any]:
    """A sentence as a trial keeps it: its English, and what says it in another language."""
    return {"why": str(why), "said": why.plain()} if isinstance(why, Sentence) else {"why": why}


_WORKER: list[dict[str, Any]] = []


def this_worker() -> dict[str, Any]:
    """This process, so that another can tell whether it still lives."""
    if not _WORKER or _WORKER[0]["pid"] != os.getpid():
        _WORKER[:] = [{"host": socket.gethostname(), "pid": os.getpid(), "birth": birth_of(os.getpid())}]
    return _WORKER[0]


def _is_gone(worker: dict[str, Any]) -> bool:
    """True when the worker was on this machine and is not there any more."""
    if not worker or worker.get("host") != socket.gethostname() or not worker.get("birth"):
        return False
    mine = this_worker()["birth"].partition(":")[0]
    if worker["birth"].partition(":")[0] != mine:
        # Another boot: a restarted machine, or another container that shares the name.
        return False
    return birth_of(int(worker["pid"])) != str(worker["birth"])
