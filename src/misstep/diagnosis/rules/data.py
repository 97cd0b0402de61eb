"""Data: inputs, labels, and whether batches differ."""

from __future__ import annotations

from collections.abc import Iterator

from misstep.core.facts import TensorLook
from misstep.diagnosis.facts import Facts
from misstep.diagnosis.rules.rule import Found, rule
from misstep.diagnosis.rules.signal import dead_relu, saturated
from misstep.sentences.diagnosis import data as texts
from misstep.sentences.diagnosis import evidence

FEW = 3


@rule("data.same-batch", "warning", texts.SAME_BATCH, texts.SAME_BATCH_FIX, texts.SAME_BATCH_WHEN)
def same_batch(facts: Facts) -> Iterator[Found]:
    """The first batch of the loader, again and again."""
    batches = facts.batches
    if batches is None or not batches.loader or len(batches.digests) < 4 or "" in batches.digests:
        return
    if len(set(batches.digests)) == 1:
        yield Found(0.8, {}, [evidence.BATCH.of(count=len(batches.digests), distinct=1)], source=batches.source)


@rule("data.unnormalised", "warning", texts.UNNORMALISED, texts.UNNORMALISED_FIX, texts.UNNORMALISED_WHEN)
def unnormalised(facts: Facts) -> Iterator[Found]:
    """Raw values, hundreds of times larger than layers expect."""
    seen = [look.inputs[0] for look in facts.looks if look.inputs and look.inputs[0].dtype.startswith(("float", "bf"))]
    if len(seen) < 2 or not all(_raw(one) for one in seen):
        return
    last = seen[-1]
    harm = facts.falls is False or any(True for check in (dead_relu, saturated) for _ in check(facts))
    yield Found(
        0.8,
        {},
        [evidence.INPUTS.of(low=last.min, high=last.max, mean=last.mean, std=last.std)],
        source=facts.lines.get("f", ""),
        severity="warning" if harm else "info",
    )


def _raw(one: TensorLook) -> bool:
    return max(abs(one.min), abs(one.max)) > 30 and one.std > 10


@rule("data.constant-input", "error", texts.CONSTANT_INPUT, texts.CONSTANT_INPUT_FIX, texts.CONSTANT_INPUT_WHEN)
def constant_input(facts: Facts) -> Iterator[Found]:
    """One sample, many times."""
    seen = [look.inputs for look in facts.looks if look.inputs]
    if len(seen) < FEW or not facts.plain_loop:
        return
    if all(_repeated(one) for inputs in seen for one in inputs):
        labels = [term.target for term in facts.terms if term.target is not None]
        if labels and any((one.distinct or 0) * one.shape[0] >= 2 for one in labels if one.shape):
            yield Found(
                0.88,
                {},
                [evidence.RANGE.of(low=seen[-1][0].min, high=seen[-1][0].max)],
                source=facts.lines.get("f", ""),
            )


def _repeated(one: TensorLook) -> bool:
    return (
        bool(one.shape)
        and one.shape[0] >= 4
        and one.distinct is not None
        and one.distinct * min(one.shape[0], 256) <= 1.001
    )


@rule("data.constant-labels", "error", texts.CONSTANT_LABELS, texts.CONSTANT_LABELS_FIX, texts.CONSTANT_LABELS_WHEN)
def constant_labels(facts: Facts) -> Iterator[Found]:
    """A single class, always the same."""
    labels = _single_class(facts)
    if len(labels) >= FEW and len(set(labels)) == 1 and (len(labels) > FEW or facts.steps <= FEW):
        yield Found(0.85, {}, [evidence.RANGE.of(low=labels[0], high=labels[0])])


@rule("data.sorted-labels", "warning", texts.SORTED_LABELS, texts.SORTED_LABELS_FIX, texts.SORTED_LABELS_WHEN)
def sorted_labels(facts: Facts) -> Iterator[Found]:
    """A single class in each batch, another one later."""
    labels = _single_class(facts)
    if len(labels) >= FEW and len(set(labels)) > 1:
        yield Found(0.8, {}, [evidence.RANGE.of(low=min(labels), high=max(labels))])


def _single_class(facts: Facts) -> list[float]:
    """The only class of every batch looked at; empty when one batch has several, or it is no plain classification."""
    if not facts.plain_loop:
        return []
    found = []
    for term in facts.terms:
        if term.kind not in ("cross_entropy", "nll") or term.target is None or term.top_target is None:
            continue
        if term.top_target < 1.0 or not term.target.shape or term.target.shape[0] < 16 or (term.classes or 0) < 2:
            return []
        found.append(term.target.max)
    return found


@rule("data.one-class", "warning", texts.ONE_CLASS, texts.ONE_CLASS_FIX, texts.ONE_CLASS_WHEN)
def one_class(facts: Facts) -> Iterator[Found]:
    """Imbalance that is answered with the majority."""
    terms = [term for term in facts.terms if term.top_prediction is not None and term.top_target is not None]
    last = terms[-FEW:]
    if len(last) < FEW or not facts.plain_loop or facts.steps < 20:
        return
    if all((t.top_target or 0) > 0.9 and (t.top_target or 0) < 1 and (t.top_prediction or 0) == 1.0 for t in last):
        yield Found(0.7, {}, [evidence.CLASS_SHARE.of(target=last[-1].top_target, prediction=last[-1].top_prediction)])


@rule(
    "data.unscaled-targets",
    "warning",
    texts.UNSCALED_TARGETS,
    texts.UNSCALED_TARGETS_FIX,
    texts.UNSCALED_TARGETS_WHEN,
)
def unscaled_targets(facts: Facts) -> Iterator[Found]:
    """Thousands, where the network gives ones."""
    last = next((t for t in facts.last_terms if t.kind in ("mse", "l1", "huber") and t.target is not None), None)
    if last is None or last.target is None or facts.falls is not False or not facts.plain_loop:
        return
    if max(abs(last.target.min), abs(last.target.max)) > 1000:
        yield Found(0.75, {}, [evidence.RANGE.of(low=last.target.min, high=last.target.max)])
