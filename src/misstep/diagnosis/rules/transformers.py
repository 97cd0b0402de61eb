"""Transformers: what attention may see, and what is to be predicted."""

from __future__ import annotations

from collections.abc import Iterator

from misstep.core.facts import BACKWARD
from misstep.diagnosis.facts import Facts
from misstep.diagnosis.rules.rule import Found, rule
from misstep.sentences.diagnosis import evidence
from misstep.sentences.diagnosis import transformers as texts

LANGUAGE_MODEL = 0.98
"""Share of targets that are the next token."""


def _attention(facts: Facts) -> list[tuple[float, float | None]]:
    """(weight on later positions, on earlier ones) of every square attention looked at."""
    return [
        (one.future, one.past)
        for look in facts.looks
        for one in look.activations
        if one.kind == "attention" and one.future is not None
    ]


def _shares(facts: Facts, field: str) -> list[float]:
    found = [getattr(look.objective, field) for look in facts.looks if look.objective is not None]
    return [one for one in found if one is not None]


@rule("transformers.no-causal-mask", "error", texts.NO_CAUSAL_MASK, texts.NO_CAUSAL_MASK_FIX, texts.NO_CAUSAL_MASK_WHEN)
def no_causal_mask(facts: Facts) -> Iterator[Found]:
    """A language model that sees its answers."""
    shifted, seen = _shares(facts, "shifted"), _attention(facts)
    if len(shifted) < 2 or min(shifted) < LANGUAGE_MODEL or not seen or _inverted(seen):
        return
    if all(future > 0.01 for future, _ in seen):
        yield Found(
            0.93,
            {},
            [evidence.NEXT_TOKEN.of(share=shifted[-1]), evidence.FUTURE.of(share=seen[-1][0])],
            source=facts.lines.get("f", ""),
        )


@rule("transformers.inverted-mask", "error", texts.INVERTED_MASK, texts.INVERTED_MASK_FIX, texts.INVERTED_MASK_WHEN)
def inverted_mask(facts: Facts) -> Iterator[Found]:
    """A mask the wrong way round."""
    shifted, seen = _shares(facts, "shifted"), _attention(facts)
    if len(shifted) >= 2 and min(shifted) >= LANGUAGE_MODEL and seen and _inverted(seen):
        yield Found(0.93, {}, [evidence.FUTURE.of(share=seen[-1][0])], source=facts.lines.get("f", ""))


def _inverted(seen: list[tuple[float, float | None]]) -> bool:
    return all(future > 0.2 and past is not None and past < 0.15 * future for future, past in seen)


@rule("transformers.targets-not-shifted", "error", texts.NOT_SHIFTED, texts.NOT_SHIFTED_FIX, texts.NOT_SHIFTED_WHEN)
def targets_not_shifted(facts: Facts) -> Iterator[Found]:
    """A causal model that is asked for what it was given."""
    copied, shifted, seen = _shares(facts, "copied"), _shares(facts, "shifted"), _attention(facts)
    if len(copied) < 2 or min(copied) < LANGUAGE_MODEL or max(shifted, default=0.0) >= LANGUAGE_MODEL:
        return
    if seen and all(future < 1e-3 for future, _ in seen):
        yield Found(0.9, {}, [evidence.SAME_TOKEN.of(share=copied[-1])], source=facts.lines.get(BACKWARD, ""))
