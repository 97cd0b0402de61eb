"""Wiring: which weights the optimizer holds, which the loss reaches, and in which order a step calls what."""

from __future__ import annotations

from collections.abc import Iterator

from misstep.core.facts import BACKWARD, CLIP, SCALER, STEP, UNSCALE, ZERO
from misstep.diagnosis.facts import Facts
from misstep.diagnosis.rules.rule import Found, rule
from misstep.sentences.diagnosis import evidence
from misstep.sentences.diagnosis import wiring as texts

FEW = 3
SHOWN = 4


@rule(
    "wiring.not-in-optimizer",
    "error",
    texts.NOT_IN_OPTIMIZER,
    texts.NOT_IN_OPTIMIZER_FIX,
    texts.NOT_IN_OPTIMIZER_WHEN,
)
def not_in_optimizer(facts: Facts) -> Iterator[Found]:
    """Weights with a gradient that no optimizer holds and nobody moves."""
    if facts.setup is None or not facts.setup.optimizers or facts.optimizers_stepping == 0 or len(facts.looks) < 2:
        return
    held = {name for name, one in facts.weights.items() if one.held}
    # A weight nobody knows a setup of stands outside of every network: a layer in a plain list.
    loose = [
        name for name, looks in facts.series.items() if name not in facts.weights and any(x.reached for x in looks)
    ]
    lost = [name for name, one in facts.weights.items() if not one.held and one.trainable]
    lost = [name for name in [*lost, *loose] if _learns_in_vain(facts, name)]
    if not lost:
        return
    stale = sum(one.strange for one in facts.setup.optimizers)
    late = {name: facts.setup.replaced[name] for name in lost if name in facts.setup.replaced}
    behind = _behind(facts, lost, held)
    deliberate = not (late or loose or behind or _twins(facts)) and held
    if deliberate and facts.falls is not False:
        return
    if deliberate and stale == 0:
        severity, confidence = "info", 0.5
    else:
        severity, confidence = "error", 0.97 if late or stale or loose else 0.85
    gradients = [x.gradient for name in lost for x in facts.series[name] if x.gradient]
    said = [evidence.WEIGHTS.of(names=_shown(lost)), evidence.NORMS.of(low=min(gradients), high=max(gradients))]
    made = next((one.source for one in facts.setup.optimizers if one.source), "")
    if made:
        said.append(evidence.MADE_AT.of(line=made))
    advice = None
    source = made
    if late:
        source = next(iter(late.values()))
        said.append(evidence.ADDED_AT.of(line=source))
        advice = texts.CREATE_AFTER.of(line=source)
    elif loose:
        said.append(evidence.NOT_REGISTERED.of())
        advice = texts.REGISTER_THEM.of()
    if stale:
        said.append(evidence.STALE.of(count=stale))
    yield Found(
        confidence,
        {"count": len(lost), "all": sum(one.known for one in facts.weights.values()) + len(loose)},
        said,
        source=source,
        severity=severity,  # type: ignore[arg-type]
        advice=advice,
        detail={"weights": len(lost)},
    )


def _twins(facts: Facts) -> set[str]:
    """Weights that two stepping optimizers hold, when they hold the very same ones."""
    by_optimizer: dict[int, set[str]] = {}
    for name, one in facts.weights.items():
        for number in one.held:
            by_optimizer.setdefault(number, set()).add(name)
    made = facts.setup.optimizers if facts.setup is not None else ()
    stepping = [by_optimizer.get(one.number, set()) for one in made if one.steps]
    return stepping[0] if len(stepping) == 2 and stepping[0] == stepping[1] else set()


def _learns_in_vain(facts: Facts, name: str) -> bool:
    looks = facts.series.get(name, [])
    return len(looks) >= 2 and all(x.gradient and not x.moved for x in looks)


def _behind(facts: Facts, lost: list[str], held: set[str]) -> bool:
    """Whether a lost weight stands nearer to the loss than one that is trained: nobody freezes the end of a network."""
    order = list(facts.weights)
    places = [order.index(name) for name in lost if name in facts.weights]
    trained = [
        order.index(name) for name in held if name in facts.series and any(x.gradient for x in facts.series[name])
    ]
    return bool(places) and (not trained or max(places) > max(trained))


@rule("wiring.detached", "error", texts.DETACHED, texts.DETACHED_FIX, texts.DETACHED_WHEN)
def detached(facts: Facts) -> Iterator[Found]:
    """A part of the network that the optimizer steps and no gradient reaches."""
    silent, alive = _without_gradient(facts)
    if not silent or not alive:
        return
    order = list(facts.weights)
    before = [name for name in silent if order.index(name) < order.index(alive[0])]
    layers = [name for name in before if len(facts.weights[name].shape) > 1]
    if order.index(silent[0]) == 0 and layers and (len(before) >= 2 or len(facts.weights) <= 4):
        yield Found(
            0.93,
            {"count": len(silent), "all": len(facts.weights), "inner": before[-1], "outer": alive[0]},
            [evidence.WEIGHTS.of(names=_shown(silent)), evidence.NO_GRADIENT.of(looks=len(facts.looks))],
            source=facts.lines.get("f", ""),
        )


