"""The trials of a study as plain rows, for terminal and page: ten thousand of them in well under a second.

Optuna's own objects take a second and more for that many; a journal is therefore read here, line by line, and only what
was added since the last look. A database is asked through Optuna.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from misstep.tuning.storage.connect import Connection
from misstep.tuning.storage.journal import JournalFile
from misstep.tuning.storage.places import Place
from misstep.tuning.storage.shared import open_study

STATES = ("running", "complete", "pruned", "failed", "waiting")
"""By Optuna's numbers."""
RUNNING, COMPLETE, PRUNED, FAILED, WAITING = STATES
_DONE = (COMPLETE, PRUNED, FAILED)


@dataclass(slots=True)
class TrialRow:
    """One trial."""

    number: int
    state: str
    values: list[float] | None = None
    params: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    curve: dict[int, float] = field(default_factory=dict)
    started: float | None = None
    finished: float | None = None

    @property
    def shown_state(self) -> str:
        """The state for a person: a failed trial whose worker died is stale, and one that is run again says so."""
        ended = self.attributes.get("ended")
        return (
            str(ended)
            if self.state in (FAILED, PRUNED) and ended in ("stale", "interrupted", "infeasible", "surplus")
            else self.state
        )

    @property
    def feasible(self) -> bool:
        return not any(over > 0 for over in self.attributes.get("constraints") or ())


@dataclass(slots=True)
class Table:
    """A study and its trials."""

    name: str
    directions: list[str] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    trials: list[TrialRow] = field(default_factory=list)

    @property
    def targets(self) -> list[str]:
        told = [str(one["name"]) for one in (self.attributes.get("misstep") or {}).get("targets", ())]
        return told or [f"value {at}" if at else "value" for at in range(len(self.directions))]

    @property
    def parameters(self) -> list[str]:
        """Names, in the order of the file, else as they were met."""
        told: list[str] = list((self.attributes.get("misstep") or {}).get("parameters", ()))
        return list(dict.fromkeys([*told, *(name for trial in self.trials for name in trial.params)]))

    @property
    def wanted(self) -> int:
        return int((self.attributes.get("misstep") or {}).get("wanted", 0))

    def best(self) -> list[TrialRow]:
        """The best trial; of several targets, those that no other beats in all."""
        done = [trial for trial in self.trials if trial.state == COMPLETE and trial.values and trial.feasible]
        if not done:
            return []
        signs = [-1.0 if direction == "maximize" else 1.0 for direction in self.directions]
        scored = [(trial, [sign * value for sign, value in zip(signs, trial.values or ())]) for trial in done]
        if len(signs) == 1:
            return [min(scored, key=lambda one: one[1][0])[0]]
        return [one for one, score in scored if not any(_beats(other, score) for _, other in scored)]


def _beats(left: list[float], right: list[float]) -> bool:
    return all(a <= b for a, b in zip(left, right)) and left != right


