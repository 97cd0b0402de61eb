"""Signal: what comes through the network, forwards and backwards."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from misstep.core.facts import Activation, Look, Modes
from misstep.diagnosis.facts import Facts
from misstep.diagnosis.rules.rule import Found, rule
from misstep.sentences.diagnosis import evidence
from misstep.sentences.diagnosis import signal as texts

FEW = 3
DEAD, FLAT, VERY_FLAT = 0.9, 0.9, 0.97
VANISHED, GONE = 1e-5, 1e-7
SAME_PREDICTION = 1e-5


def _by_layer(facts: Facts, kind: str) -> dict[str, list[tuple[int, Activation]]]:
    found: dict[str, list[tuple[int, Activation]]] = defaultdict(list)
    for look in facts.looks:
        seen: dict[str, int] = defaultdict(int)
        for one in look.activations:
            if one.kind == kind:
                seen[one.layer] += 1
                key = one.layer if seen[one.layer] == 1 else f"{one.layer} ({seen[one.layer]})"
                found[key].append((look.step, one))
    return found


@rule("signal.dead-relu", "error", texts.DEAD_RELU, texts.DEAD_RELU_FIX, texts.DEAD_RELU_WHEN)
def dead_relu(facts: Facts) -> Iterator[Found]:
    """Units that are 0 whatever comes in."""
    if _batch(facts) < 8:
        return
    worst: Found | None = None
    for layer, series in _by_layer(facts, "relu").items():
        shares = [one.dead for _, one in series[-FEW:] if one.dead is not None]
        if len(shares) < FEW or min(shares) < DEAD:
            continue
        found = Found(
            0.93 if min(shares) == 1.0 else 0.7,
            {"share": shares[-1], "layer": layer.removesuffix(".weight")},
            [evidence.SHARE.of(share=one.dead, step=step) for step, one in series[-FEW:]],
            severity=None if min(shares) == 1.0 else "warning",
            step=series[-1][0],
        )
        if worst is None or found.confidence > worst.confidence:
            worst = found
    if worst is not None:
        yield worst


@rule("signal.saturated", "warning", texts.SATURATED, texts.SATURATED_FIX, texts.SATURATED_WHEN)
def saturated(facts: Facts) -> Iterator[Found]:
    """Activations that no longer answer."""
    for kind in ("tanh", "sigmoid"):
        for layer, series in _by_layer(facts, kind).items():
            shares = [one.saturated for _, one in series[-FEW:] if one.saturated is not None]
            if len(shares) >= FEW and min(shares) >= FLAT:
                yield Found(
                    0.85,
                    {"share": shares[-1], "layer": layer.removesuffix(".weight"), "kind": kind},
                    [evidence.SHARE.of(share=one.saturated, step=step) for step, one in series[-FEW:]],
                    severity="error" if min(shares) >= VERY_FLAT and facts.falls is False else None,
                    step=series[-1][0],
                )
                return


@rule("signal.identical-units", "error", texts.ALIKE, texts.ALIKE_FIX, texts.ALIKE_WHEN)
def identical_units(facts: Facts) -> Iterator[Found]:
    """Units that began equal and stay equal."""
    for name in facts.matrices:
        looks = facts.series[name]
        moved = [x for x in looks if x.moved and x.gradient]
        if len(moved) >= FEW and all(x.alike for x in looks) and looks[-1].alike:
            yield Found(0.94, {"layer": name}, [evidence.WEIGHTS.of(names=[name])])
            return


@rule("signal.zero-init", "error", texts.ZERO_INIT, texts.ZERO_INIT_FIX, texts.ZERO_INIT_WHEN)
def zero_init(facts: Facts) -> Iterator[Found]:
    """Layers that pass nothing back."""
    if len(facts.looks) < FEW:
        return
    dead = [
        name
        for name in facts.matrices
        if facts.weights[name].constant
        and all(x.gradient == 0.0 and not x.moved for x in facts.series[name])
        and all((x.norm or 0.0) == 0.0 for x in facts.series[name])
    ]
    if dead:
        yield Found(0.96, {"count": len(dead)}, [evidence.WEIGHTS.of(names=dead[:4])])


@rule("signal.vanishing", "warning", texts.VANISHING, texts.VANISHING_FIX, texts.VANISHING_WHEN)
def vanishing(facts: Facts) -> Iterator[Found]:
    """Gradients that fade on the way to the first layers."""
    named = [name for name in facts.matrices if facts.weights[name].known and facts.weights[name].held]
    if len(named) < 4 or len(facts.looks) < FEW:
        return
    profiles: list[tuple[float, float]] = []
    for look in facts.looks:
        by_name = {x.name: x for x in look.weights}
        ratios = [
            (x.gradient / x.norm if x.gradient is not None and x.norm else None)
            for name in named
            if (x := by_name.get(name)) is not None
        ]
        known = [one for one in ratios if one is not None]
        if len(known) < 4 or ratios[0] is None or ratios[-1] is None:
            return
        profiles.append((ratios[0], max(known[-2:])))
    if all(last > 0 and first < VANISHED * last for first, last in profiles):
        first, last = profiles[-1]
        worst = max(first / last for first, last in profiles)
        yield Found(
            0.85,
            {"layer": named[0]},
            [evidence.DEPTH.of(first=first, name=named[0], last=last, other=named[-1])],
            severity="error" if worst < GONE else None,
            step=facts.looks[-1].step,
        )


@rule("signal.exploding", "warning", texts.EXPLODING, texts.EXPLODING_FIX, texts.EXPLODING_WHEN)
def exploding(facts: Facts) -> Iterator[Found]:
    """Values that grow with depth, from the beginning."""
    if not facts.looks or facts.looks[0].step != 1 or facts.falls:
        return
    first = facts.looks[0]
    large = [one for one in first.activations if one.kind == "relu" and one.size > 1e4]
    objective = first.objective
    classes = next((t.classes for t in objective.terms if t.kind == "cross_entropy"), None) if objective else None
    if large:
        yield Found(0.75, {"layer": large[-1].layer, "size": large[-1].size}, [], step=1)
    elif classes and classes > 1 and objective is not None and _unscaled(first) > 10 * math.log(classes):
        output = objective.output
        yield Found(
            0.7,
            {"layer": objective.terms[0].layer, "size": max(abs(output.min), abs(output.max)) if output else 0.0},
            [
                evidence.LOSS_IS.of(value=_unscaled(first), step=1),
                evidence.CHANCE.of(classes=classes, chance=math.log(classes)),
            ],
            step=1,
        )


@rule("signal.eval-left-on", "error", texts.EVAL_LEFT_ON, texts.EVAL_LEFT_ON_FIX, texts.EVAL_LEFT_ON_WHEN)
def eval_left_on(facts: Facts) -> Iterator[Found]:
    """Training in evaluation mode."""
    seen = [(look.step, look.modes) for look in facts.looks if look.modes is not None]
    if len(seen) < FEW or not any(_behaves(modes) for _, modes in seen):
        return
    off = [(step, modes) for step, modes in seen if not modes.network and _behaves(modes) == _off(modes)]
    if len(off) < 2 or seen[-1][1].network:
        return
    on = [step for step, modes in seen if modes.network]
    _, last = seen[-1]
    said = [evidence.LAYERS.of(norms=sum(last.norms), dropouts=sum(last.dropouts))]
    if on and max(on) < off[0][0]:
        said.append(evidence.MODE.of(first=max(on), last=off[0][0]))
        yield Found(0.93, {}, said, source=last.line, step=off[0][0])
    elif not on:
        yield Found(0.7, {}, said, source=last.line, severity="warning")


def _behaves(modes: Modes) -> int:
    return sum(modes.norms) + sum(modes.dropouts)


def _off(modes: Modes) -> int:
    return modes.norms[1] + modes.dropouts[1]


@rule(
    "signal.train-in-evaluation",
    "warning",
    texts.TRAIN_IN_EVALUATION,
    texts.TRAIN_IN_EVALUATION_FIX,
    texts.TRAIN_IN_EVALUATION_WHEN,
)
def train_in_evaluation(facts: Facts) -> Iterator[Found]:
    """Evaluation with dropout and batch statistics."""
    seen = [(look.step, look.evaluation) for look in facts.looks if look.evaluation is not None]
    wrong = [(step, one) for step, one in seen if one.network and one.norms[0] + one.dropouts[0]]
    if seen and len(wrong) == len(seen):
        step, modes = wrong[-1]
        said = [evidence.LAYERS.of(norms=modes.norms[0], dropouts=modes.dropouts[0])]
        yield Found(0.75, {}, said, source=modes.line, step=step)


@rule("signal.overflows", "error", texts.OVERFLOWS, texts.OVERFLOWS_FIX, texts.OVERFLOWS_WHEN)
def overflows(facts: Facts) -> Iterator[Found]:
    """A gradient scaler that gives up."""
    last = facts.calls[-1] if facts.calls else None
    if last is not None and last.skipped > 10 and last.skipped - 10 > last.steps:
        yield Found(0.9, {}, [evidence.SKIPPED.of(count=last.skipped, all=last.skipped + last.steps)])


@rule(
    "signal.constant-prediction",
    "error",
    texts.CONSTANT_PREDICTION,
    texts.CONSTANT_PREDICTION_FIX,
    texts.CONSTANT_PREDICTION_WHEN,
)
def constant_prediction(facts: Facts) -> Iterator[Found]:
    """Outputs that do not depend on the inputs."""
    seen = [look for look in facts.looks if look.objective is not None and look.objective.output_spread is not None]
    last = [look for look in seen if look.step >= 4][-FEW:]
    if len(last) < FEW or not facts.plain_loop or any(not _differ(look.inputs) for look in last):
        return
    spreads = [look.objective.output_spread for look in last if look.objective is not None]
    if all(one is not None and one < SAME_PREDICTION for one in spreads):
        yield Found(0.85, {}, [evidence.SPREAD.of(spread=spreads[-1])], step=last[-1].step)


def _unscaled(look: Look) -> float:
    """The loss without what a gradient scaler multiplied it by."""
    value = look.objective.value if look.objective is not None else None
    return (value or 0.0) / (look.loss_scale or 1.0)


def _differ(inputs: tuple[object, ...]) -> bool:
    return any((getattr(one, "distinct", None) or 0) > 0.5 for one in inputs)


def _batch(facts: Facts) -> int:
    sizes = [one.shape[0] for look in facts.looks for one in look.inputs[:1] if one.shape]
    return min(sizes) if sizes else 0
