"""What reading a file gives: every call with what it calls, the kind of every expression, branches on tensors."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from misstep.diagnosis.lint.source import Function
from misstep.migration.scan.kinds import NETWORK, PYTHON, TENSOR, UNKNOWN, Kind

Group = Literal["framework", "library", "python", "own", "unknown"]


@dataclass(frozen=True, slots=True)
class Called:
    """One call, or one attribute of a tensor that the other framework spells otherwise."""

    node: ast.Call | ast.Attribute
    name: str
    """The dotted name of what is called; `torch.Tensor.view` for a method of a tensor."""
    group: Group
    receiver: ast.expr | None = None
    """What a method is called on."""
    sure: bool = True
    """False where only the name of the method tells that it is a tensor's."""


@dataclass(slots=True)
class Reading:
    """What a file calls, and what its expressions are."""

    calls: list[Called] = field(default_factory=list)
    kinds: dict[ast.expr, Kind] = field(default_factory=dict)
    tensors: list[tuple[ast.stmt, ast.expr]] = field(default_factory=list)
    """Branches and loops on the value of a tensor."""

    def kind(self, node: ast.expr) -> Kind:
        return self.kinds.get(node, UNKNOWN)


MODULE_METHODS = frozenset(
    [
        *("parameters", "named_parameters", "modules", "named_modules", "children", "named_children", "buffers"),
        *("train", "eval", "to", "cuda", "cpu", "float", "half", "double", "state_dict", "load_state_dict", "apply"),
        *(
            "zero_grad",
            "register_buffer",
            "register_parameter",
            "register_forward_hook",
            "requires_grad_",
            "add_module",
        ),
        *("trainable_params", "get_parameters", "set_train", "insert_child_to_cell", "parameters_and_names", "cells"),
    ]
)


def of_module(word: str) -> Kind:
    if word in ("train", "eval", "to", "cuda", "cpu", "float", "half", "double", "requires_grad_", "set_train"):
        return NETWORK
    return PYTHON if word in MODULE_METHODS else UNKNOWN


def computed(left: Kind, right: Kind) -> Kind:
    if TENSOR in (left, right):
        return TENSOR
    if left.what == "python" and right.what == "python":
        return left if left.name == right.name else PYTHON
    return UNKNOWN


@functools.cache
def is_file(path: str, head: str) -> bool:
    """Whether the first word of an import is a file or folder beside this one."""
    beside = Path(path).parent / head
    return beside.with_suffix(".py").is_file() or (beside / "__init__.py").is_file()


def defaults_of(node: Function) -> Mapping[str, ast.expr]:
    positional = [*node.args.posonlyargs, *node.args.args]
    found = dict(zip([arg.arg for arg in positional[len(positional) - len(node.args.defaults) :]], node.args.defaults))
    found.update({arg.arg: one for arg, one in zip(node.args.kwonlyargs, node.args.kw_defaults) if one is not None})
    return found
