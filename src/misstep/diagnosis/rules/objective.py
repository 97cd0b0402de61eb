"""Objective: what goes into the loss function, and what is done with its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from misstep.core.facts import BACKWARD, Term
from misstep.diagnosis.facts import Facts
from misstep.diagnosis.rules.rule import Found, rule
from misstep.sentences.diagnosis import evidence
from misstep.sentences.diagnosis import objective as texts

NEVER_NEGATIVE = frozenset({"cross_entropy", "bce_logits", "bce", "mse", "l1", "huber"})
_SCALING = frozenset({"neg", "mul", "div", "mean", "sum", "view", "squeeze", "add"})


def _always(facts: Facts, holds: Callable[[Term], bool]) -> Term | None:
    """The latest term of which this holds, when it holds in every look that knows its objective, and two do."""
    seen = [look.objective.terms for look in facts.looks if look.objective is not None and look.objective.terms]
    hits = [next((term for term in terms if holds(term)), None) for terms in seen]
    return hits[-1] if len(seen) >= 2 and all(hits) else None


def _source(facts: Facts) -> str:
    return facts.lines.get(BACKWARD, "")


def _chain(term: Term, before: str) -> str:
    return evidence.CHAIN.of(chain=" → ".join([term.layer or "…", before]), loss=term.kind)


@rule("objective.softmax-twice", "error", texts.SOFTMAX_TWICE, texts.SOFTMAX_TWICE_FIX, texts.SOFTMAX_TWICE_WHEN)
def softmax_twice(facts: Facts) -> Iterator[Found]:
    """Probabilities given to cross entropy."""
    term = _always(facts, lambda one: one.kind in ("cross_entropy", "log_softmax") and one.below[:1] == ("softmax",))
    if term is not None:
        said = [_chain(term, "softmax"), *([evidence.ROWS.of()] if term.rows_sum_to_one else [])]
        yield Found(0.97, {}, said, source=_source(facts))
        return
    term = _always(facts, lambda one: one.kind == "cross_entropy" and not one.below and one.rows_sum_to_one)
    if term is not None:
        yield Found(0.92, {}, [evidence.ROWS.of()], source=_source(facts))


@rule("objective.sigmoid-twice", "error", texts.SIGMOID_TWICE, texts.SIGMOID_TWICE_FIX, texts.SIGMOID_TWICE_WHEN)
def sigmoid_twice(facts: Facts) -> Iterator[Found]:
    """Probabilities given to binary cross entropy with logits."""
    term = _always(facts, lambda one: one.kind == "bce_logits" and one.below[:1] in (("sigmoid",), ("softmax",)))
    if term is not None:
        yield Found(0.97, {}, [_chain(term, term.below[0])], source=_source(facts))


@rule(
    "objective.squashed-logits", "error", texts.SQUASHED_LOGITS, texts.SQUASHED_LOGITS_FIX, texts.SQUASHED_LOGITS_WHEN
)
def squashed_logits(facts: Facts) -> Iterator[Found]:
    """An activation between the last layer and cross entropy."""
    term = _always(
        facts,
        lambda one: (
            one.kind in ("cross_entropy", "bce_logits")
            and one.below[:1] in (("sigmoid",), ("tanh",), ("relu",))
            and not (one.kind == "bce_logits" and one.below[0] == "sigmoid")
        ),
    )
    if term is not None:
        hard = term.below[0] == "sigmoid"
        yield Found(
            0.85 if hard else 0.7,
            {"function": term.below[0]},
            [_chain(term, term.below[0])],
            source=_source(facts),
            severity=None if hard else "warning",
        )


@rule(
    "objective.not-log-probabilities",
    "error",
    texts.NOT_LOG_PROBABILITIES,
    texts.NOT_LOG_PROBABILITIES_FIX,
    texts.NOT_LOG_PROBABILITIES_WHEN,
)
def not_log_probabilities(facts: Facts) -> Iterator[Found]:
    """Something else than log-probabilities given to nll_loss."""
    term = _always(facts, lambda one: one.kind == "nll" and one.log_rows is False)
    if term is None:
        return
    what = texts.PROBABILITIES if term.rows_sum_to_one or term.below[:1] == ("softmax",) else texts.LOGITS
    said = [] if term.prediction is None else [evidence.RANGE.of(low=term.prediction.min, high=term.prediction.max)]
    yield Found(0.95, {"what": what.of()}, said, source=_source(facts))


@rule("objective.broadcast", "error", texts.BROADCAST, texts.BROADCAST_FIX, texts.BROADCAST_WHEN)
def broadcast(facts: Facts) -> Iterator[Found]:
    """(N, 1) against (N,)."""
    seen = [look.objective.broadcast for look in facts.looks if look.objective is not None]
    if len(seen) >= 2 and all(seen):
        shape, result = seen[-1][0], seen[-1][1]
        yield Found(
            0.94,
            {},
            [evidence.SHAPES.of(prediction=str(tuple(shape)), result=str(tuple(result)))],
            source=_source(facts),
        )


@rule("objective.sign", "error", texts.SIGN, texts.SIGN_FIX, texts.SIGN_WHEN)
def sign(facts: Facts) -> Iterator[Found]:
    """A loss that is maximised."""
    if not facts.plain_loop or facts.setup is None:
        return
    seen = [look for look in facts.looks if look.objective is not None and len(look.objective.terms) == 1]
    if len(seen) < 2:
        return
    maximised = any(group.get("maximize") for one in facts.setup.optimizers for group in one.groups)
    turned = True
    for look in seen:
        assert look.objective is not None
        term, value = look.objective.terms[0], look.objective.value
        if term.kind not in NEVER_NEGATIVE or term.reduction not in ("mean", "sum") or not set(term.above) <= _SCALING:
            return
        turned &= value is not None and value < 0
    if turned != maximised:
        last = seen[-1]
        assert last.objective is not None
        yield Found(
            0.93,
            {},
            [evidence.LOSS_IS.of(value=last.objective.value, step=last.step)],
            source=_source(facts) if turned else next((one.source for one in facts.setup.optimizers), ""),
        )


@rule("objective.target-range", "error", texts.TARGET_RANGE, texts.TARGET_RANGE_FIX, texts.TARGET_RANGE_WHEN)
def target_range(facts: Facts) -> Iterator[Found]:
    """Targets that are no probabilities."""
    term = _always(
        facts,
        lambda one: (
            one.kind in ("bce_logits", "bce")
            and one.target is not None
            and (one.target.min < -1e-6 or one.target.max > 1 + 1e-6)
        ),
    )
    if term is not None and term.target is not None:
        said = [evidence.RANGE.of(low=term.target.min, high=term.target.max)]
        yield Found(0.95, {}, said, source=_source(facts))


@rule("objective.all-ignored", "error", texts.ALL_IGNORED, texts.ALL_IGNORED_FIX, texts.ALL_IGNORED_WHEN)
def all_ignored(facts: Facts) -> Iterator[Found]:
    """Targets that are all left out."""
    term = _always(facts, lambda one: (one.ignored or 0.0) > 0.99)
    if term is not None:
        yield Found(0.95, {"share": term.ignored}, [], source=_source(facts))


@rule("objective.batch-softmax", "error", texts.BATCH_SOFTMAX, texts.BATCH_SOFTMAX_FIX, texts.BATCH_SOFTMAX_WHEN)
def batch_softmax(facts: Facts) -> Iterator[Found]:
    """Softmax along the wrong axis."""
    term = _always(facts, lambda one: one.batch_softmax and one.kind in ("nll", "cross_entropy", "log_softmax"))
    if term is not None:
        shape = () if term.prediction is None else term.prediction.shape
        yield Found(0.9, {}, [f"{shape}"] if shape else [], source=_source(facts))


@rule("objective.sum-reduction", "error", texts.SUM_REDUCTION, texts.SUM_REDUCTION_FIX, texts.SUM_REDUCTION_WHEN)
def sum_reduction(facts: Facts) -> Iterator[Found]:
    """A sum over the batch that makes updates too large."""
    from misstep.diagnosis.rules.rate import too_large

    term = _always(facts, lambda one: one.reduction == "sum" and one.target is not None)
    if term is not None and term.target is not None and too_large(facts) and term.target.shape:
        yield Found(0.9, {"times": term.target.shape[0]}, [], source=_source(facts))