@rule("wiring.unused", "warning", texts.UNUSED, texts.UNUSED_FIX, texts.UNUSED_WHEN)
def unused(facts: Facts) -> Iterator[Found]:
    """Layers the optimizer holds that the loss never needs."""
    silent, alive = _without_gradient(facts)
    if not silent or not alive or any(True for _ in detached(facts)):
        return
    layers = [name for name in silent if len(facts.weights[name].shape) > 1]
    if layers:
        yield Found(
            0.6,
            {"count": len(silent), "all": len(facts.weights), "inner": layers[0].rpartition(".")[0] or layers[0]},
            [evidence.WEIGHTS.of(names=_shown(silent)), evidence.NO_GRADIENT.of(looks=len(facts.looks))],
            severity="info" if len(silent) * 4 < len(facts.weights) else None,
        )


def _without_gradient(facts: Facts) -> tuple[list[str], list[str]]:
    """(weights that are held and never have a gradient, weights that have one), in the network's order."""
    if facts.setup is None or len(facts.looks) < FEW or not facts.counts.get(BACKWARD):
        return [], []
    stepping = {one.number for one in facts.setup.optimizers if one.steps}
    known = [name for name in facts.weights if name in facts.series]
    silent = [
        name
        for name in known
        if facts.weights[name].trainable
        and facts.weights[name].known
        and stepping & set(facts.weights[name].held)
        # Where nobody walked the graph, a gradient of exactly 0 is all there is to see.
        and all(x.gradient is None or (x.gradient == 0 and x.reached is None) for x in facts.series[name])
        and not any(x.reached for x in facts.series[name])
    ]
    return silent, [name for name in known if any(x.gradient for x in facts.series[name])]


@rule("wiring.loss-detached", "error", texts.LOSS_DETACHED, texts.LOSS_DETACHED_FIX, texts.LOSS_DETACHED_WHEN)
def loss_detached(facts: Facts) -> Iterator[Found]:
    """A loss without a history, or with none that leads to a weight of the network."""
    seen = [look for look in facts.looks if look.objective is not None and look.objective.complete]
    known = {name for name, one in facts.weights.items() if one.trainable and one.known}
    if len(seen) < 2 or not known:
        return
    empty = all(look.objective is not None and look.objective.leaf for look in seen)
    reached = any(x.reached or x.gradient for look in seen for x in look.weights if x.name in known)
    if empty or not reached:
        yield Found(0.97, {}, [evidence.NO_GRADIENT.of(looks=len(seen))], source=facts.lines.get(BACKWARD, ""))


@rule("wiring.no-zero-grad", "error", texts.NO_ZERO_GRAD, texts.NO_ZERO_GRAD_FIX, texts.NO_ZERO_GRAD_WHEN)
def no_zero_grad(facts: Facts) -> Iterator[Found]:
    """Gradients that add up from update to update."""
    last = facts.calls[-1] if facts.calls else None
    if last is not None and last.judged >= FEW and last.leftover >= 0.9 * last.judged:
        yield Found(
            0.97,
            {},
            [evidence.LEFT_OVER.of(count=last.leftover, all=last.judged), *_order(facts)],
            source=facts.lines.get(BACKWARD, ""),
        )


@rule("wiring.zero-grad-part", "error", texts.ZERO_GRAD_PART, texts.ZERO_GRAD_PART_FIX, texts.NO_ZERO_GRAD_WHEN)
def zero_grad_part(facts: Facts) -> Iterator[Found]:
    """Gradients of some weights add up, those of others are cleared."""
    last = facts.calls[-1] if facts.calls else None
    if last is not None and last.judged >= FEW and last.leftover_part >= 0.9 * last.judged:
        yield Found(
            0.9,
            {},
            [evidence.LEFT_OVER.of(count=last.leftover_part, all=last.judged), *_order(facts)],
            source=facts.lines.get(ZERO, ""),
        )


@rule(
    "wiring.zeroed-before-step",
    "error",
    texts.ZEROED_BEFORE_STEP,
    texts.ZEROED_BEFORE_STEP_FIX,
    texts.ZEROED_BEFORE_STEP_WHEN,
)
def zeroed_before_step(facts: Facts) -> Iterator[Found]:
    """zero_grad between backward and step."""
    orders = [one.order for one in facts.calls if STEP in one.order]
    if len(orders) < 2 or len(facts.looks) < 2:
        return
    gone = not any(x.gradient for look in facts.looks for x in look.weights)
    if gone and all(_last_before(order, STEP, BACKWARD + ZERO) == ZERO and BACKWARD in order for order in orders):
        yield Found(0.97, {}, _order(facts), source=facts.lines.get(ZERO, ""))


