"""The seventeen questions that can be asked of a tensor, as data.

A condition has parameters; those with a relation are thresholds (`abs_mean_lt`: the measure abs_mean, less than). A
watchpoint may set several thresholds of one condition: it hits when any of them does, and each gives a `Reading`.

The rules are those of the MindInsight debugger as documented; docs/conditions.md is written from this table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from misstep.core.address import Category
from misstep.core.watching.columns import Column, Columns, Need
from misstep.core.watching.watch import Severity
from misstep.errors import ConditionError, nearest

Relation = Literal["gt", "lt", "ge"]
Kind = Literal["number", "percentage", "switch"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number the user may set."""

    name: str
    default: float | bool | None = None
    """None: disabled until set."""
    low: float = -math.inf
    high: float = math.inf
    required: tuple[str, ...] = ()
    """Parameters that must be set together with this one."""
    hidden: bool = False
    kind: Kind = "number"
    measure: str = ""
    relation: Relation | None = None
    """None: no threshold itself, but read by one."""
    above_low: bool = False
    """The lowest value itself is not allowed."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A question about a tensor."""

    name: str
    abbreviation: str
    category: Category
    summary: str
    summary_zh: str
    parameters: tuple[Parameter, ...] = ()
    needs: frozenset[Need] = frozenset({"stats"})
    severity: Severity = "warning"
    check: Callable[[Columns], Column] | None = None
    """For the conditions without thresholds: which rows hit."""

    @property
    def overflow(self) -> bool:
        """It asks for NaN and Inf, so their presence is the answer and no reason to give none."""
        return self.check is not None

    @property
    def thresholds(self) -> tuple[Parameter, ...]:
        return tuple(parameter for parameter in self.parameters if parameter.relation is not None)

    def parameter(self, name: str) -> Parameter:
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        names = [parameter.name for parameter in self.parameters]
        hint = nearest(name, names) if names else "; it takes none"
        raise ConditionError(f"{self.name} has no parameter {name!r}{hint}")


_STATISTICS = ("abs_mean", "max", "min", "mean")

_TOO_LARGE = tuple(
    Parameter(f"{name}_gt", low=0.0 if name == "abs_mean" else -math.inf, measure=name, relation="gt")
    for name in _STATISTICS
)
_TOO_SMALL = tuple(
    Parameter(f"{name}_lt", low=0.0 if name == "abs_mean" else -math.inf, measure=name, relation="lt")
    for name in _STATISTICS
)
_ZERO_PERCENTAGE = Parameter(
    "zero_percentage_ge", 100.0, 0.0, 100.0, kind="percentage", measure="zero_percentage", relation="ge"
)
BOUNDS = ("range_start_inclusive", "range_end_inclusive")
_RANGE = (
    Parameter("range_start_inclusive"),
    Parameter("range_end_inclusive"),
    *(
        Parameter(
            f"range_percentage_{relation}",
            low=0.0,
            high=100.0,
            required=BOUNDS,
            kind="percentage",
            measure="range_percentage",
            relation=relation,
        )
        for relation in ("lt", "gt")
    ),
    Parameter("max_min_lt", low=0.0, above_low=True, measure="spread", relation="lt"),
    Parameter("max_min_gt", low=0.0, measure="spread", relation="gt"),
)
_EPSILON = Parameter("epsilon", 1e-9, 0.0, hidden=True)
_STATS: frozenset[Need] = frozenset({"stats"})
_PREVIOUS: frozenset[Need] = frozenset({"stats", "previous"})
_VALUES: frozenset[Need] = frozenset({"stats", "range"})


def _nonfinite(columns: Columns) -> Column:
    bad: Column = columns["nonfinite"] > 0
    return bad


def _born_bad(columns: Columns) -> Column:
    """The hardware flag this condition once read does not exist here; what it meant does: finite in, not finite out."""
    born: Column = _nonfinite(columns) & columns.born_here
    return born


