"""What a study has come to: which parameters matter, what the best values are as a file, and all of it as a table."""

from __future__ import annotations

import csv
import io
import json
import shlex
import warnings
from typing import Any

from misstep.errors import TuneError, need
from misstep.sentences import tune as sentences
from misstep.tuning.storage.connect import Connection
from misstep.tuning.storage.places import Place
from misstep.tuning.storage.shared import open_study
from misstep.tuning.storage.table import COMPLETE, Table, TrialRow
from misstep.tuning.studyfile.command import filled
from misstep.tuning.studyfile.study import Study

LEAST_TRIALS = 4
"""Complete trials before an importance means anything."""


def importances(place: Place, table: Table, target: int = 0) -> dict[str, float]:
    """How much of the differences between trials each parameter explains, the most first; they add up to 1."""
    done = [trial for trial in table.trials if trial.state == COMPLETE]
    if len(done) < LEAST_TRIALS:
        wanted = max(20, table.wanted)
        raise TuneError(sentences.TOO_FEW.of(count=len(done), least=LEAST_TRIALS, name=table.name, wanted=wanted))
    optuna = need("optuna", "for tuning", extra="tune")
    study = open_study(Connection(place, patience=0.0), table.name)
    aim = (lambda trial: trial.values[target]) if len(table.directions) > 1 else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = optuna.importance.get_param_importances(study, target=aim)
        except (ValueError, RuntimeError) as error:
            raise TuneError(sentences.NO_IMPORTANCE.of(why=str(error))) from None
    return {str(name): float(share) for name, share in found.items()}


def export_csv(table: Table) -> str:
    """Every trial as a line."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["number", "state", *table.targets, *table.parameters, "steps", "seconds", "run", "why"])
    for trial in table.trials:
        values: list[Any] = list(trial.values or ()) or [None] * len(table.targets)
        facts = trial.attributes
        writer.writerow(
            [
                trial.number,
                trial.shown_state,
                *values,
                *(trial.params.get(name) for name in table.parameters),
                facts.get("steps"),
                facts.get("seconds"),
                facts.get("run"),
                facts.get("why"),
            ]
        )
    return out.getvalue()


def plain(trial: TrialRow, table: Table) -> dict[str, Any]:
    """A trial as `--json` shows it."""
    values = dict(zip(table.targets, trial.values or ()))
    facts = {key: value for key, value in trial.attributes.items() if key not in ("beat", "worker", "said")}
    return {"number": trial.number, "state": trial.shown_state, "values": values, "params": trial.params, **facts}


def export_json(table: Table) -> str:
    rows = [{**plain(trial, table), "curve": trial.curve} for trial in table.trials]
    return json.dumps({"study": table.name, "directions": table.directions, "trials": rows}, indent=2)


def command_of(study: Study, trial: TrialRow) -> str:
    """The command that trains once more with a trial's values."""
    return shlex.join(filled(study.command, trial.params, optional=study.optional))
