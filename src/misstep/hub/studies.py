"""The addresses of studies: the list, one study in columns, curves of chosen trials, and which parameters matter."""

from __future__ import annotations

import asyncio
import hashlib
import math
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from misstep.errors import MisstepError, RunNotFound, nearest
from misstep.hub.answers import request as asked
from misstep.hub.answers.run_routes import bound, json_response, tagged
from misstep.hub.hub import Hub
from misstep.protocol.studies import (
    Choice,
    StudyBrief,
    StudyColumns,
    StudyCurve,
    StudyCurves,
    StudyImportance,
    StudyList,
)
from misstep.protocol.views import Number, number
from misstep.sentences import tune as sentences
from misstep.sentences.language import Language
from misstep.sentences.text import revived, said
from misstep.tuning.results import importances
from misstep.tuning.storage.places import Place, all_places, shown
from misstep.tuning.storage.table import StudyReader, Table, TrialRow

STATES = ("complete", "pruned", "failed", "running", "waiting", "stale", "interrupted", "infeasible", "surplus")
MOST_CURVES = 60


class Studies:
    """The studies of a folder of runs, each read once and then only what was added."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._readers: dict[Place, StudyReader] = {}
        self._importance: dict[tuple[str, int, int, Language], StudyImportance] = {}

    def listed(self, lang: Language) -> StudyList:
        return StudyList(tuple(self._brief(name, place, lang) for name, place in all_places(self._base).items()))

    def table(self, name: str) -> tuple[Place, Table]:
        places = all_places(self._base)
        if name not in places:
            raise RunNotFound(sentences.NO_STUDY_OF_THAT_NAME.of(name=name, nearest=nearest(name, places)), run=name)
        return places[name], self._reader(places[name]).read()

    def importance(self, name: str, target: int, lang: Language) -> StudyImportance:
        place, table = self.table(name)
        complete = sum(trial.state == "complete" for trial in table.trials)
        known = self._importance.get((name, target, complete, lang))
        if known is None:
            try:
                found = importances(place, table, target)
                known = StudyImportance(tuple(found), tuple(found.values()))
            except MisstepError as error:
                known = StudyImportance((), (), said(str(error), lang))
            self._importance[name, target, complete, lang] = known
        return known

    def _reader(self, place: Place) -> StudyReader:
        return self._readers.setdefault(place, StudyReader(place))

    def _brief(self, name: str, place: Place, lang: Language) -> StudyBrief:
        try:
            table = self._reader(place).read()
        except (MisstepError, OSError) as error:
            return StudyBrief(name, shown(place.storage), 0, 0, {}, None, "", 0.0, said(str(error), lang))
        best = table.best()
        moments = [moment for one in table.trials for moment in (one.started, one.finished) if moment is not None]
        states: dict[str, int] = {}
        for trial in table.trials:
            states[trial.shown_state] = states.get(trial.shown_state, 0) + 1
        return StudyBrief(
            study=name,
            storage=shown(place.storage),
            trials=len(table.trials),
            wanted=table.wanted,
            states=states,
            best=number((best[0].values or [math.nan])[0]) if len(table.directions) == 1 and best else None,
            target=", ".join(table.targets),
            changed=max(moments, default=0.0),
        )


def routes(hub: Hub) -> list[Route]:
    """The addresses of studies, bound to this hub."""
    studies = Studies(Path(hub.directory))

    async def listed(hub: Hub, request: Request) -> Response:
        return json_response(await asyncio.to_thread(studies.listed, _language(request)))

    async def study(hub: Hub, request: Request) -> Response:
        lang = _language(request)
        _, table = await asyncio.to_thread(studies.table, _name(request))
        return tagged(request, f"{lang}-{_revision(table)}", lambda: columns(table, lang))

    async def curves(hub: Hub, request: Request) -> Response:
        wanted = {int(text) for text in asked.text(request, "trials").split(",") if text.strip().isdecimal()}
        _, table = await asyncio.to_thread(studies.table, _name(request))
        rows = [trial for trial in table.trials if trial.number in wanted][:MOST_CURVES]
        return json_response(StudyCurves(tuple(_curve(trial) for trial in rows)))

    async def importance(hub: Hub, request: Request) -> Response:
        target = asked.integer(request, "target", 0)
        found = await asyncio.to_thread(studies.importance, _name(request), target, _language(request))
        return json_response(found)

    handlers = {"": listed, "/{study}": study, "/{study}/curves": curves, "/{study}/importance": importance}
    return [Route(f"/api/v1/studies{path}", bound(hub, one), methods=["GET"]) for path, one in handlers.items()]


def columns(table: Table, lang: Language) -> StudyColumns:
    """A study, one column a fact."""
    rows, names = table.trials, table.parameters
    at = {word: place for place, word in enumerate(STATES)}
    known = table.attributes.get("misstep") or {}
    return StudyColumns(
        study=table.name,
        targets=tuple(table.targets),
        goals=tuple(table.directions),
        parameters=tuple(names),
        log=tuple(known.get("log", ())),
        wanted=table.wanted,
        words=STATES,
        number=tuple(row.number for row in rows),
        state=tuple(at[row.shown_state] for row in rows),
        values=tuple(tuple(_value(row, target) for row in rows) for target in range(len(table.directions))),
        params=tuple(tuple(_choice(row.params.get(name)) for row in rows) for name in names),
        run=tuple(str(row.attributes.get("run") or "") for row in rows),
        ended=tuple(str(row.attributes.get("ended") or "") for row in rows),
        why=tuple(_why(row, lang) for row in rows),
        steps=tuple(int(row.attributes.get("steps") or 0) for row in rows),
        seconds=tuple(float(row.attributes.get("seconds") or 0.0) for row in rows),
        best=tuple(row.number for row in table.best()),
    )


def _value(row: TrialRow, target: int) -> Number | None:
    return number(row.values[target]) if row.values is not None and target < len(row.values) else None


def _choice(value: Any) -> Choice:
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _why(row: TrialRow, lang: Language) -> str:
    why = row.attributes.get("why")
    return said(revived(row.attributes.get("said"), str(why)), lang) if why else ""


def _curve(trial: TrialRow) -> StudyCurve:
    points = sorted(trial.curve.items())
    return StudyCurve(trial.number, tuple(x for x, _ in points), tuple(number(y) for _, y in points))


def _revision(table: Table) -> str:
    last = [(row.number, row.state, len(row.attributes), len(row.params)) for row in table.trials[-200:]]
    done = sum(row.state in ("complete", "pruned", "failed") for row in table.trials)
    return hashlib.blake2b(repr((table.name, len(table.trials), done, last)).encode(), digest_size=9).hexdigest()


def _name(request: Request) -> str:
    return str(request.path_params["study"])


def _language(request: Request) -> Language:
    return "zh" if request.query_params.get("lang", "en").startswith("zh") else "en"