_TABLE: tuple[Condition, ...] = (
    Condition(
        "weight_initialization",
        "WI",
        "weight",
        "Before the first update, a weight is all zero or its values are out of bounds.",
        "训练开始前，权重全为零或初始值越界。",
        (
            _ZERO_PERCENTAGE,
            Parameter("max_gt", measure="max", relation="gt"),
            Parameter("min_lt", measure="min", relation="lt"),
        ),
        needs=frozenset({"stats", "initial"}),
    ),
    Condition(
        "weight_overflow",
        "WO",
        "weight",
        "A weight has NaN or Inf values.",
        "权重中出现 NaN 或 Inf。",
        severity="error",
        check=_nonfinite,
    ),
    Condition(
        "weight_too_large",
        "WL",
        "weight",
        "A weight is larger than a threshold.",
        "权重的统计值大于阈值。",
        _TOO_LARGE,
    ),
    Condition(
        "weight_too_small",
        "WS",
        "weight",
        "A weight is smaller than a threshold.",
        "权重的统计值小于阈值。",
        _TOO_SMALL,
    ),
    Condition(
        "weight_not_changed",
        "WNC",
        "weight",
        "Every element of a weight stayed as it was in the previous step, within a tolerance.",
        "与上一轮次相比，权重的每个元素在容忍度内都没有变化。",
        (
            Parameter("rtol", 1e-5, 0.0, measure="unchanged", relation="ge"),
            Parameter("atol", 1e-8, 0.0, hidden=True),
            Parameter("equal_nan", False, hidden=True, kind="switch"),
        ),
        needs=_PREVIOUS,
    ),
    Condition(
        "weight_change_too_large",
        "WCL",
        "weight",
        "A weight changed by a larger share of its own size than a threshold.",
        "权重单步更新量与其自身大小之比大于阈值。",
        (Parameter("abs_mean_update_ratio_gt", 0.1, 0.0, measure="update_ratio", relation="gt"), _EPSILON),
        needs=_PREVIOUS,
    ),
    Condition(
        "weight_change_too_small",
        "WCS",
        "weight",
        "A weight changed by a smaller share of its own size than a threshold.",
        "权重单步更新量与其自身大小之比小于阈值。",
        (Parameter("abs_mean_update_ratio_lt", 1e-4, 0.0, measure="update_ratio", relation="lt"), _EPSILON),
        needs=_PREVIOUS,
    ),
    Condition(
        "gradient_vanishing",
        "GV",
        "gradient",
        "A gradient is smaller than a threshold.",
        "梯度的统计值小于阈值（梯度消失）。",
        _TOO_SMALL,
    ),
    Condition(
        "gradient_too_large",
        "GL",
        "gradient",
        "A gradient is larger than a threshold.",
        "梯度的统计值大于阈值（梯度过大）。",
        _TOO_LARGE,
    ),
    Condition(
        "gradient_exploding",
        "GE",
        "gradient",
        "A gradient has NaN or Inf values.",
        "梯度中出现 NaN 或 Inf（梯度爆炸）。",
        severity="error",
        check=_nonfinite,
    ),
    Condition(
        "tensor_overflow",
        "TO",
        "tensor",
        "A tensor has NaN or Inf values.",
        "张量中出现 NaN 或 Inf。",
        severity="error",
        check=_nonfinite,
    ),
    Condition(
        "operator_overflow",
        "OO",
        "tensor",
        "A node made NaN or Inf values out of finite inputs.",
        "节点的输入均为有限值，输出却出现 NaN 或 Inf（算子溢出）。",
        severity="error",
        check=_born_bad,
    ),
    Condition(
        "tensor_too_large",
        "TL",
        "tensor",
        "A tensor is larger than a threshold.",
        "张量的统计值大于阈值。",
        _TOO_LARGE,
    ),
    Condition(
        "tensor_too_small",
        "TS",
        "tensor",
        "A tensor is smaller than a threshold.",
        "张量的统计值小于阈值。",
        _TOO_SMALL,
    ),
    Condition(
        "tensor_all_zero",
        "TZ",
        "tensor",
        "All elements of a tensor, or a given percentage of them, are zero.",
        "张量的元素全部（或达到给定百分比）为零。",
        (_ZERO_PERCENTAGE,),
    ),
    Condition(
        "activation_range",
        "AR",
        "activation",
        "Too many or too few values of an activation lie in a range, or its spread is out of bounds.",
        "激活值落在区间内的比例过高或过低，或最大值与最小值之差越界。",
        _RANGE,
        needs=_VALUES,
    ),
    Condition(
        "tensor_range",
        "TR",
        "tensor",
        "Too many or too few values of a tensor lie in a range, or its spread is out of bounds.",
        "张量的值落在区间内的比例过高或过低，或最大值与最小值之差越界。",
        _RANGE,
        needs=_VALUES,
    ),
)