@rule("wiring.no-step", "error", texts.NO_STEP, texts.NO_STEP_FIX, texts.NO_STEP_WHEN)
def no_step(facts: Facts) -> Iterator[Found]:
    """Backward without an update."""
    made = facts.setup is not None and facts.setup.optimizers
    if made and facts.counts.get(BACKWARD, 0) >= FEW and not facts.counts.get(STEP) and not facts.moves:
        skipped = facts.calls[-1].skipped if facts.calls else 0
        if not facts.counts.get(SCALER) or not skipped:
            yield Found(0.95, {}, _order(facts), source=facts.lines.get(BACKWARD, ""))


@rule("wiring.no-backward", "error", texts.NO_BACKWARD, texts.NO_BACKWARD_FIX, texts.NO_BACKWARD_WHEN)
def no_backward(facts: Facts) -> Iterator[Found]:
    """Updates without a gradient."""
    if facts.framework != "torch" or facts.counts.get(STEP, 0) < FEW or facts.counts.get(BACKWARD):
        return
    if not facts.moves and not any(x.gradient for look in facts.looks for x in look.weights):
        yield Found(0.95, {}, _order(facts), source=facts.lines.get(STEP, ""))


@rule("wiring.clip-too-small", "error", texts.CLIP_TOO_SMALL, texts.CLIP_TOO_SMALL_FIX, texts.CLIP_TOO_SMALL_WHEN)
def clip_too_small(facts: Facts) -> Iterator[Found]:
    """Clipping that leaves nothing."""
    clips = [look.clip for look in facts.looks if look.clip is not None]
    if len(clips) < FEW or not facts.updates:
        return
    if all(norm > 1000 * most for norm, most in clips) and max(facts.updates) < 1e-5:
        norm, most = clips[-1]
        yield Found(
            0.92,
            {},
            [evidence.CLIPPED.of(norm=norm, most=most), ratio_evidence(facts)],
            source=facts.lines.get(CLIP, ""),
        )


@rule("wiring.clip-scaled", "error", texts.CLIP_SCALED, texts.CLIP_SCALED_FIX, texts.CLIP_SCALED_WHEN)
def clip_scaled(facts: Facts) -> Iterator[Found]:
    """Clipping of gradients that are still scaled."""
    scaled = any((look.loss_scale or 1.0) > 1.0 for look in facts.looks)
    if scaled and facts.counts.get(CLIP, 0) >= FEW and not facts.counts.get(UNSCALE) and facts.counts.get(SCALER):
        yield Found(0.9, {}, _order(facts), source=facts.lines.get(CLIP, ""))


@rule("wiring.clip-late", "warning", texts.CLIP_LATE, texts.CLIP_LATE_FIX, texts.CLIP_LATE_WHEN)
def clip_late(facts: Facts) -> Iterator[Found]:
    """Clipping after the update, or before the gradients are there."""
    orders = [one.order for one in facts.calls if one.order.count(STEP) == 1 and one.order.count(CLIP) == 1]
    # The order of a step ends with its update: what follows it stands at the beginning of the next one.
    late = [order for order in orders if order.index(CLIP) < (order.index(BACKWARD) if BACKWARD in order else 0)]
    if len(orders) >= 2 and len(late) == len(orders):
        yield Found(0.85, {}, _order(facts), source=facts.lines.get(CLIP, ""))


@rule("wiring.undone", "error", texts.UNDONE, texts.UNDONE_FIX, texts.UNDONE_WHEN)
def undone(facts: Facts) -> Iterator[Found]:
    """Weights that go back to what they were."""
    looks = [look for look in facts.looks if look.between]
    if len(looks) >= 2 and all(look.undone for look in looks):
        yield Found(0.9, {}, [evidence.WEIGHTS.of(names=_shown(list(facts.weights)))], step=looks[0].step)


@rule("wiring.held-twice", "warning", texts.HELD_TWICE, texts.HELD_TWICE_FIX, texts.HELD_TWICE_WHEN)
def held_twice(facts: Facts) -> Iterator[Found]:
    """Two optimizers with the very same weights, both stepping in one pass."""
    twins = _twins(facts)
    if twins and sum(one.order.count(STEP) >= 2 for one in facts.calls) * 2 > len(facts.calls):
        yield Found(0.7, {"count": len(twins)}, _order(facts), source=facts.lines.get(STEP, ""))


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def ratio_evidence(facts: Facts) -> str:
    return evidence.RATIO.of(low=min(facts.updates), high=max(facts.updates))


_WORDS = {
    "f": "forward",
    "z": "zero_grad",
    "b": "backward",
    "u": "unscale_",
    "c": "clip",
    "s": "step",
    "h": "scheduler",
    "a": "scaler.update",
    "e": "evaluate",
}


def _order(facts: Facts) -> list[str]:
    full = [one for one in facts.calls if one.order]
    if not full:
        return []
    last = full[min(1, len(full) - 1)]
    return [evidence.ORDER.of(step=last.step, order=" → ".join(_WORDS[letter] for letter in last.order[:10]))]


def _last_before(order: str, letter: str, among: str) -> str:
    return next((one for one in reversed(order[: order.index(letter)]) if one in among), "")


def _shown(names: list[str]) -> list[str]:
    return names[:SHOWN] + (["…"] if len(names) > SHOWN else [])
