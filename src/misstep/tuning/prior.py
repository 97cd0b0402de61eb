"""Where a learning rate is likely to lie, before the search begins: the learning-rate range test, by short runs.

A parameter with `prior: range_test` is probed at rates spread evenly over its range, thirty steps each, everything else
in the middle. The rate whose loss is lowest by then is the centre of what the sampler's first, otherwise random,
proposals draw. A probe is a trial like any other (killed, it is run again; a NaN ends it at once), but it is no result
and does not count. The rate goes through the script's own command, so schedules, compiled steps and both frameworks
need nothing special.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from misstep.sentences import tune as sentences
from misstep.tuning.studyfile.study import Parameter, Study, Value, exists
from misstep.tuning.trial.follow import Follower
from misstep.tuning.trial.run import Outcome

PROBES = 7
PROBE_STEPS = 30
LAST_LOSSES = 5
"""Losses of a probe whose mean is its result: single ones are noisy."""


def probes(study: Study) -> list[tuple[str, dict[str, Any]]]:
    """What is tried for each parameter with a prior: its name, and the values of the short run."""
    return [
        (one.name, _values(study, one.name, rate))
        for one in study.parameters
        if one.prior
        for rate in (one.low * (one.high / one.low) ** (at / (PROBES - 1)) for at in range(PROBES))
    ]


def _values(study: Study, probed: str, rate: float) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for one in study.parameters:
        if exists(one, values):
            values[one.name] = rate if one.name == probed else middle(one)
    return values


def middle(one: Parameter) -> Value:
    """The value in the middle of a range, or the first choice."""
    if one.kind == "choice":
        return one.choice[0]
    value = math.sqrt(one.low * one.high) if one.log else (one.low + one.high) / 2
    if one.step:
        value = one.low + round((value - one.low) / one.step) * one.step
    return round(value) if one.kind == "int" else value


def likely(trials: Iterable[Any], name: str) -> float | None:
    """The rate whose probe ended with the lowest loss; None while fewer than two have ended well."""
    ended = [one for one in trials if one.user_attrs.get("probe") == name and name in one.params]
    found = [(float(one.user_attrs["probe_loss"]), float(one.params[name])) for one in ended if _has_loss(one)]
    return min(found)[1] if len(found) > 1 else None


def _has_loss(trial: Any) -> bool:
    loss = trial.user_attrs.get("probe_loss")
    return isinstance(loss, (int, float)) and math.isfinite(loss)


def short(study: Study) -> Study:
    """The study as a probe runs it."""
    return replace(study, limits=replace(study.limits, steps=PROBE_STEPS))


def of_probe(outcome: Outcome, follower: Follower) -> Outcome:
    """A probe that went well is no result; its loss is kept with it."""
    if outcome.ended not in ("complete", "no target"):
        return outcome
    losses = [loss for _, loss in follower.curves["loss"][-LAST_LOSSES:]]
    facts = {**outcome.facts, "probe_loss": statistics.fmean(losses)} if losses else outcome.facts
    return Outcome("PRUNED", "probe", sentences.PROBED.of(), facts=facts)
