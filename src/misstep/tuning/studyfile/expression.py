"""Conditions between parameters, as a user writes them: `optimizer == "sgd"`, `layers * width <= 4096`.

Read by Python's own parser, evaluated by a walk over the few kinds of node named here. Nothing is called and no
attribute is looked up, so a study file from a stranger can compute, and that is all it can do.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from misstep.sentences import studyfile as sentences

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg, ast.UAdd: operator.pos,
    ast.Not: operator.not_, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right, ast.NotIn: lambda left, right: left not in right,
}  # fmt: skip
_BOUNDS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Expression:
    """One condition, and the names it needs."""

    def __init__(self, text: str) -> None:
        """ValueError when this is no expression, or has something in it that is not evaluated here."""
        self.text = text
        try:
            self._tree = ast.parse(text, mode="eval").body
        except SyntaxError as error:
            raise ValueError(sentences.NO_EXPRESSION.of(text=text, why=error.msg)) from None
        self.names = frozenset(node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name))
        self._check(self._tree)

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """Its value; KeyError with the name when one is missing."""
        return self._value(self._tree, values)

    def violation(self, values: Mapping[str, Any]) -> float:
        """How far a bound `left <= right` is overstepped: 0 or less when it holds, as Optuna's samplers want it."""
        tree = self._tree
        if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0], _BOUNDS):
            left = float(self._value(tree.left, values))
            right = float(self._value(tree.comparators[0], values))
            over = left - right if isinstance(tree.ops[0], (ast.Lt, ast.LtE)) else right - left
            if bool(self(values)):
                return min(over, 0.0)
            return over if over > 0 else 1e-12  # a strict bound met exactly
        return 0.0 if self(values) else 1.0

    def _check(self, node: ast.AST) -> None:
        allowed = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Name, ast.Constant, ast.List, ast.Tuple)
        if not isinstance(node, allowed):
            what = type(node).__name__.lower()
            raise ValueError(sentences.NOT_EVALUATED.of(text=self.text, what=what))
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.operator, ast.unaryop, ast.cmpop)):
                if type(child) not in _OPERATORS:
                    raise ValueError(sentences.NO_OPERATOR.of(text=self.text))
            elif not isinstance(child, (ast.boolop, ast.expr_context)):
                self._check(child)

    def _value(self, node: ast.AST, values: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return values[node.id]
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._value(item, values) for item in node.elts]
        if isinstance(node, ast.UnaryOp):
            return _OPERATORS[type(node.op)](self._value(node.operand, values))
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](self._value(node.left, values), self._value(node.right, values))
        if isinstance(node, ast.BoolOp):
            parts = (bool(self._value(part, values)) for part in node.values)
            return all(parts) if isinstance(node.op, ast.And) else any(parts)
        return self._compare(node, values)

    def _compare(self, node: ast.AST, values: Mapping[str, Any]) -> bool:
        assert isinstance(node, ast.Compare)
        left = self._value(node.left, values)
        for compare, after in zip(node.ops, node.comparators):
            right = self._value(after, values)
            if not _OPERATORS[type(compare)](left, right):
                return False
            left = right
        return True
