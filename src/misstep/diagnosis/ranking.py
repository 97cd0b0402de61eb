"""Cause and consequence: a finding that another one explains is told below it, with nothing to do about it.

    the head is not in the optimizer ─► predictions are constant ─► the loss stays at the level of guessing

The graph is small and written by hand; what is not in it stands on its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from misstep.core.finding import Finding
from misstep.diagnosis.rules import FAMILIES

_STANDS_STILL = (
    "rate.plateau",
    "rate.tiny",
    "signal.constant-prediction",
    "data.one-class",
    "silent.weights_unchanged",
)
_BLOWS_UP = (
    "rate.diverges",
    "rate.too-large",
    "signal.dead-relu",
    "signal.saturated",
    "signal.constant-prediction",
    "signal.not-finite",
    "rate.plateau",
    "signal.vanishing",
)
_NO_SIGNAL = ("signal.vanishing", "signal.constant-prediction", "rate.plateau", "rate.tiny", "data.one-class")
_NO_GRADIENT = ("wiring.detached", "wiring.unused", *_NO_SIGNAL)

EXPLAINS: dict[str, tuple[str, ...]] = {
    "wiring.loss-detached": ("wiring.detached", "wiring.unused", "wiring.no-step", *_STANDS_STILL),
    "wiring.no-backward": ("wiring.detached", "wiring.unused", "wiring.loss-detached", *_STANDS_STILL),
    "wiring.no-step": _STANDS_STILL,
    "wiring.zeroed-before-step": ("wiring.detached", "wiring.unused", "wiring.not-in-optimizer", *_STANDS_STILL),
    "wiring.not-in-optimizer": ("wiring.detached", "wiring.unused", "wiring.held-twice", *_STANDS_STILL),
    "wiring.detached": ("wiring.unused", *_STANDS_STILL, "signal.identical-units"),
    "wiring.undone": _STANDS_STILL,
    "wiring.clip-too-small": _STANDS_STILL,
    "wiring.clip-scaled": ("wiring.clip-too-small", *_STANDS_STILL),
    "wiring.no-zero-grad": (*_BLOWS_UP, "rate.momentum"),
    "wiring.zero-grad-part": _BLOWS_UP,
    "objective.batch-softmax": ("objective.not-log-probabilities", "rate.plateau", "objective.softmax-twice"),
    "objective.softmax-twice": (*_NO_SIGNAL, "objective.not-log-probabilities"),
    "objective.sigmoid-twice": _NO_SIGNAL,
    "objective.squashed-logits": (*_NO_SIGNAL, "signal.dead-relu"),
    "objective.not-log-probabilities": (*_BLOWS_UP, "objective.softmax-twice"),
    "objective.broadcast": _STANDS_STILL,
    "objective.sign": (*_BLOWS_UP, "objective.target-range"),
    "objective.target-range": (*_BLOWS_UP, "objective.sign"),
    "objective.all-ignored": (*_STANDS_STILL, "signal.not-finite"),
    "objective.sum-reduction": _BLOWS_UP,
    "rate.zero": ("rate.eps", *_STANDS_STILL),
    "rate.decayed": _STANDS_STILL,
    "rate.momentum": _BLOWS_UP,
    "rate.eps": _STANDS_STILL,
    "rate.tiny": ("rate.plateau", "silent.weights_unchanged", "signal.constant-prediction", "data.one-class"),
    "rate.decay-collapses": (*_NO_SIGNAL, "signal.dead-relu", "rate.too-large"),
    "rate.too-large": (*tuple(one for one in _BLOWS_UP if one != "rate.too-large"), "signal.exploding"),
    "rate.diverges": ("rate.plateau",),
    "signal.exploding": ("signal.saturated", "rate.diverges", "rate.plateau", "signal.constant-prediction"),
    "signal.identical-units": (*_NO_SIGNAL, "signal.dead-relu"),
    "signal.zero-init": (
        "wiring.detached",
        "wiring.unused",
        *_NO_SIGNAL,
        "signal.dead-relu",
        "silent.weights_unchanged",
        "signal.identical-units",
    ),
    "signal.dead-relu": (
        "wiring.detached",
        "wiring.unused",
        *_NO_SIGNAL,
        "silent.weights_unchanged",
        "signal.zero-init",
    ),
    "signal.saturated": (*_NO_SIGNAL, "silent.weights_unchanged"),
    "signal.vanishing": ("rate.plateau", "signal.constant-prediction", "rate.tiny", "silent.weights_unchanged"),
    "signal.constant-prediction": ("rate.plateau", "data.one-class"),
    "signal.eval-left-on": ("rate.plateau",),
    "data.unnormalised": (
        "signal.dead-relu",
        "signal.saturated",
        "signal.exploding",
        "signal.constant-prediction",
        "rate.diverges",
        "rate.plateau",
    ),
    "data.unscaled-targets": ("rate.tiny", "rate.diverges", "signal.constant-prediction"),
    "data.constant-input": ("rate.plateau", "signal.constant-prediction", "data.one-class"),
    "data.constant-labels": ("data.one-class", "signal.constant-prediction"),
    "data.sorted-labels": ("data.one-class", "rate.diverges", "rate.plateau"),
    "data.same-batch": ("data.constant-labels",),
    "transformers.no-causal-mask": ("rate.plateau",),
    "transformers.inverted-mask": ("transformers.no-causal-mask", "rate.plateau"),
    "ranks.weights-differ": ("ranks.same-data",),
}
"""By cause: what follows from it."""

_GRAVITY = {"error": 0, "warning": 1, "info": 2}


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Causes first, the gravest and surest at the top; every consequence names its cause."""
    given = {(one.rule, one.rank): one for one in findings}
    sound = [one for one in given.values() if one.severity != "info"]
    told = []
    for one in given.values():
        causes = [other for other in sound if _explains(other, one)]
        best = min(causes, key=_order, default=None)
        told.append(one if best is None else replace(one, cause=best.rule))
    return sorted(told, key=lambda one: (bool(one.cause), *_order(one)))


def _explains(cause: Finding, one: Finding) -> bool:
    if cause.rule == one.rule or (cause.rank != one.rank and None not in (cause.rank, one.rank)):
        return False
    # Two that explain each other: the surer one is the cause.
    if cause.rule in EXPLAINS.get(one.rule, ()) and (one.confidence or 1.0) >= (cause.confidence or 1.0):
        return False
    return one.rule in EXPLAINS.get(cause.rule, ())


def _order(one: Finding) -> tuple[int, float, int, str]:
    family = one.rule.partition(".")[0]
    place = FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)
    return _GRAVITY[one.severity], -(one.confidence or 1.0), place, one.rule