class StudyReader:
    """Reads a study again and again, cheaply."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._journal = JournalTables(Path(place.storage)) if place.is_file else None
        self._connection: Connection | None = None

    def read(self) -> Table:
        """The study as it is now; TuneError when there is none."""
        if self._journal is not None and Path(self.place.storage).is_file():
            tables = self._journal.refresh()
            name = self.place.study
            if not name and len(tables) == 1:
                return next(iter(tables.values()))
            if name in tables:
                return tables[name]
        if self._connection is None:
            self._connection = Connection(self.place, patience=0.0)
        return from_optuna(open_study(self._connection, self.place.study))


def from_optuna(study: Any) -> Table:
    """The rows of a study of Optuna."""
    return Table(
        study.study_name,
        [direction.name.lower() for direction in study.directions],
        dict(study.user_attrs),
        [
            TrialRow(
                trial.number,
                STATES[trial.state.value],
                list(trial.values) if trial.values is not None else None,
                dict(trial.params),
                dict(trial.user_attrs),
                dict(trial.intermediate_values),
                trial.datetime_start.timestamp() if trial.datetime_start else None,
                trial.datetime_complete.timestamp() if trial.datetime_complete else None,
            )
            for trial in study.get_trials(deepcopy=False)
        ],
    )


class JournalTables:
    """The studies of a journal, kept up to date by reading what was added."""

    def __init__(self, path: Path) -> None:
        self._file = JournalFile(path) if path.exists() else None
        self._path = path
        self._read = 0
        self._studies: list[Table | None] = []
        self._trials: list[TrialRow] = []
        self._distributions: dict[str, dict[str, Any]] = {}

    def refresh(self) -> dict[str, Table]:
        if self._file is None:
            self._file = JournalFile(self._path)
        for record in self._file.read_logs(self._read):
            self._read += 1
            self._take_in(record)
        return {table.name: table for table in self._studies if table is not None}

    def _take_in(self, record: dict[str, Any]) -> None:
        operation = record.get("op_code", -1)
        if operation >= 5:
            at = record.get("trial_id", -1)
            trial = self._trials[at] if 0 <= at < len(self._trials) else None
            if trial is not None and trial.state not in _DONE:
                self._change(trial, operation, record)
        elif operation == 4:
            self._begin(record)
        elif operation == 0:
            if record["study_name"] not in [table.name for table in self._studies if table is not None]:
                goals = ["maximize" if goal == 2 else "minimize" for goal in record["directions"]]
                self._studies.append(Table(record["study_name"], goals))
        elif 0 < operation < 4 and 0 <= record["study_id"] < len(self._studies):
            table = self._studies[record["study_id"]]
            if operation == 1:
                self._studies[record["study_id"]] = None
            elif operation == 2 and table is not None:
                table.attributes.update(record["user_attr"])

    def _begin(self, record: dict[str, Any]) -> None:
        table = self._studies[record["study_id"]] if record["study_id"] < len(self._studies) else None
        if table is None:
            return
        kinds = record.get("distributions", {})
        values = record.get("values") or ([record["value"]] if record.get("value") is not None else None)
        trial = TrialRow(
            len(table.trials),
            STATES[record.get("state", 0)],
            values,
            {name: self._external(value, kinds[name]) for name, value in record.get("params", {}).items()},
            record.get("user_attrs", {}),
            {int(step): value for step, value in record.get("intermediate_values", {}).items()},
            _seconds(record.get("datetime_start")),
            _seconds(record.get("datetime_complete")),
        )
        table.trials.append(trial)
        self._trials.append(trial)

    def _change(self, trial: TrialRow, operation: int, record: dict[str, Any]) -> None:
        if operation == 5:
            trial.params[record["param_name"]] = self._external(record["param_value_internal"], record["distribution"])
        elif operation == 7:
            trial.curve[int(record["step"])] = record["intermediate_value"]
        elif operation == 8:
            trial.attributes.update(record["user_attr"])
        elif operation == 6:
            state = STATES[record["state"]]
            if state == RUNNING and trial.state != RUNNING:
                trial.started = _seconds(record.get("datetime_start"))
            if state in _DONE:
                trial.finished = _seconds(record.get("datetime_complete"))
            trial.state = state
            if record["values"] is not None:
                trial.values = record["values"]

    def _external(self, value: float, kind: str) -> Any:
        known = self._distributions.get(kind)
        if known is None:
            known = self._distributions[kind] = json.loads(kind)
        if known["name"] == "CategoricalDistribution":
            return known["attributes"]["choices"][int(value)]
        return int(value) if known["name"].startswith("Int") else value


def _seconds(moment: str | None) -> float | None:
    return datetime.fromisoformat(moment).timestamp() if moment else None


def differing(trials: Iterable[TrialRow], names: Iterable[str]) -> dict[str, list[Any]]:
    """What differs between trials: parameters whose values are not all the same, with the value of each trial."""
    rows = list(trials)
    found = {name: [trial.params.get(name) for trial in rows] for name in names}
    return {name: values for name, values in found.items() if any(value != values[0] for value in values)}
