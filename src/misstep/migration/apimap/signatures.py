"""Parameters of a callable, from whatever tells them: `inspect`, a docstring's first lines, or an operator's schema."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MISSING = "…"
"""The default of a parameter that has none."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `kind` is what an operator's schema says of it: Tensor, int, int[], bool, …"""

    name: str
    default: Any = MISSING
    kind: str = ""
    keyword_only: bool = False
    star: bool = False
    """`*size`: takes what is left of the positional arguments."""

    @property
    def required(self) -> bool:
        return self.default is MISSING and not self.star


@dataclass(frozen=True, slots=True)
class Signature:
    """One overload."""

    parameters: tuple[Parameter, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.parameters)

    def __contains__(self, name: str) -> bool:
        return any(one.name == name for one in self.parameters)

    def get(self, name: str) -> Parameter | None:
        return next((one for one in self.parameters if one.name == name), None)

    def bind(
        self, args: Sequence[Any], keywords: Mapping[str, Any], fits: Callable[[Any, str], bool] | None = None
    ) -> dict[str, Any] | None:
        """Arguments by name; None when they do not fit. Whole numbers in the place of an `int[]` become one list."""
        found: dict[str, Any] = {}
        left = list(args)
        for one in self.parameters:
            if one.keyword_only or not left:
                break
            if one.star or self._gathers(one, left, fits):
                found[one.name] = Starred(left)
                left = []
            else:
                found[one.name] = left.pop(0)
        if left:
            return None
        for name, value in keywords.items():
            if name in found or name not in self:
                return None
            found[name] = value
        if any(one.required and one.name not in found for one in self.parameters):
            return None
        if fits is not None:
            for one in self.parameters:
                if one.name in found and one.kind and not fits(found[one.name], one.kind):
                    return None
        return found

    def _gathers(self, one: Parameter, left: list[Any], fits: Callable[[Any, str], bool] | None) -> bool:
        """`x.view(2, -1)` for a schema that says `int[] size`: allowed for the first parameter only."""
        if not one.kind.endswith("[]") or fits is None or one is not self.parameters[0]:
            return False
        last = [other for other in self.parameters if not other.keyword_only][-1]
        return one is last and all(fits(value, one.kind[:-2]) for value in left)


class Starred(list[Any]):
    """Positional arguments that were spelled one by one and mean one list."""


def of_callable(function: Any) -> Signature | None:
    """What `inspect` knows; None when it knows only `*args, **kwargs` or nothing."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    parameters: list[Parameter] = []
    kinds = [one.kind for one in found.parameters.values()]
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return None
    for one in found.parameters.values():
        if one.name in ("self", "cls") and not parameters:
            continue
        default = MISSING if one.default is one.empty else plain(one.default)
        parameters.append(
            Parameter(one.name, default, "", one.kind is one.KEYWORD_ONLY, one.kind is one.VAR_POSITIONAL)
        )
    return Signature(tuple(parameters))


def of_doc(doc: str | None, name: str) -> list[Signature]:
    """The overloads a docstring lists: `sum(input, dim, keepdim=False, *, dtype=None) -> Tensor`.

    >>> of_doc("max(input, dim, keepdim=False) -> tuple", "max")[0].names
    ('input', 'dim', 'keepdim')
    """
    found = []
    pattern = re.compile(rf"^\s*(?:\.\. (?:method|function):: )?(?:[\w.]+\.)?{re.escape(name)}(\([^>]*\))\s*(?:->.*)?$")
    for line in (doc or "").splitlines():
        match = pattern.match(line)
        if match is None:
            continue
        parsed = _parsed(match.group(1))
        if parsed is not None and parsed not in found:
            found.append(parsed)
    return found


def _parsed(text: str) -> Signature | None:
    try:
        node = ast.parse(f"def f{_cleaned(text)}: pass").body[0]
    except SyntaxError:
        return None
    assert isinstance(node, ast.FunctionDef)
    if node.args.kwarg is not None:
        return None
    parameters = []
    positional = [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(node.args.defaults)) + list(node.args.defaults)
    for arg, default in zip(positional, defaults):
        if arg.arg not in ("self", "cls"):
            parameters.append(Parameter(arg.arg, _literal(default)))
    if node.args.vararg is not None:
        parameters.append(Parameter(node.args.vararg.arg, star=True))
    for arg, default in zip(node.args.kwonlyargs, node.args.kw_defaults):
        parameters.append(Parameter(arg.arg, _literal(default), keyword_only=True))
    return Signature(tuple(parameters))


def _cleaned(text: str) -> str:
    """Docstrings say `size...` for a star and mark sets of names with brackets; neither is Python."""
    return re.sub(r"(\w+)\s*\.\.\.", r"*\1", text).replace("->", "")


def _literal(node: ast.expr | None) -> Any:
    if node is None:
        return MISSING
    try:
        return plain(ast.literal_eval(node))
    except ValueError:
        return ast.unparse(node).rpartition(".")[2]


def plain(value: Any) -> Any:
    """A default as it can be written down and compared: numbers, words, None, tuples of them; else its text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return tuple(plain(one) for one in value)
    return str(value).rpartition(".")[2]


def written(signatures: Iterable[Signature]) -> list[list[list[Any]]]:
    """For the table: [name, default, kind, flags] a parameter."""
    return [
        [
            [one.name, one.default, one.kind, ("k" if one.keyword_only else "") + ("*" if one.star else "")]
            for one in signature.parameters
        ]
        for signature in signatures
    ]


def read(lines: Iterable[Iterable[Sequence[Any]]]) -> tuple[Signature, ...]:
    return tuple(
        Signature(
            tuple(
                Parameter(name, MISSING if default == MISSING else default, kind, "k" in flags, "*" in flags)
                for name, default, kind, flags in one
            )
        )
        for one in lines
    )
