"""Rate and update: how far weights move, and what the schedule does."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from misstep.core.facts import BACKWARD, SCHEDULE, STEP
from misstep.diagnosis.facts import Facts
from misstep.diagnosis.rules.objective import NEVER_NEGATIVE
from misstep.diagnosis.rules.rule import Found, rule
from misstep.diagnosis.rules.wiring import ratio_evidence
from misstep.sentences.diagnosis import evidence
from misstep.sentences.diagnosis import rate as texts

FEW = 3
TINY_UPDATE, NO_UPDATE, HUGE_UPDATE = 1e-6, 1e-8, 0.3
"""Relative to the weight, in the middle of the layers; the usual range is 1e-4 to 1e-1."""
DECAYED_TO = 1e-4
COLLAPSED = 0.4


@rule("rate.zero", "error", texts.ZERO, texts.ZERO_FIX, texts.ZERO_WHEN)
def zero(facts: Facts) -> Iterator[Found]:
    """A rate of nothing."""
    known = [one.rates for one in facts.calls if one.rates and one.steps > 1]
    rates = [rate for one in known for groups in one for rate in groups]
    if len(known) >= 2 and rates and max(rates) == 0.0:
        yield Found(0.98, {}, [evidence.RATE.of(rates="0")], source=_made(facts))


@rule("rate.decayed", "error", texts.DECAYED, texts.DECAYED_FIX, texts.DECAYED_WHEN)
def decayed(facts: Facts) -> Iterator[Found]:
    """A schedule that is over long before the training is."""
    rates = [rate for rate in facts.rates if rate is not None]
    if len(rates) < 16 or max(rates) <= 0 or not facts.finished:
        return
    limit = DECAYED_TO * max(rates)
    last_high = max(place for place, rate in enumerate(rates) if rate > limit)
    if last_high + 1 < len(rates) / 2 and rates[-1] <= limit:
        per_update = facts.counts.get(SCHEDULE, 0) >= 0.9 * facts.counts.get(STEP, 1)
        yield Found(
            0.92 if per_update else 0.8,
            {"rate": rates[-1], "step": last_high + 2, "steps": len(rates)},
            [evidence.RATE.of(rates=f"{max(rates):.3g} → {rates[-1]:.3g}")],
            source=facts.lines.get(SCHEDULE, "") or _made(facts),
        )


@rule("rate.tiny", "warning", texts.TINY, texts.TINY_FIX, texts.TINY_WHEN)
def tiny(facts: Facts) -> Iterator[Found]:
    """Updates that change nothing one could see."""
    if len(facts.updates) < FEW or facts.falls is not False:
        return
    largest = max(facts.updates) or _rounded_away(facts)
    if 0 < largest < TINY_UPDATE:
        yield Found(
            0.85,
            {},
            [ratio_evidence(facts), *_rates(facts), *_loss(facts)],
            source=_made(facts),
            severity="error" if largest < NO_UPDATE else None,
        )


def _rounded_away(facts: Facts) -> float:
    """Nothing moves: what rate times gradient would have been, over the weight; 0 when that is no explanation."""
    rate = max((rate for rate in facts.rates if rate is not None), default=0.0)
    known = [x for name in facts.matrices if facts.weights[name].held for x in facts.series[name]]
    return max((rate * x.gradient / x.norm for x in known if x.gradient and x.norm), default=0.0)


@rule("rate.too-large", "error", texts.HUGE, texts.HUGE_FIX, texts.HUGE_WHEN)
def huge(facts: Facts) -> Iterator[Found]:
    """Updates as large as the weights."""
    if too_large(facts):
        yield Found(0.88, {}, [ratio_evidence(facts), *_rates(facts), *_loss(facts)], source=_made(facts))


def too_large(facts: Facts) -> bool:
    """Layers jump by a third of their size again and again, and it does not help."""
    if facts.falls is not False or not facts.plain_loop:
        return False
    large = [one for one in facts.updates if one > HUGE_UPDATE]
    if len(large) >= FEW and (len(large) * 2 >= len(facts.updates) or _grows(facts)):
        return True
    losses = facts.finite_losses
    jumps = facts.blown_up or (len(losses) > 8 and max(losses[1:8]) > 3 * abs(losses[0]))
    return jumps and max(facts.updates[:4], default=0.0) > 2 * HUGE_UPDATE


@rule("rate.diverges", "warning", texts.DIVERGES, texts.DIVERGES_FIX, texts.DIVERGES_WHEN)
def diverges(facts: Facts) -> Iterator[Found]:
    """A loss that is larger at the end."""
    if facts.plain_loop and _grows(facts) and any(term.kind in NEVER_NEGATIVE for term in facts.last_terms):
        yield Found(0.7, {}, [*_loss(facts), *_rates(facts)], source=_made(facts))


def _grows(facts: Facts) -> bool:
    if facts.ends is None:
        return False
    first, last = facts.ends
    return last > 3 * first > 0 and last - first > 5 * facts.noise


@rule("rate.decay-collapses", "error", texts.DECAY_COLLAPSES, texts.DECAY_COLLAPSES_FIX, texts.DECAY_COLLAPSES_WHEN)
def decay_collapses(facts: Facts) -> Iterator[Found]:
    """Weights that shrink away."""
    if facts.setup is None or len(facts.looks) < FEW:
        return
    decay = max((group.get("weight_decay", 0.0) for one in facts.setup.optimizers for group in one.groups), default=0.0)
    pairs = [(x[0].norm, x[-1].norm) for name in facts.matrices if len(x := facts.series[name]) >= FEW]
    known = [(first, last) for first, last in pairs if first and last is not None]
    if decay <= 0 or not known or facts.falls:
        return
    shares = [last / first for first, last in known]
    if statistics.median(shares) < COLLAPSED:
        yield Found(
            0.9,
            {},
            [
                evidence.OPTION.of(name="weight_decay", value=decay),
                evidence.SIZES.of(first=sum(f for f, _ in known), last=sum(last for _, last in known)),
            ],
            source=_made(facts),
        )


@rule("rate.momentum", "warning", texts.MOMENTUM, texts.MOMENTUM_FIX, texts.MOMENTUM_WHEN)
def momentum(facts: Facts) -> Iterator[Found]:
    """A memory that is too long."""
    for one in facts.setup.optimizers if facts.setup is not None else ():
        for group in one.groups:
            for name in ("momentum", "beta1"):
                value = group.get(name, 0.0)
                if value >= 0.999:
                    yield Found(
                        0.8,
                        {"name": name, "value": value},
                        _loss(facts),
                        source=one.source,
                        severity="error" if value >= 1.0 else None,
                    )
                    return


@rule("rate.eps", "warning", texts.EPS, texts.EPS_FIX, texts.EPS_WHEN)
def eps(facts: Facts) -> Iterator[Found]:
    """An epsilon larger than the gradients."""
    if facts.setup is None or not facts.updates or facts.falls is not False or max(facts.updates) > 1e-4:
        return
    for one in facts.setup.optimizers:
        value = max((group.get("eps", 0.0) for group in one.groups), default=0.0)
        if value >= 1e-3 and "Adam" in one.type:
            yield Found(0.85, {"value": value}, [ratio_evidence(facts)], source=one.source)


@rule("rate.plateau", "warning", texts.PLATEAU, texts.PLATEAU_FIX, texts.PLATEAU_WHEN)
def plateau(facts: Facts) -> Iterator[Found]:
    """A classifier that only guesses."""
    classes = next((term.classes for term in facts.last_terms if term.kind == "cross_entropy"), None)
    if not classes or classes < 2 or facts.ends is None or len(facts.finite_losses) < 30 or not facts.plain_loop:
        return
    chance = math.log(classes)
    first, last = facts.ends
    if abs(last - chance) < 0.03 * chance and first < 1.3 * chance and last > 0.97 * min(first, chance):
        yield Found(
            0.5,
            {},
            [*_loss(facts), evidence.CHANCE.of(classes=classes, chance=chance)],
            source=facts.lines.get(BACKWARD, ""),
            severity=None if len(facts.finite_losses) >= 200 else "info",
        )


def _made(facts: Facts) -> str:
    return next((one.source for one in facts.setup.optimizers if one.source), "") if facts.setup is not None else ""


def _loss(facts: Facts) -> list[str]:
    return [] if facts.ends is None else [evidence.LOSS.of(first=facts.ends[0], last=facts.ends[1])]


def _rates(facts: Facts) -> list[str]:
    rates = [rate for rate in facts.rates if rate is not None]
    return [evidence.RATE.of(rates=f"{rates[-1]:.3g}")] if rates else []
