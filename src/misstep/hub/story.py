"""The address of a run's story: its verdict, findings and notes, so that the page says what `misstep show` says."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from misstep.core.chinese import in_chinese
from misstep.core.finding import Finding, Verdict
from misstep.core.storyviews import BirthView, FindingView, RunStory
from misstep.diagnosis.silent import all_findings
from misstep.hub.hub import Hub
from misstep.hub.views import bound, json_response
from misstep.store.reader import Run

MOST = 20
"""Findings and notes told; a run with more has one fault many times."""
_GRAVITY = ("error", "warning", "info")


def routes(hub: Hub) -> list[Route]:
    """The story's address, bound to this hub."""
    return [Route("/api/v1/runs/{run}/story", bound(hub, _story), methods=["GET"])]


def run_story(run: Run, lang: str) -> RunStory:
    """Everything a run has to tell, in this language."""
    chinese = lang.startswith("zh")
    findings = sorted(all_findings(run), key=lambda finding: _GRAVITY.index(finding.severity))
    texts = dict.fromkeys(
        str(event.facts.get("text", "")) for kind in ("warning", "note") for event in run.events(kind)
    )
    return RunStory(
        birth=None if run.verdict is None else _birth(run, run.verdict, chinese=chinese),
        findings=tuple(_finding(one, chinese=chinese) for one in findings[:MOST]),
        notes=tuple(_said(text, chinese=chinese) for text in list(texts)[:MOST] if text),
    )


async def _story(hub: Hub, request: Request) -> Response:
    path = hub.reader(str(request.path_params["run"])).path
    lang = request.query_params.get("lang", "en")
    # A reader of its own: looking for silent faults takes a while, and the hub's reader serves others meanwhile.
    return json_response(await asyncio.to_thread(lambda: run_story(Run(path), lang)))


def _birth(run: Run, verdict: Verdict, *, chinese: bool) -> BirthView:
    kept = [event for event in run.events("capsule", verdict.rank) if event.facts.get("path")]
    again = any(event.facts.get("step") == verdict.step for event in kept)
    return BirthView(
        sentence=_said(verdict.sentence(), chinese=chinese),
        node=verdict.node,
        step=verdict.step,
        rank=verdict.rank,
        notes=tuple(_said(text, chinese=chinese) for text in (verdict.replayed, verdict.note) if text),
        command=f"misstep replay {run.name}@{verdict.step}" if again else "",
    )


def _finding(finding: Finding, *, chinese: bool) -> FindingView:
    return FindingView(
        rule=finding.rule,
        title=_said(finding.title, chinese=chinese),
        severity=finding.severity,
        step=finding.step,
        rank=finding.rank,
        evidence=tuple(_said(text, chinese=chinese) for text in finding.evidence if text),
        advice=_said(finding.advice, chinese=chinese),
        command=finding.command,
    )


def _said(sentence: str, *, chinese: bool) -> str:
    return in_chinese(sentence) if chinese else sentence
