"""What was looked at and what was not: silence of a rule means something only when its facts were there."""

from __future__ import annotations

from misstep.diagnosis.facts import Facts
from misstep.sentences.diagnosis import unchecked as texts


def unchecked(facts: Facts) -> dict[str, list[str]]:
    """By family: what is missing. A family without an entry was looked at with all its facts."""
    if facts.setup is None and not facts.calls:
        return {family: [texts.NO_FACTS.of()] for family in texts.FAMILIES}
    missing: dict[str, list[str]] = {}

    def miss(family: str, sentence: str) -> None:
        missing.setdefault(family, []).append(sentence)

    if facts.steps < 8:
        for family in ("wiring", "rate", "signal"):
            miss(family, texts.FEW_STEPS.of(steps=facts.steps))
    objectives = [look.objective for look in facts.looks if look.objective is not None]
    if not objectives:
        miss("objective", texts.NO_GRAPH.of())
    elif not facts.terms:
        miss("objective", texts.NO_OBJECTIVE.of())
    if not any(look.activations for look in facts.looks):
        miss("signal", texts.NO_ACTIVATIONS.of())
    if not any(look.inputs for look in facts.looks):
        miss("data", texts.NO_INPUTS.of())
    if not any(term.target is not None for term in facts.terms):
        miss("data", texts.NO_TARGETS.of())
    miss("data", texts.LABELS.of())
    if facts.setup is None or facts.setup.world <= 1:
        miss("ranks", texts.ONE_RANK.of())
    seen = any(look.evaluation is not None for look in facts.looks)
    miss("generalisation", (texts.NO_EVALUATION_LOSS if seen else texts.NO_EVALUATION).of())
    if not any(one.kind == "attention" for look in facts.looks for one in look.activations):
        miss("transformers", texts.NO_ATTENTION.of())
    return missing