CONDITIONS: dict[str, Condition] = {condition.name: condition for condition in _TABLE}

ALIASES: dict[str, str] = {
    "overflow": "tensor_overflow",
    "exploding": "gradient_exploding",
    "vanishing": "gradient_vanishing",
    "all_zero": "tensor_all_zero",
    "zero": "tensor_all_zero",
    "too_large": "tensor_too_large",
    "too_small": "tensor_too_small",
    "range": "tensor_range",
    "saturation": "activation_range",
    "initialization": "weight_initialization",
    "init": "weight_initialization",
    "not_changed": "weight_not_changed",
    "unchanged": "weight_not_changed",
    "change_too_large": "weight_change_too_large",
    "change_too_small": "weight_change_too_small",
    **{condition.abbreviation.lower(): condition.name for condition in _TABLE},
}

USUAL: dict[str, dict[str, float]] = {"vanishing": {"abs_mean_lt": 1e-9}}
"""What a short name means when no threshold is given; the value of the recommended set."""


def condition_named(word: str) -> Condition:
    """By name, short name or abbreviation: `tensor_overflow`, `overflow`, `TO`."""
    name = word.strip().lower().replace("-", "_")
    name = ALIASES.get(name, name)
    if name not in CONDITIONS:
        spoken = [*CONDITIONS, *(alias for alias in ALIASES if len(alias) > 3)]
        raise ConditionError(f"no condition is called {word!r}{nearest(name, spoken)}")
    return CONDITIONS[name]


def checked(condition: Condition, parameters: Mapping[str, Any]) -> dict[str, float | bool]:
    """The parameters in force: those given, the supporting ones, and the usual thresholds when none is given."""
    given: dict[str, float | bool] = {}
    for name, value in parameters.items():
        parameter = condition.parameter(name)
        if value is not None:
            given[name] = _fitting(condition, parameter, value)
    thresholds = condition.thresholds
    if thresholds and not any(parameter.name in given for parameter in thresholds):
        usual = {parameter.name: parameter.default for parameter in thresholds if parameter.default is not None}
        if not usual:
            names = ", ".join(parameter.name for parameter in thresholds)
            raise ConditionError(
                f"{condition.name} needs a threshold: one or more of {names};"
                f" like {condition.name}({thresholds[0].name}=1e-3)"
            )
        given.update(usual)
    for parameter in condition.parameters:
        if parameter.relation is None and parameter.default is not None:
            given.setdefault(parameter.name, parameter.default)
    for parameter in thresholds:
        lacking = [name for name in parameter.required if parameter.name in given and name not in given]
        if lacking:
            raise ConditionError(f"{parameter.name} of {condition.name} needs {' and '.join(lacking)} too")
    low, high = (given.get(bound) for bound in BOUNDS)
    if low is not None and high is not None and low > high:
        raise ConditionError(f"the range of {condition.name} starts at {low:g}, above its end {high:g}")
    return given


def _fitting(condition: Condition, parameter: Parameter, value: Any) -> float | bool:
    place = f"{parameter.name} of {condition.name}"
    if parameter.kind == "switch":
        if not isinstance(value, bool):
            raise ConditionError(f"{place} is {value!r}; it is true or false")
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ConditionError(f"{place} is {value!r}, which is no number")
    number = float(value)
    if not math.isfinite(number):
        raise ConditionError(f"{place} is {number:g}; it must be finite")
    if number < parameter.low or number > parameter.high or (parameter.above_low and number == parameter.low):
        if parameter.high < math.inf:
            fits = f"between {parameter.low:g} and {parameter.high:g}"
        else:
            fits = f"above {parameter.low:g}" if parameter.above_low else f"{parameter.low:g} or more"
        raise ConditionError(f"{place} is {number:g}; it must be {fits}")
    return number
