"""The last lines of the journals, a sentence each."""

from __future__ import annotations

from typing import Any

from misstep.sentences import journal, words
from misstep.sentences.text import clauses
from misstep.sentences.verdict import FIRST_BAD
from misstep.store.bundle.open import Bundle
from misstep.store.codec import decode_facts


def last_events(bundle: Bundle, most: int = 12) -> list[dict[str, Any]]:
    """The last lines of the journals that are more than a step."""
    told = [event for event in bundle.run.events() if event.kind not in ("step", "start", "watchpoint", "heartbeat")]
    return [
        {"kind": event.kind, "rank": event.rank, "time": event.time, "text": _line(event)} for event in told[-most:]
    ]


def _line(event: Any) -> str:
    facts = event.facts
    if event.kind == "hit":
        hit = decode_facts(dict(facts.get("hit", {})))
        condition, address, why = (hit.get(name, "") for name in ("condition", "address", "reason"))
        return journal.HIT.of(condition=condition, address=address, why=why)
    if event.kind == "exception":
        return f"{facts.get('type', '')}: {str(facts.get('text', '')).partition(chr(10))[0]}"
    if event.kind == "end":
        ending = words.word(words.ENDINGS, str(facts.get("reason", "")))
        code = facts.get("exit")
        return ending if code is None else journal.ENDED.of(ending=ending, code=code)
    if event.kind == "verdict":
        step, phase, node = (facts.get("verdict", {}).get(name) for name in ("step", "phase", "node"))
        return FIRST_BAD.of(step=step, phase=words.word(words.PHASES, str(phase)), node=node)
    if event.kind == "finding":
        return str(decode_facts(dict(facts.get("finding", {}))).get("title", ""))
    if event.kind == "skipped":
        return _skipped_line(facts)
    if event.kind == "state":
        state, step = words.word(words.CONTROL, str(facts.get("state", ""))), facts.get("step")
        why = facts.get("text")
        return (
            journal.STATE_BECAUSE.of(state=state, step=step, why=why)
            if why
            else journal.STATE_AT.of(state=state, step=step)
        )
    if event.kind == "lost":
        return journal.LOST_TENSORS.of(count=facts.get("new", 0), step=facts.get("step"))
    text = str(facts.get("text", "") or ", ".join(f"{name} {fact}" for name, fact in facts.items()))
    return text if len(text) <= 200 else text[:200]


def _skipped_line(facts: dict[str, Any]) -> str:
    parts = [journal.SKIPPED.of(step=facts.get("step"))]
    scale = number(facts.get("loss_scale"))
    if scale is not None:
        parts.append(journal.SCALE.of(scale=f"{scale:g}"))
    if facts.get("node"):
        parts.append(journal.OVERFLOWED_AT.of(node=facts["node"]))
    return clauses(parts)


def number(value: Any) -> float | None:
    """A figure of the journal; None for anything else."""
    try:
        return None if value is None else float(str(value).replace("Infinity", "inf"))
    except ValueError:
        return None
