"""Questions in the user's own words: `abs_mean > 1e3 and nan == 0`, `not (zeros / count < 0.99) or step > 100`.

    or  ◄  and  ◄  not  ◄  comparison  ◄  + -  ◄  * /  ◄  unary -  ◄  number, name, function(…), (…)

Text becomes tokens, tokens a tree of closures; nothing is ever given to Python's own compiler. Every part is known
to be a number or a truth, so `max + 1` alone or `max and 3` are told before training starts. Constants stand apart
from the tree: a hundred watchpoints that differ only in their thresholds are evaluated in one numpy operation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NoReturn

import numpy as np

from misstep.core.watching.columns import NAMES, Column, Columns, Need
from misstep.errors import ConditionError, nearest

Kind = Literal["number", "truth"]
Compute = Callable[[Columns, Sequence[Any]], Any]
"""From the columns and the constants."""

LONGEST, DEEPEST, MOST_TOKENS = 2000, 60, 300
"""Characters, parentheses inside each other, and words: more is no question a person wrote, and each nests a call."""

NONFINITE_NAMES = frozenset({"nan", "inf", "pos_inf", "neg_inf", "nonfinite"})

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Kind]] = {
    "abs": (np.abs, "number"),
    "log10": (np.log10, "number"),
    "sqrt": (np.sqrt, "number"),
    "isfinite": (np.isfinite, "truth"),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One `left < right` inside an expression, for showing what was found: `abs_mean >`, 1000, 1234.5."""

    left: str
    relation: str
    left_value: Compute
    right_value: Compute
    truth: Compute


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed question. Call it with columns; it answers with a truth per row."""

    text: str
    names: tuple[str, ...]
    """Statistics it mentions, in order."""
    needs: frozenset[Need]
    skeleton: str
    """The text without its constants: expressions with the same skeleton are evaluated together."""
    constants: tuple[float, ...]
    comparisons: tuple[Comparison, ...]
    compute: Compute

    def __call__(self, columns: Columns, constants: Sequence[Any] | None = None) -> Column:
        with np.errstate(all="ignore"):
            truth = self.compute(columns, self.constants if constants is None else constants)
        # An expression of constants alone has no rows of its own.
        return np.broadcast_to(truth, np.broadcast_shapes(np.shape(truth), (len(columns),)))

    def rows(self, summary: Column, *, step: int = 0) -> Column:
        """The answer for every record of a SUMMARY (or ROW) array."""
        return self(Columns(summary, step=step))


@lru_cache(maxsize=4096)
def parse_expression(text: str) -> Expression:
    """Read an expression; ConditionError points at the place that cannot be read.

    >>> parse_expression("max - min < 1e-6").names
    ('max', 'min')
    """
    return _Parser(text).expression()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: Literal["number", "name", "mark", "end"]
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class _Part:
    """A stretch of the text and how to compute it."""

    kind: Kind
    compute: Compute
    start: int
    end: int


_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
      | (?P<mark><=|>=|==|!=|&&|\|\||\*\*|[-+*/()<>=!,&|^%])
    )""",
    re.VERBOSE,
)

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
}
_MEANT = {
    "=": "==", "&&": "and", "&": "and", "||": "or", "|": "or", "!": "not",
}  # fmt: skip
"""What people write who come from another language."""


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > LONGEST:
            raise ConditionError(f"the expression has {len(text):,} characters; {LONGEST:,} are the most")
        self.tokens = self._tokens()
        self.at = 0
        self.depth = 0
        self.names: list[str] = []
        self.constants: list[float] = []
        self.comparisons: list[Comparison] = []

    def expression(self) -> Expression:
        whole = self._either()
        if self.now.kind != "end":
            self._fail(f"{self.now.text!r} is not expected here", self.now.start)
        if whole.kind != "truth":
            self._fail("this is a number, not a question; compare it with something, like > 0", whole.start)
        needs: set[Need] = {"stats"}
        if any(name.startswith("previous.") for name in self.names):
            needs.add("previous")
        return Expression(
            text=self.text.strip(),
            names=tuple(dict.fromkeys(self.names)),
            needs=frozenset(needs),
            skeleton=" ".join("#" if token.kind == "number" else token.text for token in self.tokens).strip(),
            constants=tuple(self.constants),
            comparisons=tuple(self.comparisons),
            compute=whole.compute,
        )

    # Each method below reads one line of the precedence table in the module's docstring.

    def _either(self) -> _Part:
        part = self._both()
        while self._take("or"):
            part = self._joined(np.logical_or, part, self._both(), "or")
        return part

    def _both(self) -> _Part:
        part = self._negated()
        while self._take("and"):
            part = self._joined(np.logical_and, part, self._negated(), "and")
        return part

    def _negated(self) -> _Part:
        start = self.now.start
        if not self._take("not"):
            return self._compared()
        self._deeper(start)
        part = self._negated()
        self.depth -= 1
        self._want("truth", part, "not")
        inner = part.compute
        return _Part("truth", lambda c, k: np.logical_not(inner(c, k)), start, part.end)

    def _compared(self) -> _Part:
        left = self._sum()
        whole: _Part | None = None
        while self.now.text in _COMPARE and self.now.kind == "mark":
            relation = self._next().text
            self._want("number", left, relation)
            right = self._sum()
            self._want("number", right, relation)
            link = self._comparison(left, relation, right)
            # a < b < c means a < b and b < c, as in Python.
            whole = link if whole is None else self._joined(np.logical_and, whole, link, relation)
            left = right
        return left if whole is None else whole

    def _sum(self) -> _Part:
        part = self._product()
        while self.now.text in ("+", "-"):
            part = self._arithmetic(part, self._next().text, self._product())
        return part

    def _product(self) -> _Part:
        part = self._signed()
        while self.now.text in ("*", "/"):
            part = self._arithmetic(part, self._next().text, self._signed())
        return part

    def _signed(self) -> _Part:
        sign = self.now
        if sign.text not in ("-", "+"):
            return self._single()
        self._next()
        self._deeper(sign.start)
        part = self._signed()
        self.depth -= 1
        self._want("number", part, sign.text)
        inner = part.compute
        if sign.text == "+":
            return _Part("number", inner, sign.start, part.end)
        return _Part("number", lambda c, k: np.negative(inner(c, k)), sign.start, part.end)

    def _single(self) -> _Part:
        token = self._next()
        end = token.start + len(token.text)
        if token.kind == "number":
            position = len(self.constants)
            self.constants.append(float(token.text.replace("_", "")))
            return _Part("number", lambda _, k: k[position], token.start, end)
        if token.kind == "name":
            return self._call(token) if self.now.text == "(" else self._named(token)
        if token.text == "(":
            self._deeper(token.start)
            part = self._either()
            self.depth -= 1
            return _Part(part.kind, part.compute, token.start, self._close(token))
        what = "the expression ends too early" if token.kind == "end" else f"{token.text!r} is not expected here"
        return self._fail(f"{what}; a number, a name or '(' comes here", token.start)

    def _named(self, token: _Token) -> _Part:
        name = token.text
        if name not in NAMES:
            if name in FUNCTIONS:
                self._fail(f"{name} is a function: {name}(…)", token.start)
            self._fail(f"nothing is called {name!r}{nearest(name, NAMES)}", token.start)
        self.names.append(name)
        return _Part("number", lambda c, _: c[name], token.start, token.start + len(name))

    def _call(self, token: _Token) -> _Part:
        if token.text not in FUNCTIONS:
            self._fail(f"no function is called {token.text!r}{nearest(token.text, FUNCTIONS)}", token.start)
        function, kind = FUNCTIONS[token.text]
        opening = self._next()
        self._deeper(opening.start)
        part = self._sum()
        self.depth -= 1
        self._want("number", part, token.text)
        inner = part.compute
        return _Part(kind, lambda c, k: function(inner(c, k)), token.start, self._close(opening))

    # Building and telling.

    def _joined(self, join: Callable[[Any, Any], Any], left: _Part, right: _Part, word: str) -> _Part:
        self._want("truth", left, word)
        self._want("truth", right, word)
        one, other = left.compute, right.compute
        return _Part("truth", lambda c, k: join(one(c, k), other(c, k)), left.start, right.end)

    def _arithmetic(self, left: _Part, mark: str, right: _Part) -> _Part:
        self._want("number", left, mark)
        self._want("number", right, mark)
        one, other, do = left.compute, right.compute, _ARITHMETIC[mark]
        return _Part("number", lambda c, k: do(one(c, k), other(c, k)), left.start, right.end)

    def _comparison(self, left: _Part, relation: str, right: _Part) -> _Part:
        one, other, do = left.compute, right.compute, _COMPARE[relation]
        part = _Part("truth", lambda c, k: do(one(c, k), other(c, k)), left.start, right.end)
        shown = self.text[left.start : left.end].strip()
        self.comparisons.append(Comparison(shown, relation, one, other, part.compute))
        return part

    def _want(self, kind: Kind, part: _Part, word: str) -> None:
        if part.kind != kind:
            shown = self.text[part.start : part.end].strip()
            wanted = "a number" if kind == "number" else "a comparison, like max > 3,"
            self._fail(f"{word!r} needs {wanted} and {shown!r} is none", part.start)

    @property
    def now(self) -> _Token:
        return self.tokens[self.at]

    def _next(self) -> _Token:
        token = self.tokens[self.at]
        self.at += token.kind != "end"
        return token

    def _take(self, word: str) -> bool:
        if self.now.kind == "name" and self.now.text == word:
            self._next()
            return True
        return False

    def _close(self, opening: _Token) -> int:
        if self.now.text != ")":
            self._fail("this '(' is never closed", opening.start)
        return self._next().start + 1

    def _deeper(self, position: int) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            self._fail(f"nested more than {DEEPEST} deep", position)

    def _tokens(self) -> list[_Token]:
        tokens: list[_Token] = []
        at = 0
        end = len(self.text.rstrip())
        while at < end:
            found = _TOKEN.match(self.text, at)
            if found is None:
                place = at + len(self.text[at:]) - len(self.text[at:].lstrip())
                self._fail(f"{self.text[place]!r} cannot be read", place)
            kind: Any = found.lastgroup
            token = _Token(kind, found[kind], found.start(kind))
            if token.text in _MEANT:
                self._fail(f"{token.text!r} is written {_MEANT[token.text]!r} here", token.start)
            if token.text in ("**", "%", "^", ","):
                self._fail(f"{token.text!r} is not known here; there are + - * / and comparisons", token.start)
            if token.kind == "number" and not np.isfinite(float(token.text.replace("_", ""))):
                self._fail(f"{token.text} is larger than any number", token.start)
            if len(tokens) == MOST_TOKENS:
                self._fail(f"more than {MOST_TOKENS} words and marks", token.start)
            tokens.append(token)
            at = found.end()
        return [*tokens, _Token("end", "", end)]

    def _fail(self, why: str, position: int) -> NoReturn:
        line = re.sub(r"\s", " ", self.text)
        raise ConditionError(f"cannot read the expression: {why}\n  {line}\n  {' ' * position}^")
