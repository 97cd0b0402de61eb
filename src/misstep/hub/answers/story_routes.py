"""The address of a run's story: its verdict, findings and notes, so that the page says what `misstep show` says."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from misstep.core.finding import Finding, Verdict
from misstep.diagnosis.rules.silent import all_findings
from misstep.hub.answers import request as asked
from misstep.hub.answers.report import report
from misstep.hub.answers.run_routes import bound, json_response
from misstep.hub.answers.verdict import replay_command, run_verdict
from misstep.hub.hub import Hub
from misstep.protocol.story import BirthView, FindingView, RunStory
from misstep.sentences.language import Language
from misstep.sentences.text import said
from misstep.store.reading.reader import Run
from misstep.store.reading.seen import seen_in

MOST = 20
"""Findings and notes told; a run with more has one fault many times."""
_GRAVITY = ("error", "warning", "info")


def routes(hub: Hub) -> list[Route]:
    """The story's addresses, bound to this hub."""
    return [
        Route("/api/v1/runs/{run}/verdict", bound(hub, _verdict), methods=["GET"]),
        Route("/api/v1/runs/{run}/story", bound(hub, _story), methods=["GET"]),
        Route("/api/v1/runs/{run}/report", bound(hub, _report), methods=["GET"]),
    ]


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
        clean=run.verdict is None and seen_in(run).clean,
    )


async def _verdict(hub: Hub, request: Request) -> Response:
    lang: Language = "zh" if request.query_params.get("lang", "en").startswith("zh") else "en"
    return json_response(run_verdict(hub.reader(str(request.path_params["run"])), lang))


async def _story(hub: Hub, request: Request) -> Response:
    path = hub.reader(str(request.path_params["run"])).path
    lang = request.query_params.get("lang", "en")
    # A reader of its own: looking for silent faults takes a while, and the hub's reader serves others meanwhile.
    return json_response(await asyncio.to_thread(lambda: run_story(Run(path), lang)))


async def _report(hub: Hub, request: Request) -> Response:
    """The run as one HTML file to keep or to send."""
    known = hub.reader(str(request.path_params["run"]))
    lang: Language = "zh" if request.query_params.get("lang", "en").startswith("zh") else "en"

    def made() -> bytes:
        run = Run(known.path)
        return report(run, run_story(run, lang), lang).encode()

    return asked.attachment(await asyncio.to_thread(made), f"{known.name}.html", kind="text/html; charset=utf-8")


def _birth(run: Run, verdict: Verdict, *, chinese: bool) -> BirthView:
    return BirthView(
        sentence=_said(verdict.sentence(), chinese=chinese),
        node=verdict.node,
        step=verdict.step,
        rank=verdict.rank,
        notes=tuple(_said(text, chinese=chinese) for text in (verdict.replayed, verdict.note) if text),
        command=replay_command(run, verdict),
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
    return said(sentence, "zh" if chinese else "en")
