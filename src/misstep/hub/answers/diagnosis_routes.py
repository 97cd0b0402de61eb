"""The address of a run's diagnosis: the same verdict as `misstep diagnose`, live or finished."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from misstep.core.finding import Finding
from misstep.diagnosis.diagnose import diagnose
from misstep.diagnosis.pictures import Pictures, pictures_of
from misstep.diagnosis.rules import FAMILIES, RULES
from misstep.hub.answers.run_routes import bound, json_response
from misstep.hub.hub import Hub
from misstep.protocol.story import DiagnosisFinding, DiagnosisView, FamilyView
from misstep.sentences.diagnosis.unchecked import FAMILIES as FAMILY_NAMES
from misstep.sentences.language import Language
from misstep.sentences.text import said
from misstep.store.reading.reader import Run


def routes(hub: Hub) -> list[Route]:
    """The diagnosis, bound to this hub."""
    return [Route("/api/v1/runs/{run}/diagnosis", bound(hub, _diagnosis), methods=["GET"])]


async def _diagnosis(hub: Hub, request: Request) -> Response:
    path = hub.reader(str(request.path_params["run"])).path
    lang: Language = "zh" if request.query_params.get("lang", "en").startswith("zh") else "en"
    # A reader of its own, in a thread: the hub serves others meanwhile.
    return json_response(await asyncio.to_thread(lambda: diagnosis_view(Run(path), lang)))


def diagnosis_view(run: Run, lang: Language) -> DiagnosisView:
    """Why this run does not learn, in this language."""
    found = diagnose(run)
    drawn = pictures_of(found.facts[0]) if found.facts else Pictures()
    return DiagnosisView(
        healthy=found.healthy,
        known=found.looks > 0,
        steps=found.steps,
        looks=found.looks,
        rules=len(RULES),
        findings=tuple(_finding(one, lang) for one in found.findings),
        families=tuple(
            FamilyView(
                name=name,
                label=FAMILY_NAMES[name].say(lang, {}),
                findings=sum(one.rule.startswith(f"{name}.") and one.severity != "info" for one in found.findings),
                missing=tuple(said(text, lang) for text in found.unchecked.get(name, ())),
            )
            for name in FAMILIES
        ),
        layers=drawn.layers,
        gradients=drawn.gradients,
        updates=drawn.updates,
        losses=drawn.losses,
    )


def _finding(one: Finding, lang: Language) -> DiagnosisFinding:
    return DiagnosisFinding(
        rule=one.rule,
        title=said(one.title, lang),
        severity=one.severity,
        confidence=one.confidence,
        evidence=tuple(said(text, lang) for text in one.evidence if text),
        source=one.source,
        advice=said(one.advice, lang),
        cause=one.cause,
        step=one.step,
        rank=one.rank,
    )
