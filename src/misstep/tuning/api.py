"""Tuning from Python: a study file as a call, and ask and tell for loops of one's own.

result = misstep.tune("study.yaml", trials=30)
result.best.params, result.best.values

tuner = Tuner("mlp", {"lr": {"low": 1e-5, "high": 0.1, "log": True}}, goal="maximize")
for trial in tuner.trials(30):
    trial.tell(train(**trial.params))
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from misstep.errors import TuneError
from misstep.sentences import tune as sentences
from misstep.settings import Settings
from misstep.tuning.results import importances
from misstep.tuning.search import make_pruner, make_sampler, suggest
from misstep.tuning.storage.connect import Connection
from misstep.tuning.storage.places import Place, find, place_for
from misstep.tuning.storage.shared import SharedStudy, open_study, told
from misstep.tuning.storage.table import StudyReader, Table, TrialRow
from misstep.tuning.studyfile import Study, check_command, parse_study, read_study
from misstep.tuning.worker import Worker


class Result:
    """A study as it stands: opened by its name, file or URL, while it runs or afterwards."""

    def __init__(self, place: Place) -> None:
        self._place, self._reader = place, StudyReader(place)

    @classmethod
    def open(cls, study: str, base: Path | str | None = None) -> Result:
        return cls(find(study, base))

    @property
    def table(self) -> Table:
        return self._reader.read()

    @property
    def trials(self) -> list[TrialRow]:
        return self.table.trials

    @property
    def best(self) -> TrialRow:
        """The best trial, the first of several that are equal; TuneError when none is complete."""
        best = self.table.best()
        if not best:
            raise TuneError(sentences.NONE_COMPLETE.of(study=self._place.study))
        return best[0]

    def importances(self, target: int = 0) -> dict[str, float]:
        return importances(self._place, self.table, target)


def tune(study: Study | Path | str, *, base: str | None = None, **given: Any) -> Result:
    """Run a study file to its end, like `misstep tune`; `trials`, `workers` and `storage` as there.

    >>> misstep.tune("study.yaml", trials=30).best.params
    """
    read = study if isinstance(study, Study) else read_study(study)
    check_command(read)
    worker = Worker(read, base=base or Settings.load().dir, **given)
    worker.run()
    return Result(worker.place)


class Asked:
    """A trial to be run by the caller."""

    def __init__(self, tuner: Tuner, trial: Any, params: dict[str, Any]) -> None:
        self.number = int(trial.number)
        self.params = params
        self._tuner, self._trial = tuner, trial

    def report(self, step: int, value: float) -> bool:
        """Tell a value on the way; True when the pruner says that it is not worth going on."""
        self._trial.report(value, step)
        return bool(self._trial.should_prune())

    def tell(self, *values: float) -> None:
        """The result, one number a target."""
        self._tuner.end(self.number, "COMPLETE", [float(value) for value in values], ended="complete")

    def prune(self, why: str = "") -> None:
        self._tuner.end(self.number, "PRUNED", None, ended="asked", **told(why or sentences.BY_HAND.of()))

    def fail(self, why: str = "") -> None:
        self._tuner.end(self.number, "FAIL", None, ended="failed", why=why)


class Tuner:
    """Ask for values, tell what came of them. Shares its storage with any number of others, and with `misstep tune`."""

    def __init__(
        self,
        name: str,
        parameters: Mapping[str, Mapping[str, Any]],
        *,
        goal: str = "minimize",
        target: str = "value",
        tuner: str = "tpe",
        pruner: str = "none",
        seed: int | None = None,
        storage: str = "",
        base: str | None = None,
    ) -> None:
        chosen: dict[str, Any] = {"name": tuner} if seed is None else {"name": tuner, "seed": seed}
        self.study = parse_study(
            # JSON is YAML, so a mapping goes through the same checks as a file.
            json.dumps(
                {
                    "study": name,
                    "command": "python",
                    "parameters": dict(parameters),
                    "target": {"name": target, "goal": goal},
                    "tuner": chosen,
                    "pruner": pruner,
                }
            ),
            name,
        )
        self.place = place_for(name, storage, base or Settings.load().dir)
        connection = Connection(self.place)
        opened = open_study(
            connection,
            name,
            directions=self.study.directions,
            sampler=make_sampler(self.study),
            pruner=make_pruner(self.study),
        )
        self.shared = SharedStudy(connection, opened)
        self._running: dict[int, Any] = {}
        self._over = threading.Event()
        threading.Thread(target=self._beat, name="misstep-beat", daemon=True).start()
        self.shared.sweep(self.study.grace)

    def ask(self, most: int = 1_000_000) -> Asked | None:
        """The next trial; None when `most` were begun."""
        trial = self.shared.ask(most)
        if trial is None:
            return None
        self._running[trial.number] = trial
        return Asked(self, trial, suggest(trial, self.study))

    def trials(self, count: int) -> Iterator[Asked]:
        """Trials until there are `count` in all; one that is left without a word has failed."""
        while (trial := self.ask(count)) is not None:
            yield trial
            if trial.number in self._running:
                trial.fail("nothing was told")

    def end(self, number: int, state: str, values: list[float] | None, **attributes: Any) -> None:
        self._running.pop(number, None)
        self.shared.tell(number, state, values, **attributes)

    @property
    def result(self) -> Result:
        return Result(self.place)

    def close(self) -> None:
        self._over.set()

    def __enter__(self) -> Tuner:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _beat(self) -> None:
        count = 0
        while not self._over.wait(self.study.heartbeat):
            count += 1
            for trial in list(self._running.values()):
                try:
                    trial.set_user_attr("beat", count)
                except Exception:
                    break  # the storage is away, or the trial has just ended; the next beat may fare better
