"""Watchpoints as people write them, in a call and on the command line.

watchpoint("gradient_vanishing", on="encoder.*:grad", abs_mean_lt=1e-9, then="pause")

gradient_vanishing(abs_mean_lt=1e-9) on encoder.*:grad then pause
└ condition or expression ─────────┘ on … but …  of Type  then …  limit N
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

from misstep.core.address import ROLES_OF_CATEGORY, Pattern
from misstep.core.watching.conditions import CONDITIONS, USUAL, Condition, checked, condition_named
from misstep.core.watching.expressions import FUNCTIONS, parse_expression
from misstep.core.watching.watch import Action, Watchpoint
from misstep.errors import ConditionError, nearest

Patterns = str | Pattern | Sequence[str | Pattern] | None

ACTIONS: tuple[Action, ...] = get_args(Action)

SHORT_EXPRESSIONS = {"nan": "nan > 0", "inf": "inf > 0"}
"""Short names for what no condition asks exactly: `overflow` is NaN or Inf, `nan` is NaN alone."""

_CLAUSE = re.compile(r"(?:^|(?<=[\s)]))(on|but|of|then|limit)(?=\s|$)")
_CALL = re.compile(r"(?P<name>[A-Za-z_][\w-]*)\s*(?:\((?P<inside>[^()]*)\))?")


def watchpoint(
    condition: str,
    *,
    on: Patterns = None,
    but: Patterns = None,
    types: Sequence[str] = (),
    nodes: Sequence[str] = (),
    then: str = "note",
    limit: int | None = None,
    name: str = "",
    id: int = 0,
    enabled: bool = True,
    origin: Literal["user", "recommended", "guard"] = "user",
    **parameters: Any,
) -> Watchpoint:
    """A checked watchpoint; the condition is a name, a short name or an expression.

    >>> watchpoint("overflow").condition
    'tensor_overflow'
    >>> watchpoint("max > 6e4", on="*:output", then="dump", limit=5).limit
    5
    """
    asked, given = _question(condition, parameters)
    patterns = _patterns(on)
    if asked in CONDITIONS:
        _check_roles(CONDITIONS[asked], patterns)
    if then not in ACTIONS:
        raise ConditionError(f"a watchpoint cannot {then!r}; it can {', '.join(ACTIONS)}{nearest(then, ACTIONS)}")
    if limit is not None and (isinstance(limit, bool) or limit < 1):
        raise ConditionError(f"the limit of a watchpoint is {limit}; it is 1 or more")
    return Watchpoint(
        id=id,
        condition=asked,
        parameters=given,
        on=patterns,
        then=then,
        enabled=enabled,
        limit=limit,
        name=name,
        nodes=tuple(nodes),
        origin=origin,
        but=_patterns(but),
        types=tuple(types),
    )


def parse_watch(text: str) -> Watchpoint:
    """Read a watchpoint from one line of text.

    >>> parse_watch("max > 6e4 on *:output then dump limit 5").then
    'dump'
    """
    question, clauses = _clauses(text)
    condition, parameters = _call(question)
    limit = clauses.get("limit")
    if limit is not None and not limit.isdecimal():
        raise ConditionError(f"the limit in {text!r} is {limit!r}, not a number")
    return watchpoint(
        condition,
        on=_listed(clauses.get("on")),
        but=_listed(clauses.get("but")),
        types=_listed(clauses.get("of")),
        then=clauses.get("then", "note"),
        limit=None if limit is None else int(limit),
        **parameters,
    )


def describe(watch: Watchpoint) -> str:
    """The text that `parse_watch` reads back: 'gradient_vanishing(abs_mean_lt=1e-09) on encoder.*:grad then pause'."""
    text = watch.condition
    if watch.parameters:
        hidden = {p.name: p.default for p in CONDITIONS[watch.condition].parameters if p.hidden}
        shown = [f"{name}={_written(value)}" for name, value in watch.parameters.items() if hidden.get(name) != value]
        text += f"({', '.join(shown)})" if shown else ""
    for word, parts in (("on", watch.on), ("but", watch.but), ("of", watch.types)):
        if parts:
            text += f" {word} {', '.join(map(str, parts))}"
    if watch.then != "note":
        text += f" then {watch.then}"
    return text if watch.limit is None else f"{text} limit {watch.limit}"


def _question(condition: str, parameters: dict[str, Any]) -> tuple[str, dict[str, float | bool]]:
    """The condition's full name with its parameters, or the expression."""
    word = condition.strip()
    if not word:
        raise ConditionError(
            f"a watchpoint needs a condition{nearest('', CONDITIONS)}, or an expression like max > 6e4"
        )
    if re.fullmatch(r"[A-Za-z_][\w-]*", word):
        short = word.lower().replace("-", "_")
        if short not in SHORT_EXPRESSIONS:
            found = condition_named(word)
            usual = {} if parameters else USUAL.get(short, {})
            return found.name, checked(found, {**usual, **parameters})
        word = SHORT_EXPRESSIONS[short]
    if parameters:
        raise ConditionError(f"the expression {word!r} takes no parameters; {', '.join(parameters)} was given")
    return parse_expression(word).text, {}


def _check_roles(condition: Condition, patterns: tuple[Pattern, ...]) -> None:
    roles = ROLES_OF_CATEGORY[condition.category]
    for pattern in patterns:
        if pattern.role is not None and pattern.role not in roles:
            raise ConditionError(
                f"{condition.name} looks at {', '.join(sorted(roles))}, so '{pattern}' names nothing it can see;"
                f" take another condition or leave ':{pattern.role}' out"
            )


def _clauses(text: str) -> tuple[str, dict[str, str]]:
    """The question, and what follows on, but, of, then and limit."""
    marks = list(_CLAUSE.finditer(text))
    question = text[: marks[0].start()] if marks else text
    clauses: dict[str, str] = {}
    for mark, following in zip(marks, [*marks[1:], None]):
        word = mark[1]
        said = text[mark.end() : following.start() if following else len(text)].strip()
        if not said:
            raise ConditionError(f"nothing follows {word!r} in {text!r}")
        if word in clauses:
            raise ConditionError(f"{word!r} is said twice in {text!r}; separate patterns by commas")
        clauses[word] = said
    return question.strip(), clauses


def _call(question: str) -> tuple[str, dict[str, Any]]:
    """`name(a=1, b=2)` apart; anything else is an expression, or a name alone."""
    found = _CALL.fullmatch(question)
    if found is None or found["inside"] is None or found["name"] in FUNCTIONS:
        return question, {}
    parameters: dict[str, Any] = {}
    for part in filter(str.strip, found["inside"].split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise ConditionError(f"{part.strip()!r} in {question!r} is no parameter; write name=value")
        parameters[name.strip()] = _value(value.strip(), question)
    return found["name"], parameters


def _value(text: str, question: str) -> float | bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text.rstrip("%"))
    except ValueError:
        raise ConditionError(f"{text!r} in {question!r} is no number") from None


def _written(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _patterns(given: Patterns) -> tuple[Pattern, ...]:
    if given is None:
        return ()
    several = [given] if isinstance(given, (str, Pattern)) else given
    return tuple(part if isinstance(part, Pattern) else Pattern.parse(part) for part in several)


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())
