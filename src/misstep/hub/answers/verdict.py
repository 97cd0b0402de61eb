"""What the page opens on: the first bad value of a run, else the exception that ended it."""

from __future__ import annotations

from misstep.core.address import Address
from misstep.core.finding import TensorFact, Verdict
from misstep.errors import AddressError
from misstep.protocol.story import VerdictView
from misstep.protocol.views import source_view
from misstep.sentences import verdict as texts
from misstep.sentences.language import Language
from misstep.sentences.text import said
from misstep.store.reading.reader import Run

MOST_INPUTS = 2
"""Inputs described; an operator with more has its fault in the first ones or in all."""


def run_verdict(run: Run, lang: Language) -> VerdictView | None:
    """The one answer of a run; None when nothing bad is known of it."""
    verdict = run.verdict
    return _of_exception(run) if verdict is None else _of_value(run, verdict, lang)


def replay_command(run: Run, verdict: Verdict) -> str:
    """Runs the step of a verdict again; empty when it was not kept."""
    kept = [event for event in run.events("capsule", verdict.rank) if event.facts.get("path")]
    again = any(event.facts.get("step") == verdict.step for event in kept)
    return f"misstep replay {run.name}@{verdict.step}" if again else ""


def _of_value(run: Run, verdict: Verdict, lang: Language) -> VerdictView:
    out = [texts.EVIDENCE_BAD.of(role=_slot(one) or "output", found=one.description) for one in verdict.outputs[:1]]
    into = [
        texts.EVIDENCE_INPUT.of(node=_node(one), found=one.description)
        for one in verdict.inputs[:MOST_INPUTS]
        if one.description
    ]
    known = {"module": texts.EVIDENCE_MODULE, "step": texts.EVIDENCE_STEP}.get(verdict.precision)
    notes = [verdict.replayed, verdict.note, known.of() if known is not None else ""]
    return VerdictView(
        kind=verdict.kind,
        node=verdict.node,
        step=verdict.step,
        rank=verdict.rank,
        phase=verdict.phase,
        op=verdict.op,
        slot=_slot(verdict.outputs[0]) if verdict.outputs and _node(verdict.outputs[0]) == verdict.node else "",
        evidence=tuple(said(text, lang) for text in [*out, *into, *notes] if text),
        source=source_view(verdict.source),
        precision=verdict.precision,
        samples=_samples(run, verdict),
        command=replay_command(run, verdict),
        inputs=tuple(dict.fromkeys(_node(one) for one in verdict.inputs if one.address))[:8],
    )


def _of_exception(run: Run) -> VerdictView | None:
    """Of several ranks the one that failed first: the others fail because it is gone."""
    event = next(iter(run.events("exception")), None)
    if event is None:
        return None
    node = str(event.facts.get("node") or "")
    rank = next((one for one in run.ranks if event in run.events("exception", one)), 0)
    known = run.graph(rank).node(node)
    return VerdictView(
        kind="exception",
        node=node if known is not None else "",
        step=int(event.facts.get("step") or 0),
        rank=rank,
        phase=known.phase if known is not None else "",
        title=f"{event.facts.get('type', '')}: {str(event.facts.get('text', '')).partition(chr(10))[0]}",
        source=source_view(known.source) if known is not None else None,
        precision="module" if known is not None else "step",
    )


def _samples(run: Run, verdict: Verdict) -> tuple[int, ...]:
    found = [event for event in run.events("samples", verdict.rank) if event.facts.get("step") == verdict.step]
    return tuple(int(one) for one in (found[-1].facts.get("samples") or ())) if found else ()


def _parsed(fact: TensorFact) -> Address | None:
    try:
        return Address.parse(fact.address)
    except AddressError:
        return None


def _node(fact: TensorFact) -> str:
    address = _parsed(fact)
    return address.node if address is not None else fact.address


def _slot(fact: TensorFact) -> str:
    """As a link names it: `output`, `grad.1`, `~2:output`."""
    address = _parsed(fact)
    if address is None:
        return ""
    call = f"~{address.call}:" if (address.call or 1) > 1 else ""
    return f"{call}{address.role}" + (f".{address.slot}" if address.slot else "")
