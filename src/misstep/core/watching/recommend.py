"""The watchpoints offered to everybody: what goes wrong most often, with thresholds a healthy training never meets.

The thresholds are those MindInsight recommended. Where it looked at every tensor we look where the answer means
something: an all-zero bias before training is normal, an all-zero weight is not, and its first change is infinite; the
gradient of one output element shrinks with the batch, the gradient of a parameter does not.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from misstep.core.watching.watch import Watchpoint
from misstep.core.watching.watchtext import watchpoint

WEIGHTS = ("*weight:param", "*gamma:param", "*embedding_table:param")
"""Matrices, tables and norm scales by the names the frameworks give them. Biases start at zero and may stay small."""

OPERATORS = "*/*"
"""Operators make zeros on purpose (zeros_like, masks, cleared gradients); a module rarely does."""

WARNINGS = 100
"""A threshold that trips at every step says nothing new after this many times."""


def recommended(*, cheap: bool = False) -> tuple[Watchpoint, ...]:
    """The recommended set, ids from 1. `cheap`: only what plain statistics answer; this is on by default.

    >>> [w.condition for w in recommended(cheap=True)][:2]
    ['tensor_overflow', 'operator_overflow']
    """
    plain = [
        _watch("tensor_overflow"),
        _watch("operator_overflow"),
        _watch("weight_initialization", on=WEIGHTS, limit=WARNINGS, zero_percentage_ge=100),
        _watch("gradient_vanishing", on="*:grad", limit=WARNINGS, abs_mean_lt=1e-9),
        _watch("tensor_all_zero", on=("*:output", "*:grad"), but=OPERATORS, limit=WARNINGS, zero_percentage_ge=100),
    ]
    exact = [
        _watch("weight_change_too_large", on=WEIGHTS, limit=WARNINGS, abs_mean_update_ratio_gt=1),
        _watch("weight_not_changed", on=WEIGHTS, limit=WARNINGS, rtol=1e-5, atol=1e-8),
        _watch("weight_change_too_small", on=WEIGHTS, limit=WARNINGS, abs_mean_update_ratio_lt=1e-4),
        _activation("Tanh", math.tanh(-8.8), math.tanh(8.8), range_percentage_lt=0.1),
        _activation("Sigmoid", _sigmoid(-16.2), _sigmoid(16.2), range_percentage_lt=0.1),
        _activation("ReLU", -1.0, 0.0, range_percentage_gt=99.9),
    ]
    chosen = plain if cheap else [*plain, *exact]
    return tuple(replace(watch, id=number) for number, watch in enumerate(chosen, start=1))


def _watch(condition: str, *, name: str = "", **rest: Any) -> Watchpoint:
    return watchpoint(condition, name=name or f"recommended_{condition}", origin="recommended", **rest)


def _activation(kind: str, start: float, end: float, **threshold: float) -> Watchpoint:
    """Saturated (nearly nothing within the bend) or dead (nearly everything at zero)."""
    return _watch(
        "activation_range",
        name=f"recommended_{kind.lower()}_activation_range",
        types=(kind, "ReLUV2") if kind == "ReLU" else (kind,),
        limit=WARNINGS,
        range_start_inclusive=start,
        range_end_inclusive=end,
        **threshold,
    )


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))
